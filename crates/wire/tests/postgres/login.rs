use std::sync::Arc;

use loadstone_wire::postgres::{
    Action, Authentication, Behaviour, ChannelBinding, Password, Responder, Session, Settings,
    TlsFiles, TlsMode, WireError, cancel_request,
};

use crate::link::{Link, PASSWORD, Pki, auth, settings};

const METHODS: [&str; 5] = ["trust", "cleartext", "md5", "sha256", "scram"];

#[test]
fn every_method_logs_in_however_the_bytes_are_split() {
    let pki = Pki::new(&["db.example"], "db");
    for method in METHODS {
        for tls in [TlsMode::Disable, TlsMode::VerifyFull] {
            let log_in = |step| {
                let behaviour = Behaviour {
                    auth: auth(method),
                    tls: Some(pki.server.clone()),
                    ..Behaviour::default()
                };
                let mut link = Link::new(settings(tls), &pki.files(), behaviour);
                link.step = step;
                assert_eq!(link.pump(), Ok(Action::Continue), "{method} {tls:?} {step}");
                assert!(link.session.is_ready(), "{method} {tls:?} {step}");
                assert_eq!(link.session.tls_in_use(), tls == TlsMode::VerifyFull);
                let mut events = std::mem::take(&mut link.events);
                assert_eq!(events.pop(), Some("ready".to_owned()));
                events.extend(link.query("select 1"));
                (events, link.session.authentication())
            };
            let whole = log_in(usize::MAX);
            assert_eq!(log_in(1), whole, "{method} {tls:?}");
            assert_eq!(log_in(7), whole, "{method} {tls:?}");
            let expected = match (method, tls) {
                ("trust", _) => Authentication::None,
                ("cleartext", _) => Authentication::Cleartext,
                ("md5", _) => Authentication::Md5,
                ("sha256", _) => Authentication::Sha256,
                (_, TlsMode::Disable) => Authentication::ScramSha256,
                _ => Authentication::ScramSha256Plus,
            };
            assert_eq!(whole.1, expected);
        }
    }
}

fn fails(settings: Settings, files: &TlsFiles, behaviour: Behaviour) -> WireError {
    Link::new(settings, files, behaviour).pump().unwrap_err()
}

#[test]
fn wrong_and_missing_passwords_are_told_apart() {
    for method in &METHODS[1..] {
        let try_with = |change: fn(&mut Settings)| {
            let mut settings = settings(TlsMode::Disable);
            change(&mut settings);
            let behaviour = Behaviour {
                auth: auth(method),
                ..Behaviour::default()
            };
            fails(settings, &TlsFiles::default(), behaviour)
        };
        let wrong = try_with(|settings| settings.password = Some(Password::new("guess")));
        // A signed challenge tells us before the server does.
        let told_by_signature = wrong == WireError::ChallengeFailed && *method == "sha256";
        assert!(
            told_by_signature || matches!(wrong, WireError::AuthFailed(_)),
            "{method}: {wrong}"
        );
        assert_eq!(wrong.sqlstate(), *b"28P01");
        let stranger = try_with(|settings| settings.user = "mallory".to_owned());
        assert!(
            matches!(stranger, WireError::AuthFailed(_)),
            "{method}: {stranger}"
        );
        let missing = WireError::PasswordMissing {
            user: "alice".to_owned(),
        };
        assert_eq!(try_with(|settings| settings.password = None), missing);
        assert_eq!(
            try_with(|settings| settings.password = Some(Password::new(""))),
            missing
        );
    }
}

#[test]
fn channel_binding_is_used_demanded_or_left_out() {
    let pki = Pki::new(&["db.example"], "db");
    let log_in = |binding, method, tls| {
        let settings = Settings {
            channel_binding: binding,
            ..settings(tls)
        };
        let behaviour = Behaviour {
            auth: auth(method),
            tls: Some(pki.server.clone()),
            ..Behaviour::default()
        };
        let mut link = Link::new(settings, &pki.files(), behaviour);
        link.pump().map(|_| link.session.channel_binding_used())
    };
    assert_eq!(
        log_in(ChannelBinding::Require, "scram", TlsMode::Require),
        Ok(true)
    );
    assert_eq!(
        log_in(ChannelBinding::Disable, "scram", TlsMode::Require),
        Ok(false)
    );
    assert_eq!(
        log_in(ChannelBinding::Prefer, "md5", TlsMode::Require),
        Ok(false)
    );
    for (method, tls) in [
        ("scram", TlsMode::Disable),
        ("md5", TlsMode::Require),
        ("sha256", TlsMode::Require),
        ("cleartext", TlsMode::Require),
        ("trust", TlsMode::Require),
    ] {
        let outcome = log_in(ChannelBinding::Require, method, tls);
        assert!(
            matches!(outcome, Err(WireError::ChannelBinding { .. })),
            "{method}: {outcome:?}"
        );
    }
}

