use loadstone_wire::postgres::{Behaviour, Reply, TlsMode, WireError};
use proptest::prelude::*;

use crate::link::{Link, Pki, settings};

const NO_PARAMETERS: [Option<&[u8]>; 0] = [];

fn two_rows() -> Behaviour {
    let rows: [&[Option<&str>]; 2] = [&[Some("1"), None], &[Some(""), Some("é")]];
    Behaviour {
        reply: Reply::rows(&["id", "name"], &rows),
        ..Behaviour::default()
    }
}

#[test]
fn simple_queries() {
    let mut link = Link::ready(two_rows());
    let rows = ["columns id,name", "row 1,NULL", "row ,é", "done SELECT 2"];
    assert_eq!(link.query("select"), [&rows[..], &["Idle"]].concat());
    assert_eq!(link.query(""), ["EmptyQuery", "Idle"]);
    assert_eq!(link.query("update t set x = 1"), ["done UPDATE 1", "Idle"]);
    let several = link.query("begin; select; commit");
    assert_eq!(
        several,
        [&["done BEGIN"], &rows[..], &["done COMMIT", "Idle"]].concat()
    );
}

#[test]
fn prepared_statements_in_a_pipeline() {
    let mut link = Link::ready(two_rows());
    let mut frontend = link.session.frontend();
    frontend.parse("s1", b"select $1").unwrap();
    frontend.parse("s2", b"insert into t values ($1)").unwrap();
    for statement in ["s1", "s2"] {
        frontend
            .bind_text(statement, [Some(&b"x"[..]), None])
            .unwrap();
        frontend.describe_portal();
        frontend.execute();
    }
    frontend.close_statement("s1").unwrap();
    frontend.sync();
    link.pump().unwrap();
    let expected = [
        "ParseComplete",
        "ParseComplete",
        "BindComplete",
        "columns id,name",
        "row 1,NULL",
        "row ,é",
        "done SELECT 2",
        "BindComplete",
        "NoData",
        "done INSERT 0 1",
        "CloseComplete",
        "Idle",
    ];
    assert_eq!(link.events, expected);
}

#[test]
fn an_error_passes_over_the_rest_of_the_pipeline() {
    let mut link = Link::ready(Behaviour::default());
    assert_eq!(link.query("begin"), ["done BEGIN", "InTransaction"]);
    let mut frontend = link.session.frontend();
    frontend.bind_text("nowhere", NO_PARAMETERS).unwrap();
    frontend.execute();
    frontend.sync();
    frontend.query(b"select 1").unwrap();
    frontend.query(b"commit").unwrap();
    link.pump().unwrap();
    let expected = [
        "error 26000",
        "Failed",
        "error 25P02",
        "Failed",
        "done ROLLBACK",
        "Idle",
    ];
    assert_eq!(link.events, expected);
}

#[test]
fn copy_from_the_client_can_be_refused() {
    let mut link = Link::ready(Behaviour::default());
    assert_eq!(link.query("copy t from stdin"), ["CopyIn"]);
    link.session.frontend().copy_fail("not supported").unwrap();
    link.pump().unwrap();
    assert_eq!(link.events, ["error 57014", "Idle"]);
}

#[test]
fn statements_that_cannot_be_sent_are_refused_and_leave_nothing_behind() {
    let mut link = Link::ready(Behaviour::default());
    let refused = |outcome: Result<(), WireError>| {
        assert!(
            matches!(outcome, Err(WireError::Unencodable { .. })),
            "{outcome:?}"
        );
    };
    let mut frontend = link.session.frontend();
    refused(frontend.query(b"select '\0'"));
    refused(frontend.parse("a\0b", b"select 1"));
    refused(frontend.parse("a", b"\0"));
    refused(frontend.bind_text("a\0b", NO_PARAMETERS));
    refused(frontend.bind_text("a", vec![None; 70_000]));
    refused(frontend.close_statement("\0"));
    refused(frontend.copy_fail("\0"));
    assert_eq!(link.session.pending(), Ok(&[][..]));
}

#[test]
fn bytes_may_be_sent_piecemeal() {
    let mut link = Link::ready(Behaviour::default());
    link.session.frontend().query(b"select 1").unwrap();
    let whole = link.session.pending().unwrap().to_vec();
    let mut sent = Vec::new();
    while let Some(byte) = link.session.pending().unwrap().first() {
        sent.push(*byte);
        link.session.consumed(1);
    }
    assert_eq!(sent, whole);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_gives_the_same_events(
        step in 1usize..200,
        tls: bool,
        widths in prop::collection::vec(0usize..40_000, 1..4),
    ) {
        let texts: Vec<String> = widths.iter().map(|width| "x".repeat(*width)).collect();
        let row: Vec<Option<&str>> = texts.iter().map(|text| Some(text.as_str())).collect();
        let names: Vec<&str> = widths.iter().map(|_| "c").collect();
        let reply = Reply::rows(&names, &[&row, &row]);
        let pki = Pki::self_signed();
        let mode = if tls { TlsMode::Require } else { TlsMode::Disable };
        let run = |step| {
            let behaviour = Behaviour {
                reply: reply.clone(), tls: Some(pki.server.clone()), ..Behaviour::default()
            };
            let mut link = Link::new(settings(mode), &pki.files(), behaviour);
            link.step = step;
            link.pump().unwrap();
            link.query("select 1")
        };
        prop_assert_eq!(run(step), run(usize::MAX));
    }
}
