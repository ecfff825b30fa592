use std::sync::Arc;

use loadstone_wire::postgres::{
    Action, Behaviour, Fault, Password, RootCertificates, ServerTls, Session, Settings, TlsError,
    TlsFiles, TlsMode, WireError,
};

use rcgen::KeyPair;

use crate::link::{Link, Pki, Version1, auth, settings};

const ALL: [TlsMode; 6] = [
    TlsMode::Disable,
    TlsMode::Allow,
    TlsMode::Prefer,
    TlsMode::Require,
    TlsMode::VerifyCa,
    TlsMode::VerifyFull,
];

/// Whether TLS was used, or how the log-in failed.
fn log_in(mode: TlsMode, files: &TlsFiles, server: Option<&Pki>) -> Result<bool, WireError> {
    let tls = server.map(|pki| pki.server.clone());
    let behaviour = Behaviour {
        auth: auth("scram"),
        tls,
        ..Behaviour::default()
    };
    let mut link = Link::new(settings(mode), files, behaviour);
    link.pump().map(|_| {
        assert!(link.session.is_ready());
        link.session.tls_in_use()
    })
}

#[test]
fn modes_do_what_libpq_does() {
    let pki = Pki::new(&["db.example"], "db");
    for mode in ALL {
        let expected = if mode.demands_tls() {
            Err(WireError::TlsRefused)
        } else {
            Ok(false)
        };
        assert_eq!(
            log_in(mode, &pki.files(), None),
            expected,
            "{mode:?} without TLS at the server"
        );
        let expected = !matches!(mode, TlsMode::Disable | TlsMode::Allow);
        assert_eq!(
            log_in(mode, &pki.files(), Some(&pki)),
            Ok(expected),
            "{mode:?}"
        );
    }
}

#[test]
fn certificates_are_checked_as_strictly_as_the_mode_says() {
    let right = Pki::new(&["db.example"], "db");
    let stranger = Pki::new(&["db.example"], "db");
    let misnamed = Pki::new(&["other.example"], "db.example");
    let none = TlsFiles::default();
    let fails = |mode, files: &TlsFiles, server| {
        let outcome = log_in(mode, files, Some(server));
        assert!(
            matches!(outcome, Err(WireError::TlsFailed { .. })),
            "{mode:?}: {outcome:?}"
        );
    };
    assert_eq!(log_in(TlsMode::Require, &none, Some(&stranger)), Ok(true));
    for mode in [TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] {
        fails(mode, &right.files(), &stranger);
        assert_eq!(log_in(mode, &right.files(), Some(&right)), Ok(true));
    }
    assert_eq!(
        log_in(TlsMode::VerifyCa, &misnamed.files(), Some(&misnamed)),
        Ok(true)
    );
    fails(TlsMode::VerifyFull, &misnamed.files(), &misnamed);
}

#[test]
fn a_self_signed_certificate_can_be_its_own_root() {
    let pki = Pki::self_signed();
    assert_eq!(
        log_in(TlsMode::VerifyFull, &pki.files(), Some(&pki)),
        Ok(true)
    );
}

#[test]
fn version_1_certificates_are_verified_like_others() {
    let authority = Version1::authority();
    let files = TlsFiles {
        root: Some(authority.root.clone()),
        ..TlsFiles::default()
    };
    let right = authority.server(None);
    let forged = authority.server(Some(&KeyPair::generate().unwrap()));
    let log_in = |mode, files: &TlsFiles, host: &str, server: &ServerTls| {
        let behaviour = Behaviour {
            auth: auth("scram"),
            tls: Some(server.clone()),
            ..Behaviour::default()
        };
        let settings = Settings {
            host: host.to_owned(),
            ..settings(mode)
        };
        Link::new(settings, files, behaviour).pump().map(|_| ())
    };
    for mode in [TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] {
        assert_eq!(
            log_in(mode, &files, "db.example", &right),
            Ok(()),
            "{mode:?}"
        );
        let outcome = log_in(mode, &files, "db.example", &forged);
        assert!(
            matches!(outcome, Err(WireError::TlsFailed { .. })),
            "{mode:?}: {outcome:?}"
        );
    }
    assert_eq!(
        log_in(
            TlsMode::Require,
            &TlsFiles::default(),
            "db.example",
            &forged
        ),
        Ok(())
    );
    assert_eq!(
        log_in(TlsMode::VerifyCa, &files, "other.example", &right),
        Ok(())
    );
    let outcome = log_in(TlsMode::VerifyFull, &files, "other.example", &right);
    assert!(
        matches!(outcome, Err(WireError::TlsFailed { .. })),
        "{outcome:?}"
    );
}

