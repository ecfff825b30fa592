//! What is said about a script that cannot be parsed, and about one that cannot go on.

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use loadstone_script::{QueryMode, Symbols, Vars, parse, parse_as_pgbench, trace};

fn error(text: &str) -> String {
    match parse("s.sql", text, QueryMode::Extended, &mut Symbols::new()) {
        Err(error) => {
            assert!(!error.hint.is_empty(), "no hint for {error}");
            error.to_string()
        }
        Ok(script) => panic!("parsed {text:?} as {:?}", script.commands),
    }
}

/// What a run of `text` does, lines joined by ` | `.
fn flow(text: &str) -> String {
    match parse("s.sql", text, QueryMode::Simple, &mut Symbols::new()) {
        Ok(script) => trace(&script, &mut Vars::default(), 1).join(" | "),
        Err(error) => panic!("{error}"),
    }
}

const MISTAKES: &[(&str, &str)] = &[
    (
        "\\set x 1 < 2 < 3",
        "s.sql:1:14: syntax error in command \"set\" (found \"<\")",
    ),
    (
        "SELECT 1;\n  \\set x",
        "s.sql:2:9: syntax error in command \"set\"",
    ),
    ("\\set", "s.sql:1:5: missing argument in command \"set\""),
    (
        "\\set 1x 2",
        "s.sql:1:6: invalid variable name in command \"set\" (found \"1x\")",
    ),
    (
        "\\set é yes",
        "s.sql:1:8: unexpected function name (yes) in command \"set\" (found \"yes\")",
    ),
    (
        "\\set x random(1)",
        "s.sql:1:8: unexpected number of arguments (random) in command \"set\" (found \"random\")",
    ),
    (
        "\\set x least()",
        "s.sql:1:8: at least one argument expected (least) in command \"set\" (found \"least\")",
    ),
    (
        "\\set x 1;",
        "s.sql:1:9: unexpected character \";\" in command \"set\" (found \";\")",
    ),
    (
        "\\set x 9223372036854775808",
        "s.sql:1:8: bigint constant overflow in command \"set\" (found \"9223372036854775808\")",
    ),
    (
        "\\set x 1e400",
        "s.sql:1:8: double constant overflow in command \"set\" (found \"1e400\")",
    ),
    ("\\if\n\\endif", "s.sql:1:4: syntax error in command \"if\""),
    (
        "\\bogus 1",
        "s.sql:1:2: invalid command in command \"bogus\" (found \"bogus\")",
    ),
    (
        "\\sleep 1 x",
        "s.sql:1:10: unrecognized time unit, must be us, ms or s in command \"sleep\" (found \"x\")",
    ),
    (
        "\\sleep x",
        "s.sql:1:8: invalid sleep time, must be an integer in command \"sleep\" (found \"x\")",
    ),
    (
        "\\sleep 1 us s",
        "s.sql:1:13: too many arguments in command \"sleep\" (found \"s\")",
    ),
    ("\\shell", "s.sql:1:7: missing command in command \"shell\""),
    (
        "\\setshell x",
        "s.sql:1:10: missing argument in command \"setshell\"",
    ),
    (
        "\\setrandom x 1 2 zipf 3",
        "s.sql:1:18: unexpected argument in command \"setrandom\" (found \"zipf\")",
    ),
    (
        "\\setrandom x 1 a",
        "s.sql:1:16: unexpected function name (a) in command \"setrandom\" (found \"a\")",
    ),
    (
        "\\endpipeline 1",
        "s.sql:1:14: unexpected argument in command \"endpipeline\" (found \"1\")",
    ),
    (
        "\\gset",
        "s.sql:1:1: \\gset must follow an SQL command (found \"\\gset\")",
    ),
    (
        "SELECT 1 \\gset\n\\aset",
        "s.sql:2:1: \\aset must follow an SQL command (found \"\\aset\")",
    ),
    (
        "SELECT 1 \\gset a b",
        "s.sql:1:18: too many arguments in command \"gset\" (found \"b\")",
    ),
    (
        "SELECT 1;\n \\endif",
        "s.sql:2:2: condition error: \\endif without matching \\if (found \"\\endif\")",
    ),
    (
        "\\if 1\n\\else\n\\else\n\\endif",
        "s.sql:3:1: condition error: \\else after \\else (found \"\\else\")",
    ),
    (
        "\\if 1\n\\else\n\\elif 1\n\\endif",
        "s.sql:3:1: condition error: \\elif after \\else (found \"\\elif 1\")",
    ),
    (
        "\\if 1\nSELECT 1;",
        "s.sql:1:1: condition error: \\if without matching \\endif (found \"\\if 1\")",
    ),
    ("-- nothing", "s.sql:1:1: empty command list for script"),
    (
        "SELECT 1,\n 'abc;\n",
        "s.sql:2:2: unterminated quoted string (found \"'abc;\")",
    ),
    (
        "SELECT $x$ abc $y$;",
        "s.sql:1:8: unterminated dollar-quoted string (found \"$x$ abc $y$;\")",
    ),
    (
        "SELECT /* /* */ 1;",
        "s.sql:1:8: unterminated comment (found \"/* /* */ 1;\")",
    ),
];

