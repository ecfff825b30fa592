use loadstone_wire::postgres::{Action, Behaviour, Fault, TlsFiles, TlsMode, WireError};

use crate::link::{Link, settings};

fn ready(fault: Fault) -> Link {
    Link::ready(Behaviour {
        faults: vec![fault],
        ..Behaviour::default()
    })
}

/// The third query, after two that went well.
fn third(fault: Fault) -> (Link, Result<Action, WireError>) {
    let mut link = ready(fault);
    for _ in 0..2 {
        assert_eq!(link.query("select 1").last().unwrap(), "Idle");
    }
    link.session.frontend().query(b"select 1").unwrap();
    let outcome = link.pump();
    (link, outcome)
}

#[test]
fn an_error_every_so_often() {
    let fault = Fault::ErrorEvery {
        n: 2,
        sqlstate: *b"40001",
        message: "again".to_owned(),
    };
    let mut link = ready(fault);
    assert_eq!(link.query("begin"), ["done BEGIN", "InTransaction"]);
    assert_eq!(link.query("select 1"), ["error 40001", "Failed"]);
    assert_eq!(link.query("rollback"), ["done ROLLBACK", "Idle"]);
    assert_eq!(link.query("select 1"), ["error 40001", "Idle"]);
}

#[test]
fn close_instead_of_an_answer() {
    let (mut link, outcome) = third(Fault::CloseAfter { queries: 2 });
    assert_eq!(outcome, Ok(Action::Close));
    assert_eq!(link.events, [""; 0]);
    assert_eq!(
        link.session.closed(),
        WireError::Closed {
            when: "without sending a message"
        }
    );
}

#[test]
fn half_an_answer() {
    let (mut link, outcome) = third(Fault::HalfMessageAfter { queries: 2 });
    assert_eq!(outcome, Ok(Action::Close));
    assert_eq!(
        link.session.closed(),
        WireError::Closed {
            when: "in the middle of a message"
        }
    );
}

#[test]
fn garbage() {
    let (_, outcome) = third(Fault::GarbageAfter { queries: 2 });
    let error = outcome.unwrap_err();
    assert!(
        matches!(
            error,
            WireError::MessageTooLarge { .. } | WireError::UnexpectedMessage { .. }
        ),
        "{error}"
    );
    assert!(error.hint().contains("PostgreSQL server"));
}

#[test]
fn silence() {
    let (mut link, outcome) = third(Fault::SilentAfter { queries: 2 });
    assert_eq!(outcome, Ok(Action::Silent));
    link.session.frontend().query(b"select 1").unwrap();
    assert_eq!(link.pump(), Ok(Action::Silent));
    assert_eq!(link.events, [""; 0]);
}

#[test]
fn delay() {
    let mut link = ready(Fault::DelayEvery {
        n: 2,
        ns: 5_000_000,
    });
    assert_eq!(link.query("select 1").last().unwrap(), "Idle");
    link.session.frontend().query(b"select 1").unwrap();
    assert_eq!(link.pump(), Ok(Action::Delay { ns: 5_000_000 }));
    assert_eq!(link.events.last().unwrap(), "Idle");
}

fn start(fault: Fault) -> Result<Action, WireError> {
    let behaviour = Behaviour {
        faults: vec![fault],
        ..Behaviour::default()
    };
    Link::new(settings(TlsMode::Disable), &TlsFiles::default(), behaviour).pump()
}

#[test]
fn trouble_at_the_startup() {
    let refuse = |sqlstate: &[u8; 5]| {
        start(Fault::RefuseStartup {
            sqlstate: *sqlstate,
            message: "no".to_owned(),
        })
        .unwrap_err()
    };
    let full = refuse(b"53300");
    assert!(matches!(full, WireError::ServerRefused(_)) && full.hint().contains("max_connections"));
    assert_eq!(
        full.to_string(),
        "the server refused the connection: FATAL: no (SQLSTATE 53300)"
    );
    assert!(refuse(b"3D000").hint().contains("database"));
    assert!(matches!(refuse(b"28000"), WireError::AuthFailed(_)));
    assert_eq!(start(Fault::SilentAtStartup), Ok(Action::Silent));
    assert!(start(Fault::GarbageAtStartup).is_err());
}
