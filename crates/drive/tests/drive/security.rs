//! Log-ins and TLS through the driver.

use std::path::PathBuf;

use loadstone_wire::postgres::{Behaviour, Fault, Password, ResponderAuth, ServerTls};
use serde_json::json;

use crate::harness::{Server, done_failed, on_both, refused, run, spec};

on_both!(
    every_way_to_prove_a_password,
    a_wrong_password_is_refused_before_the_run,
    transactions_over_tls,
    a_request_to_cancel_goes_over_tls_where_its_connection_did,
    tls_that_the_server_refuses,
);

fn auth(kind: &str) -> ResponderAuth {
    let (user, password) = ("tester".to_owned(), Password::new("s3cret".to_owned()));
    match kind {
        "cleartext" => ResponderAuth::Cleartext { user, password },
        "md5" => ResponderAuth::Md5 { user, password },
        _ => ResponderAuth::Scram { user, password },
    }
}

fn every_way_to_prove_a_password(io: &str) {
    for kind in ["cleartext", "md5", "scram"] {
        let server = Server::new(Behaviour {
            auth: auth(kind),
            ..Behaviour::default()
        });
        let more = json!({"connection": {"password": "s3cret"}});
        assert_eq!(done_failed(&run(&server.spec(io, more))), (20, 0), "{kind}");
    }
}

fn a_wrong_password_is_refused_before_the_run(io: &str) {
    for kind in ["cleartext", "md5", "scram"] {
        let server = Server::new(Behaviour {
            auth: auth(kind),
            ..Behaviour::default()
        });
        let error = refused(&server.spec(io, json!({"connection": {"password": "wr0ng"}})));
        let words = format!("{error} {} {error:?}", error.hint());
        assert!(words.contains("password"), "{words}");
        assert!(!words.contains("wr0ng"), "{words}");
    }
}

/// A server with TLS and SCRAM, and the file with its certificate, which is made out to `localhost`.
fn over_tls(faults: Vec<Fault>) -> (Server, PathBuf) {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (issued.cert.pem(), issued.signing_key.serialize_pem());
    let tls = ServerTls::new(certificate.as_bytes(), key.as_bytes()).unwrap();
    let behaviour = Behaviour {
        auth: auth("scram"),
        tls: Some(tls),
        faults,
        ..Behaviour::default()
    };
    let server = Server::new(behaviour);
    let root = server.folder.path().join("root.pem");
    std::fs::write(&root, certificate).unwrap();
    (server, root)
}

fn a_request_to_cancel_goes_over_tls_where_its_connection_did(io: &str) {
    let (server, root) = over_tls(vec![Fault::SilentAfter { queries: 1 }]);
    let more = json!({"timeout_s": 0.3, "connection":
        {"sslmode": "verify-full", "sslrootcert": root, "password": "s3cret"}});
    let account = run(&spec("localhost", server.inner.port(), io, more));
    assert_eq!(done_failed(&account), (2, 2));
    assert_eq!(server.inner.cancels(), [0, 2]);
}

fn transactions_over_tls(io: &str) {
    let (server, root) = over_tls(Vec::new());
    for (sslmode, host) in [
        ("prefer", "127.0.0.1"),
        ("require", "127.0.0.1"),
        ("verify-full", "localhost"),
    ] {
        let mut more = json!({"mode": "prepared", "clients": 3, "transactions_per_client": 50,
            "connection": {"sslmode": sslmode, "password": "s3cret", "channel_binding": "require"}});
        if sslmode == "verify-full" {
            more["connection"]["sslrootcert"] = json!(root);
        }
        let account = run(&spec(host, server.inner.port(), io, more));
        assert_eq!(done_failed(&account), (150, 0), "{sslmode}");
    }
    let more = json!({"connection": {"sslmode": "verify-full", "sslrootcert": root, "password": "s3cret"}});
    let error = refused(&spec("127.0.0.1", server.inner.port(), io, more));
    assert!(
        error.hint().contains("host name"),
        "{error}: {}",
        error.hint()
    );
}

fn tls_that_the_server_refuses(io: &str) {
    let server = Server::new(Behaviour::default());
    let at = |sslmode: &str| {
        let more = json!({"connection": {"sslmode": sslmode}});
        spec("127.0.0.1", server.inner.port(), io, more)
    };
    assert_eq!(done_failed(&run(&at("prefer"))), (20, 0), "falls back");
    let error = refused(&at("require"));
    assert!(
        error.hint().contains("sslmode"),
        "{error}: {}",
        error.hint()
    );
}