/// What a plain session makes of these bytes of a server.
fn receive(answer: &[u8]) -> (Session, Result<(), WireError>) {
    let mut session = Session::new(Arc::new(settings(TlsMode::Disable)), None).unwrap();
    let outcome = session.receive(answer, &mut |_| {});
    (session, outcome)
}

#[test]
fn a_server_that_does_not_prove_itself_is_refused() {
    let scram = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0";
    let accepted = b"R\0\0\0\x08\0\0\0\0";
    let (_, outcome) = receive(&[&scram[..], accepted].concat());
    assert!(
        matches!(outcome, Err(WireError::ScramFailed { .. })),
        "{outcome:?}"
    );
    let (_, outcome) = receive(b"R\0\0\0\x0c\0\0\0\x0cv=AA");
    assert!(
        matches!(outcome, Err(WireError::UnexpectedMessage { tag: b'R', .. })),
        "{outcome:?}"
    );
}

#[test]
fn unsupported_methods_are_named() {
    let (_, outcome) = receive(b"R\0\0\0\x08\0\0\0\x07");
    assert_eq!(
        outcome,
        Err(WireError::UnsupportedAuth {
            code: 7,
            name: "GSSAPI".to_owned()
        })
    );
    let (_, outcome) = receive(b"R\0\0\0\x12\0\0\0\x0aOAUTHBEA\0\0");
    let name = "SASL OAUTHBEA".to_owned();
    assert_eq!(outcome, Err(WireError::UnsupportedAuth { code: 10, name }));
}

#[test]
fn newer_servers_are_understood() {
    let negotiate = b"v\0\0\0\x0c\0\x03\0\0\0\0\0\0";
    let accepted = b"R\0\0\0\x08\0\0\0\0";
    let mut key = b"K\0\0\x01\x08\0\0\0\x2a".to_vec();
    key.extend([9; 256]);
    let (session, outcome) = receive(&[negotiate, &accepted[..], &key, b"Z\0\0\0\x05I"].concat());
    assert_eq!(outcome, Ok(()));
    assert!(session.is_ready());
    assert_eq!(session.backend_key(), Some((42, &[9; 256][..])));
    let cancel = cancel_request(42, &[9; 256]);
    assert_eq!(cancel[..12], *b"\0\0\x01\x0c\x04\xd2\x16\x2e\0\0\0\x2a");
    assert_eq!(cancel.len(), 12 + 256);
}

#[test]
fn the_responder_tells_a_request_to_cancel() {
    let mut responder = Responder::new(Arc::default(), 7);
    let mut out = Vec::new();
    let cancel = Action::Cancel {
        process_id: 42,
        tls: false,
    };
    let request = cancel_request(42, b"four");
    assert_eq!(responder.respond(&request, &mut out), Ok(cancel));
    assert_eq!(out, b"");
    assert_eq!(responder.respond(b"more", &mut out), Ok(cancel));
}

#[test]
fn parameters_are_remembered_and_updated() {
    let mut link = Link::ready(Behaviour::default());
    assert_eq!(link.session.parameter("client_encoding"), Some("UTF8"));
    assert_eq!(link.session.parameter("encoding"), None);
    link.deliver(b"S\0\0\0\x1bclient_encoding\0LATIN1\0")
        .unwrap();
    assert_eq!(link.session.parameter("client_encoding"), Some("LATIN1"));
    assert_eq!(link.session.parameter("TimeZone"), Some("UTC"));
    assert_eq!(
        link.session.backend_key().map(|(process_id, _)| process_id),
        Some(7)
    );
}

#[test]
fn settings_that_would_break_the_startup_message_are_refused() {
    let mut bad = settings(TlsMode::Disable);
    bad.parameters = vec![(String::new(), "x".to_owned())];
    let outcome = Session::new(Arc::new(bad), None);
    assert!(matches!(outcome, Err(WireError::Unencodable { .. })));
    let mut bad = settings(TlsMode::Disable);
    bad.user = "a\0b".to_owned();
    assert!(matches!(
        Session::new(Arc::new(bad), None),
        Err(WireError::Unencodable { .. })
    ));
}

#[test]
fn passwords_are_never_printed() {
    let settings = settings(TlsMode::Disable);
    let session = Session::new(Arc::new(settings.clone()), None).unwrap();
    for text in [
        format!("{settings:?}"),
        format!("{session:?}"),
        format!("{:?}", auth("scram")),
    ] {
        assert!(text.contains("***") && !text.contains(PASSWORD), "{text}");
    }
}

#[test]
fn a_server_that_hangs_up_is_told_from_one_that_refuses() {
    let (mut session, _) = receive(b"");
    assert_eq!(
        session.closed(),
        WireError::Closed {
            when: "during the log-in"
        }
    );
    assert_eq!(
        session.receive(b"Z", &mut |_| {}),
        Err(WireError::AlreadyFailed)
    );
    let mut link = Link::ready(Behaviour::default());
    link.deliver(b"Z\0\0").unwrap();
    assert_eq!(
        link.session.closed(),
        WireError::Closed {
            when: "in the middle of a message"
        }
    );
}