#[test]
fn mistakes_are_placed_and_named() {
    for &(text, message) in MISTAKES {
        assert_eq!(error(text), message);
    }
}

#[test]
fn runtime_errors_are_pgbenchs() {
    let known = [
        ("1/0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("9223372036854775807 + 1", "bigint add out of range"),
        ("-9223372036854775808 - 1", "bigint sub out of range"),
        ("9223372036854775807 * 2", "bigint mul out of range"),
        ("-9223372036854775808 / -1", "bigint div out of range"),
        ("- -9223372036854775808", "bigint sub out of range"),
        ("random(2, 1)", "empty range given to random"),
        (
            "random(0, 9223372036854775807)",
            "random range is too large",
        ),
        (
            "random_gaussian(1, 2, 1.9)",
            "gaussian parameter must be at least 2.000000 (not 1.900000)",
        ),
        (
            "random_zipfian(1, 2, 1)",
            "zipfian parameter must be in range [1.001, 1000] (not 1.000000)",
        ),
        (
            "random_exponential(1, 2, 0)",
            "exponential parameter must be greater than zero (not 0.000000)",
        ),
        (
            "permute(1, 0, 0)",
            "permute size parameter must be greater than zero",
        ),
        (
            "int(1e30)",
            "double to int overflow for 1000000000000000019884624838656.000000",
        ),
        ("int(exp(1000))", "double to int overflow for Infinity"),
        (
            "random(1, -exp(1000))",
            "double to int overflow for -Infinity",
        ),
        ("true + 1", "cannot coerce boolean to int"),
        ("true + 1.0", "cannot coerce boolean to double"),
        ("NOT 1", "cannot coerce int to boolean"),
        ("1 AND true", "cannot coerce int to boolean"),
        (
            ":nope",
            "undefined variable \"nope\" (set it with \\set, \\gset or -D)",
        ),
    ];
    for (text, message) in known {
        assert_eq!(
            flow(&format!("\\set x {text}")),
            format!("error: line 1: \\set: {message}")
        );
    }
    // What pgbench computes without complaint.
    assert_eq!(
        flow("\\set x debug(-9223372036854775808 % -1)"),
        "debug(script=0,command=1): int 0"
    );
    let minimum = "debug(script=0,command=1): int -9223372036854775808";
    assert_eq!(flow("\\set x debug(abs(-9223372036854775808))"), minimum);
}

#[test]
fn abs_takes_a_truth_value_as_pgbench_does() {
    let lowest = "debug(script=0,command=1): double 4.94065645841247e-324";
    assert_eq!(flow("\\set x debug(abs(1 = 1))"), lowest);
    let zero = "debug(script=0,command=1): double 0";
    assert_eq!(flow("\\set x debug(abs(false))"), zero);
}

/// What pgbench finds only when it runs the command ends its client, and not the run before it begins.
#[test]
fn what_does_not_end_is_left_to_the_server_as_pgbench_does() {
    for text in [
        "SELECT 1,\n 'abc;\n",
        "SELECT E'a\\'",
        "SELECT E'a' \n 'b\\",
        "SELECT \"a;",
        "SELECT $x$ abc $y$;",
        "SELECT /* /* */ 1;",
        "/* nothing else",
    ] {
        let script = parse_as_pgbench("s.sql", text, QueryMode::Simple, &mut Symbols::new());
        let script = script.expect(text);
        let sent = trace(&script, &mut Vars::new(0), 1);
        assert_eq!(sent, [format!("sql {text}")], "{text}");
    }
}

#[test]
fn mistakes_that_pgbench_finds_late_are_found_late() {
    let many = format!("\\set x least({})", vec!["1"; 17].join(", "));
    for (text, words) in [
        ("\\set . 1", "invalid variable name: \".\""),
        (many.as_str(), "too many function arguments, maximum is 16"),
    ] {
        let mode = QueryMode::Simple;
        assert!(parse("s.sql", text, mode, &mut Symbols::new()).is_err());
        let script = parse_as_pgbench("s.sql", text, mode, &mut Symbols::new()).expect(text);
        let lines = trace(&script, &mut Vars::default(), 1);
        assert_eq!(lines, [format!("error: line 1: \\set: {words}")]);
    }
    for text in ["\\set .", "\\set . 1 +", "\\set x least()"] {
        let parsed = parse_as_pgbench("s.sql", text, QueryMode::Simple, &mut Symbols::new());
        assert!(parsed.is_err(), "{text}");
    }
}

#[test]
fn a_shell_command_has_at_most_255_words() {
    let words = |count: usize| format!("\\shell {}", vec!["w"; count].join(" "));
    let parsed = |text: &str| parse("s.sql", text, QueryMode::Simple, &mut Symbols::new());
    assert!(parsed(&words(255)).is_ok());
    let error = parsed(&words(256)).expect_err("too many");
    assert_eq!(error.message, "too many arguments in command \"shell\"");
}