#[test]
fn a_common_name_counts_where_there_is_no_other() {
    for (name, expected) in [
        ("db.example", true),
        ("*.example", true),
        ("db2.example", false),
    ] {
        let pki = Pki::new(&[], name);
        let outcome = log_in(TlsMode::VerifyFull, &pki.files(), Some(&pki));
        assert_eq!(outcome.is_ok(), expected, "{name}: {outcome:?}");
    }
}

#[test]
fn unix_sockets_never_use_tls() {
    let pki = Pki::new(&["db.example"], "db");
    let settings = Settings {
        unix_socket: true,
        ..settings(TlsMode::Require)
    };
    let behaviour = Behaviour {
        tls: Some(pki.server.clone()),
        ..Behaviour::default()
    };
    let mut link = Link::new(settings, &pki.files(), behaviour);
    assert_eq!(link.pump(), Ok(Action::Continue));
    assert!(link.session.is_ready() && !link.session.tls_in_use());
}

#[test]
fn a_second_try_is_offered_where_libpq_makes_one() {
    let pki = Pki::new(&["db.example"], "db");
    let stranger = Pki::new(&["db.example"], "db");
    let retry = |mode, files: &TlsFiles, faults: &[Fault]| {
        let behaviour = Behaviour {
            tls: Some(pki.server.clone()),
            faults: faults.to_vec(),
            ..Behaviour::default()
        };
        let mut link = Link::new(settings(mode), files, behaviour);
        link.pump().unwrap_err();
        link.session.retry_settings().map(|settings| settings.tls)
    };
    let refuse = [Fault::RefuseStartup {
        sqlstate: *b"28000",
        message: "no entry".to_owned(),
    }];
    assert_eq!(
        retry(TlsMode::Allow, &pki.files(), &refuse),
        Some(TlsMode::Require)
    );
    assert_eq!(
        retry(TlsMode::Prefer, &pki.files(), &refuse),
        Some(TlsMode::Disable)
    );
    assert_eq!(
        retry(TlsMode::Prefer, &stranger.files(), &[]),
        Some(TlsMode::Disable)
    );
    assert_eq!(
        retry(TlsMode::Prefer, &pki.files(), &[Fault::GarbageAtStartup]),
        Some(TlsMode::Disable)
    );
    for mode in [TlsMode::Disable, TlsMode::Require, TlsMode::VerifyFull] {
        assert_eq!(retry(mode, &pki.files(), &refuse), None, "{mode:?}");
    }
    assert_eq!(retry(TlsMode::Require, &stranger.files(), &[]), None);
}

#[test]
fn plain_bytes_after_the_consent_are_refused() {
    let config = TlsFiles::default().client_config(TlsMode::Require).unwrap();
    let mut session = Session::new(Arc::new(settings(TlsMode::Require)), Some(config)).unwrap();
    assert_eq!(
        session.receive(b"SR\0\0\0", &mut |_| {}),
        Err(WireError::UnencryptedBytes)
    );
}

#[test]
fn a_mode_that_demands_tls_needs_a_configuration() {
    let outcome = Session::new(Arc::new(settings(TlsMode::VerifyCa)), None);
    assert!(matches!(outcome, Err(WireError::TlsNotConfigured)));
    assert!(Session::new(Arc::new(settings(TlsMode::Prefer)), None).is_ok());
}

#[test]
fn files_that_cannot_work_are_refused_before_connecting() {
    let pki = Pki::new(&["db.example"], "db");
    let RootCertificates::Given(pem) = pki.root.clone() else {
        panic!("given")
    };
    let refused = |files: TlsFiles, mode| files.client_config(mode).unwrap_err();
    let missing = refused(TlsFiles::default(), TlsMode::VerifyFull);
    assert!(matches!(
        missing,
        TlsError::RootMissing {
            mode: "verify-full"
        }
    ));
    let system = TlsFiles {
        root: Some(RootCertificates::System(pem.clone())),
        ..TlsFiles::default()
    };
    assert!(matches!(
        refused(system.clone(), TlsMode::Require),
        TlsError::SystemNeedsVerifyFull { .. }
    ));
    assert!(system.client_config(TlsMode::VerifyFull).is_ok());
    let empty = TlsFiles {
        root: Some(RootCertificates::Given(Vec::new())),
        ..TlsFiles::default()
    };
    assert!(matches!(
        refused(empty, TlsMode::Require),
        TlsError::BadCertificate { .. }
    ));
    let half = TlsFiles {
        client_certificate: Some(pem.clone()),
        ..TlsFiles::default()
    };
    assert!(matches!(
        refused(half.clone(), TlsMode::Require),
        TlsError::HalfIdentity
    ));
    let bad_key = TlsFiles {
        client_key: Some(Password::new("not a key")),
        ..half
    };
    assert!(matches!(
        refused(bad_key, TlsMode::Require),
        TlsError::BadKey { .. }
    ));
}
