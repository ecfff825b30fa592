//! Scripts as one transaction with a last statement of the driver's own.

use loadstone_script::{
    CommandKind, QueryMode, Script, ScriptError, Symbols, parse, parse_enclosed,
};
use proptest::prelude::*;

const LAST: &str = "insert into ledger values (:seq)";

fn enclosed(text: &str) -> Result<(Script, usize), ScriptError> {
    parse_enclosed("test", text, QueryMode::Simple, &mut Symbols::new(), LAST)
}

fn texts(script: &Script) -> Vec<&str> {
    script
        .commands
        .iter()
        .map(|c| c.text.trim_end_matches(';'))
        .collect()
}

#[test]
fn a_script_without_a_transaction_becomes_one() {
    let (script, commit) = enclosed("\\set a 1\nselect :a;\nselect 2;").unwrap();
    assert_eq!(
        texts(&script),
        [
            "begin",
            "\\set a 1",
            "select :a",
            "select 2",
            LAST,
            "commit"
        ]
    );
    assert_eq!(commit, 5);
}

#[test]
fn a_transaction_stores_before_its_own_commit() {
    for (begin, end) in [
        ("BEGIN", "END"),
        ("begin work", "commit work"),
        ("start transaction isolation level serializable", "COMMIT"),
        ("/* why */ begin", "/* so */ commit and no chain"),
    ] {
        let (script, commit) = enclosed(&format!(
            "{begin};\nselect 1;\nrollback to a;\n{end};\nselect 2;"
        ))
        .unwrap();
        assert_eq!(
            texts(&script),
            [begin, "select 1", "rollback to a", LAST, end, "select 2"]
        );
        assert_eq!(commit, 4);
    }
}

#[test]
fn jumps_still_lead_where_they_did() {
    let (script, _) = enclosed("\\if 1\nselect 1;\n\\else\nselect 2;\n\\endif\n").unwrap();
    let CommandKind::If { on_false, .. } = &script.commands[1].kind else {
        unreachable!("no condition")
    };
    assert_eq!(script.commands[*on_false].kind.name(), "else");
    let CommandKind::Else { end } = script.commands[*on_false].kind else {
        unreachable!("no alternative")
    };
    assert_eq!(script.commands[end].kind.name(), "endif");
}

#[test]
fn other_transactions_are_refused_at_their_line() {
    for (text, line) in [
        ("begin;\nselect 1;\ncommit;\nbegin;\ncommit;", 5),
        ("begin;\nselect 1;\nrollback;", 3),
        ("begin;\nabort;", 2),
        ("select 1;\ncommit;", 2),
        ("begin;\nselect 1;", 1),
        ("begin;\n\\if 1\ncommit;\n\\endif", 3),
        ("begin;\nprepare transaction 'a';", 2),
        ("select 1;\ncommit prepared 'a';", 2),
        ("select 1;\nbegin \\; select 1 \\; commit;", 2),
    ] {
        let error = enclosed(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.hint.contains("BEGIN and COMMIT"), "{}", error.hint);
    }
}

proptest! {
    #[test]
    fn all_of_a_script_stays_in_its_order(statements in prop::collection::vec(
        prop::sample::select(vec!["select 1", "update t set a = 2", "\\set x 1", "insert into begins values (1)"]),
        1..8,
    )) {
        let text = statements.iter().map(|s| {
            if s.starts_with('\\') { format!("{s}\n") } else { format!("{s};\n") }
        }).collect::<String>();
        let plain = parse("test", &text, QueryMode::Prepared, &mut Symbols::new()).unwrap();
        let (script, commit) =
            parse_enclosed("test", &text, QueryMode::Prepared, &mut Symbols::new(), LAST).unwrap();
        prop_assert_eq!(&texts(&script)[1..script.commands.len() - 2], &texts(&plain)[..]);
        prop_assert_eq!(commit, script.commands.len() - 1);
    }
}
