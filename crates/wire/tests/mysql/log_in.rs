//! Who we are, and how it is proved.

use std::sync::Arc;

use loadstone_wire::mysql::{MysqlError, Session, Settings};
use loadstone_wire::postgres::{TlsFiles, TlsMode};
use mysql_common::constants::CapabilityFlags;
use mysql_common::io::ParseBuf;
use mysql_common::packets::HandshakeResponse;
use mysql_common::proto::MyDeserialize as _;

use super::{CHALLENGE, OK, PUBLIC_KEY, greeting, none, packet, sent, session, settings, told};

#[test]
fn a_log_in_says_who_and_proves_it() {
    let mut session = session(settings());
    told(&mut session, &greeting("mysql_native_password", none()));
    let bytes = sent(&mut session);
    assert_eq!(bytes[3], 1);
    let response = HandshakeResponse::deserialize((), &mut ParseBuf(&bytes[4..])).unwrap();
    assert_eq!(
        (response.user(), response.db_name()),
        (&b"u"[..], Some(&b"d"[..]))
    );
    assert_eq!(response.scramble_buf().len(), 20);
    assert!(!format!("{session:?}").contains("secret"));
}

#[test]
fn other_plugins_are_switched_to_and_unsafe_ones_refused() {
    let switch = |plugin: &str, challenge: &[u8]| {
        let mut session = session(settings());
        told(&mut session, &greeting("mysql_native_password", none()));
        sent(&mut session);
        let request = [b"\xFE", plugin.as_bytes(), b"\0", challenge].concat();
        let told = told(&mut session, &packet(2, &request));
        let sent = if told.is_empty() {
            sent(&mut session)
        } else {
            Vec::new()
        };
        (session, told, sent)
    };
    let (_, told_of, bytes) = switch("client_ed25519", &[7; 32]);
    assert_eq!((told_of.len(), bytes.len(), bytes[3]), (0, 4 + 64, 3));
    for (plugin, words) in [
        ("mysql_clear_password", "would show the password"),
        ("mysql_old_password", "not supported"),
        ("auth_gssapi_client", "not supported"),
    ] {
        let (_, told, _) = switch(plugin, b"");
        assert!(
            told[0].contains(words) && told[0].contains(plugin),
            "{told:?}"
        );
    }
    let (_, told_of, _) = switch("client_ed25519", &[7; 5]);
    assert!(told_of[0].contains("malformed"), "{told_of:?}");
    // caching_sha2_password: fast, and in full with the server's key.
    let (mut fast, _, bytes) = switch("caching_sha2_password", CHALLENGE);
    assert_eq!(bytes.len(), 4 + 32);
    assert!(told(&mut fast, &packet(4, &[1, 3])).is_empty());
    assert_eq!(told(&mut fast, &packet(5, OK)), ["ready"]);
    let (mut full, _, _) = switch("caching_sha2_password", CHALLENGE);
    assert!(told(&mut full, &packet(4, &[1, 4])).is_empty());
    assert_eq!(sent(&mut full), packet(5, &[2]));
    let key = [&[1], PUBLIC_KEY.as_bytes()].concat();
    assert!(told(&mut full, &packet(6, &key)).is_empty());
    assert_eq!(sent(&mut full).len(), 4 + 256);
    assert_eq!(told(&mut full, &packet(8, OK)), ["ready"]);
    let (mut bad, _, _) = switch("caching_sha2_password", CHALLENGE);
    told(&mut bad, &packet(4, &[1, 4]));
    sent(&mut bad);
    assert!(told(&mut bad, &packet(6, b"\x01no key"))[0].contains("public key"));
}

#[test]
fn the_password_goes_as_it_is_only_through_a_unix_socket() {
    let mut session = session(Settings {
        unix_socket: true,
        ..settings()
    });
    told(&mut session, &greeting("caching_sha2_password", none()));
    sent(&mut session);
    told(&mut session, &packet(2, &[1, 4]));
    assert_eq!(sent(&mut session), packet(3, b"secret\0"));
}

#[test]
fn tls_is_demanded_or_not() {
    let tls = |mode, missing| {
        let config = TlsFiles::default().client_config(TlsMode::Prefer).unwrap();
        let settings = Settings {
            tls: mode,
            host: "db.example".to_owned(),
            ..settings()
        };
        let mut session = Session::new(Arc::new(settings), Some(config)).unwrap();
        let told = told(&mut session, &greeting("mysql_native_password", missing));
        (told, session)
    };
    let (told_of, _) = tls(TlsMode::Require, CapabilityFlags::CLIENT_SSL);
    assert!(told_of[0].contains("does not offer TLS"));
    let (told_of, mut session) = tls(TlsMode::Prefer, CapabilityFlags::CLIENT_SSL);
    assert!(told_of.is_empty() && sent(&mut session).len() > 60);
    let (told_of, mut session) = tls(TlsMode::Require, none());
    assert!(told_of.is_empty());
    // The request, of fixed length, without the user's name; then the first record of TLS.
    let request = sent(&mut session);
    assert_eq!(request.len(), 4 + 32);
    // MariaDB reads these flags here only: TLS, a database.
    assert_eq!((request[5] & 8, request[4] & 8), (8, 8));
    assert_eq!(sent(&mut session)[0], 0x16);
    let (_, mut session) = tls(TlsMode::Prefer, none());
    let told_of = told(&mut session, &packet(2, OK));
    assert!(told_of[0].contains("unencrypted"), "{told_of:?}");
    let demanding = Settings {
        tls: TlsMode::Require,
        ..settings()
    };
    let refused = Session::new(Arc::new(demanding), None).unwrap_err();
    assert_eq!(refused, MysqlError::TlsNotConfigured);
}

#[test]
fn refusals_come_with_the_servers_words() {
    let mut full = session(settings());
    let told_of = told(&mut full, &packet(0, b"\xFF\x10\x04Too many connections"));
    assert_eq!(
        told_of,
        [
            "failed: the server refused the connection: Too many connections (error 1040, SQLSTATE HY000)"
        ]
    );
    let mut denied = session(settings());
    told(&mut denied, &greeting("mysql_native_password", none()));
    let told_of = told(&mut denied, &packet(2, b"\xFF\x15\x04#28000Access denied"));
    assert_eq!(
        told_of,
        ["failed: the server refused the log-in: Access denied (error 1045, SQLSTATE 28000)"]
    );
    let mut other = session(settings());
    assert!(told(&mut other, b"SSH-2.0-OpenSSH_9.2\r\n")[0].contains("malformed log-in"));
}
