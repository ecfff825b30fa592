//! Whole scripts against what `pgbench` 15.18 and PostgreSQL 15 did with them.
//!
//! `random` and `expressions`: the `debug()` lines of `pgbench -n -t 1 --random-seed=…`.
//! `statements`: what `pgbench -d` said it sent, and the statement texts of `pgbench -r`.

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use loadstone_gen::random::Streams;
use loadstone_script::{QueryMode, Script, Symbols, Value, Vars, builtin, parse, trace};

/// Parses `text` and gives it the automatic variables of a run's first client, and `defined`.
fn prepare(text: &str, seed: u64, defined: &[(&str, &str)]) -> (Script, Vars) {
    let mut symbols = Symbols::new();
    let mut vars = Vars::default();
    for (name, value) in defined {
        vars.set_text(symbols.intern(name), value);
    }
    let default_seed = Streams::new(seed, 1, 1, false).default_seed.unwrap_or(0);
    for (name, value) in [
        ("scale", 1),
        ("client_id", 0),
        ("default_seed", default_seed),
    ] {
        vars.set(symbols.intern(name), Value::Int(value));
    }
    match parse("golden.sql", text, QueryMode::Simple, &mut symbols) {
        Ok(script) => (script, vars),
        Err(error) => panic!("{error}"),
    }
}

fn check(text: &str, seed: u64, defined: &[(&str, &str)], golden: &str) {
    let (script, mut vars) = prepare(text, seed, defined);
    let lines = trace(&script, &mut vars, seed);
    let lines: Vec<_> = lines
        .iter()
        .filter(|line| !line.starts_with("sleep "))
        .collect();
    // pgbench's log drops the line end that an unfinished statement keeps.
    let actual: Vec<_> = lines
        .iter()
        .flat_map(|line| line.trim_end_matches('\n').lines())
        .collect();
    for (number, (actual, golden)) in actual.iter().zip(golden.lines()).enumerate() {
        assert_eq!(*actual, golden, "line {} for seed {seed}", number + 1);
    }
    assert_eq!(actual.len(), golden.lines().count());
}

#[test]
fn random_functions_give_the_values_of_pgbench() {
    let text = include_str!("golden/random.sql");
    check(text, 5432, &[], include_str!("golden/random.seed-5432.out"));
    check(text, 0, &[], include_str!("golden/random.seed-0.out"));
    check(
        text,
        u64::MAX,
        &[],
        include_str!("golden/random.seed-18446744073709551615.out"),
    );
}

#[test]
fn expressions_have_the_values_of_pgbench() {
    check(
        include_str!("golden/expressions.sql"),
        1,
        &[],
        include_str!("golden/expressions.out"),
    );
}

/// What the server answered to the `\gset` and `\aset` of the script.
const CAPTURED: [(&str, &str); 10] = [
    ("p_one", "1"),
    ("p_two", "2"),
    ("txt", "abc"),
    ("b", "t"),
    ("n", "9"),
    ("d", "1.50"),
    ("i", "7"),
    ("y", "yes"),
    ("q_a", "1"),
    ("q_b2", "3"),
];

#[test]
fn statements_are_cut_and_filled_in_as_pgbench_does() {
    let text = include_str!("golden/statements.sql");
    check(text, 1, &CAPTURED, include_str!("golden/statements.out"));
}

#[test]
fn reports_show_the_texts_of_pgbench() {
    let (script, _) = prepare(include_str!("golden/statements.sql"), 1, &CAPTURED);
    let texts: Vec<_> = script
        .commands
        .iter()
        .map(|command| command.text.as_str())
        .collect();
    assert_eq!(
        texts.join("\n"),
        include_str!("golden/statements.report").trim_end_matches('\n')
    );
}

#[test]
fn a_builtin_script_runs() {
    let source = builtin("tpcb")
        .map(|builtin| builtin.source)
        .unwrap_or_default();
    let (script, mut vars) = prepare(source, 5432, &[]);
    assert!(script.warnings.is_empty(), "{:?}", script.warnings);
    let lines = trace(&script, &mut vars, 5432);
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[0], "sql BEGIN;");
    let account =
        lines[2].trim_start_matches("sql SELECT abalance FROM pgbench_accounts WHERE aid = ");
    let account: i64 = account.trim_end_matches(';').parse().unwrap_or(0);
    assert!((1..=100_000).contains(&account), "{}", lines[2]);
    assert_eq!(lines[6], "sql END;");
}
