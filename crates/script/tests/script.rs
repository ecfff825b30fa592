//! Commands, errors, warnings and control flow, one construct at a time.

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use loadstone_script::{
    Capture, CommandKind, QueryMode, RuntimeErrorKind, Script, ScriptError, ShellArg, Symbols,
    Value, Vars, builtin, builtins, check, parse, shell_command, trace,
};

fn parse_in(text: &str, mode: QueryMode) -> Result<(Script, Symbols), ScriptError> {
    let mut symbols = Symbols::new();
    parse("s.sql", text, mode, &mut symbols).map(|script| (script, symbols))
}

/// What a run of `text` does, lines joined by ` | `.
fn flow_in(text: &str, mode: QueryMode) -> String {
    match parse_in(text, mode) {
        Ok((script, _)) => trace(&script, &mut Vars::default(), 1).join(" | "),
        Err(error) => panic!("{error}"),
    }
}

fn flow(text: &str) -> String {
    flow_in(text, QueryMode::Simple)
}

fn error(text: &str) -> String {
    match parse_in(text, QueryMode::Extended) {
        Err(error) => {
            assert!(!error.hint.is_empty(), "no hint for {error}");
            error.to_string()
        }
        Ok((script, _)) => panic!("parsed {text:?} as {:?}", script.commands),
    }
}

#[test]
fn a_statement_takes_255_parameters_unless_it_is_sent_as_text() {
    let text = |count: usize| format!("SELECT {};", vec![":a"; count].join(","));
    assert!(parse_in(&text(255), QueryMode::Prepared).is_ok());
    assert!(parse_in(&text(256), QueryMode::Simple).is_ok());
    let message = error(&text(256));
    assert!(
        message.contains("statement has too many arguments (maximum is 255)"),
        "{message}"
    );
}

#[test]
fn variables_become_parameters_outside_the_simple_mode() {
    let text = "\\set a 5\n\\set n NULL\nSELECT :a::int, ':a', :n, :nope, :::a, a:b;";
    let prepared = "sql SELECT $1::int, '$2', $3, $4, :::a, a$5; [5, 5, NULL, (null), (null)]";
    assert_eq!(flow_in(text, QueryMode::Extended), prepared);
    assert_eq!(flow_in(text, QueryMode::Prepared), prepared);
    assert_eq!(
        flow(text),
        "sql SELECT 5::int, '5', NULL, :nope, :::a, a:b;"
    );
}

#[test]
fn what_replaces_a_variable_is_not_replaced_again() {
    let mut symbols = Symbols::new();
    let parsed = parse("s.sql", "SELECT :a;", QueryMode::Simple, &mut symbols);
    let mut vars = Vars::default();
    vars.set_text(symbols.intern("a"), ":a :b");
    let lines = parsed
        .map(|script| trace(&script, &mut vars, 1))
        .unwrap_or_default();
    assert_eq!(lines, ["sql SELECT :a :b;"]);
}

/// Each of these is one statement to psql's lexer.
#[test]
fn odd_tokens_end_where_psql_ends_them() {
    for text in [
        "a 1or$$ b;",
        "a :x$$;$$;",
        "a 11e--1\";\";",
        "a x$$;",
        "a 1e$$;",
        "a ::x$$;",
        "a $1b$$;",
        "a 1eE'\\';",
        "a $1$$;$$;",
        "a 1..2;",
        "a (1;(2;);3);",
        "a E'x\\';' ;",
        "a 'x\\' ;",
        "a U&'\\' ;",
    ] {
        let lines = flow(text);
        assert_eq!(lines, format!("sql {text}"));
    }
}

#[test]
fn exactly_one_branch_runs() {
    let text = |a: &str, b: &str, c: &str| {
        format!("\\if {a}\nA;\n\\elif {b}\nB;\n\\elif {c}\nC;\n\\else\nD;\n\\endif\nE;")
    };
    assert_eq!(flow(&text("1", "1", "1")), "sql A; | sql E;");
    assert_eq!(flow(&text("0", "true", "1")), "sql B; | sql E;");
    assert_eq!(flow(&text("NULL", "0.0", "-1")), "sql C; | sql E;");
    assert_eq!(flow(&text("false", "0", "NULL")), "sql D; | sql E;");
}

#[test]
fn conditions_behind_the_taken_branch_are_not_evaluated() {
    assert_eq!(
        flow("\\if 1\nA;\n\\elif 1/0\nB;\n\\elif debug(1)\n\\endif\nE;"),
        "sql A; | sql E;"
    );
    let nested =
        "\\if 0\n\\if 1/0\nA;\n\\else\nB;\n\\endif\n\\elif 1\n\\if 0\nC;\n\\endif\nD;\n\\endif";
    assert_eq!(flow(nested), "sql D;");
    assert_eq!(
        flow("\\if 0\nA;\n\\elif 1/0\nB;\n\\endif"),
        "error: line 3: \\elif: division by zero"
    );
}

#[test]
fn debug_tells_the_number_of_its_command() {
    let text = "SELECT 1 \\gset\n\\set x debug(2) + debug(2.5)\n\\if debug(NULL)\n\\elif debug(true)\n\\endif";
    let lines = "sql SELECT 1  | debug(script=0,command=2): int 2 | debug(script=0,command=2): double 2.5 | \
                 debug(script=0,command=3): null | debug(script=0,command=4): boolean true";
    assert_eq!(flow(text), lines);
}

#[test]
fn a_sleep_has_a_unit() {
    assert_eq!(flow("\\sleep 2"), "sleep 2000000000 ns");
    assert_eq!(flow("\\sleep 2 MS"), "sleep 2000000 ns");
    assert_eq!(flow("\\sleep 2us"), "sleep 2000 ns");
    assert_eq!(flow("\\sleep -2us"), "sleep 0 ns");
    assert_eq!(flow("\\set t 3\n\\sleep :t ms"), "sleep 3000000 ns");
    assert_eq!(flow("\\set t 3.9\n\\sleep :t us"), "sleep 3000 ns");
    assert_eq!(
        flow("\\sleep :t us"),
        "error: line 1: \\sleep: undefined variable \"t\""
    );
    let invalid = "error: line 2: \\sleep: invalid sleep time \"true\" for variable \"t\"";
    assert_eq!(flow("\\set t true\n\\sleep :t us"), invalid);
    assert_eq!(
        flow("\\sleep 99999999999999999999"),
        format!("sleep {} ns", u64::MAX)
    );
}

#[test]
fn setrandom_draws_like_random() {
    let old = "\\set m 5\n\\setrandom a 1 100000\n\\setrandom b -:m :m uniform\n\
               \\setrandom c 1 1000 gaussian 2.5\n\\setrandom d +1 1000 EXPONENTIAL 3\nSELECT :a, :b, :c, :d;";
    let new = "\\set m 5\n\\set a random(1, 100000)\n\\set b random(-:m, :m)\n\
               \\set c random_gaussian(1, 1000, 2.5)\n\\set d random_exponential(1, 1000, 3)\nSELECT :a, :b, :c, :d;";
    assert_eq!(flow(&old.replace("-:m", "-5")), flow(new));
    assert!(error(old).contains("invalid argument"), "{}", error(old));
}

#[test]
fn pipelines_open_and_close_once() {
    let run = |text| flow_in(text, QueryMode::Extended);
    let whole = "\\startpipeline\nA;\n\\syncpipeline\nB;\n\\endpipeline\nC;";
    assert_eq!(
        run(whole),
        "startpipeline | sql A; [] | syncpipeline | sql B; [] | endpipeline | sql C; []"
    );
    let twice = "startpipeline | error: line 2: \\startpipeline: already in pipeline mode";
    assert_eq!(run("\\startpipeline\n\\startpipeline"), twice);
    assert_eq!(
        run("\\endpipeline"),
        "error: line 1: \\endpipeline: not in pipeline mode"
    );
    assert_eq!(
        run("\\syncpipeline"),
        "error: line 1: \\syncpipeline: not in pipeline mode"
    );
    let open =
        "startpipeline | sql A; [] | error: line 2: end of script reached with pipeline open";
    assert_eq!(run("\\startpipeline\nA;"), open);
    let captured = "startpipeline | error: line 2: \\gset is not allowed in pipeline mode";
    assert_eq!(run("\\startpipeline\nA \\gset\n\\endpipeline"), captured);
    let simple =
        "error: line 1: \\startpipeline: cannot use pipeline mode with the simple query protocol";
    assert_eq!(flow(whole), simple);
}

#[test]
fn captures_belong_to_their_statement() {
    let text = "SELECT 1 AS a \\gset\nSELECT 2\\; SELECT 3 \\aset p_\nSELECT 4;\n\\gset q_";
    let (script, _) = parse_in(text, QueryMode::Simple).unwrap_or_else(|error| panic!("{error}"));
    let captures = script.commands.iter().map(|command| match &command.kind {
        CommandKind::Sql(statement) => (statement.group, statement.capture.clone()),
        other => panic!("{other:?}"),
    });
    let gset = |prefix: &str| {
        Some(Capture::Gset {
            prefix: prefix.into(),
        })
    };
    let aset = Some(Capture::Aset {
        prefix: "p_".into(),
    });
    assert_eq!(
        captures.collect::<Vec<_>>(),
        [(1, gset("")), (2, aset), (1, gset("q_"))]
    );
    let lines: Vec<_> = script.commands.iter().map(|command| command.line).collect();
    assert_eq!(lines, [1, 2, 3]);
}

#[test]
fn shell_commands_take_variables() {
    assert_eq!(
        flow("\\set n 4\n\\shell echo :n ::n a:n 'b c'\n\\setshell x expr :n \\\n + 1"),
        "shell echo 4 :n a:n 'b c' | setshell expr 4 + 1"
    );
    assert_eq!(flow("\\shell echo :n"), "error: undefined variable \":n\"");
    let args = [
        ShellArg::Text("x".repeat(254).into()),
        ShellArg::Text("y".into()),
    ];
    assert!(shell_command(&args[..1], &Vars::default()).is_ok());
    assert_eq!(
        shell_command(&args, &Vars::default()),
        Err(RuntimeErrorKind::ShellTooLong)
    );
}

#[test]
fn a_setshell_result_is_an_integer() {
    let id = Symbols::new().intern("x");
    let mut vars = Vars::default();
    for (output, value) in [
        ("12\n", 12),
        (" -7 \nnoise", -7),
        ("4294967297\n", 1),
        ("+3", 3),
    ] {
        assert_eq!(vars.set_shell_result(id, output), Ok(()), "{output:?}");
        assert_eq!(*vars.get(id), Value::Int(value));
    }
    for output in ["", "\n12", "1.5\n", "abc"] {
        assert!(vars.set_shell_result(id, output).is_err(), "{output:?}");
    }
}

/// What pgbench makes of `-D x=…` in `\set y debug(:x)`.
#[test]
fn text_is_read_when_an_expression_needs_it() {
    let seen = |text: &str| {
        let mut symbols = Symbols::new();
        let mut vars = Vars::default();
        vars.set_text(symbols.intern("x"), text);
        let script = parse(
            "s.sql",
            "\\set y debug(:x)\nSELECT :x;",
            QueryMode::Simple,
            &mut symbols,
        );
        let lines = trace(
            &script.unwrap_or_else(|error| panic!("{error}")),
            &mut vars,
            1,
        );
        if let Some(last) = lines.get(1) {
            assert_eq!(*last, format!("sql SELECT {text};"));
        }
        lines[0].rsplit(": ").next().unwrap_or("").to_owned()
    };
    let known = [
        ("NuLL", "null"),
        ("t", "boolean true"),
        ("YE", "boolean true"),
        ("on", "boolean true"),
        ("fals", "boolean false"),
        ("n", "boolean false"),
        ("of", "boolean false"),
        ("007", "int 7"),
        (" -12", "int -12"),
        ("+5", "int 5"),
        ("12 ", "\"12 \""),
        ("1.50", "double 1.5"),
        (".5e1", "double 5"),
        ("0x10", "double 16"),
        ("inf", "double Infinity"),
        ("nan", "double NaN"),
        ("o", "\"o\""),
        ("", "\"\""),
        ("abc", "\"abc\""),
        (
            "99999999999999999999",
            "value \"99999999999999999999\" is out of range for type bigint",
        ),
    ];
    for (text, value) in known {
        assert_eq!(seen(text), value, "{text:?}");
    }
}

fn warnings(text: &str, mode: QueryMode) -> Vec<String> {
    let (script, _) = parse_in(text, mode).unwrap_or_else(|error| panic!("{error}"));
    script.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn suspicious_scripts_are_warned_about() {
    let has = |text: &str, mode, piece: &str| {
        let warnings = warnings(text, mode);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(piece), "{warnings:?}");
    };
    has(
        "SELECT 1;\nSELECT :x, :x;",
        QueryMode::Extended,
        "line 2: nothing in this script sets :x, and will be sent as NULL",
    );
    has("SELECT :x;", QueryMode::Simple, "sent as it is written");
    has("\\set y :x", QueryMode::Simple, "the client will stop here");
    has("copy t FROM stdin;", QueryMode::Simple, "COPY");
    has("/* nothing */\n\\set x 1", QueryMode::Simple, "empty query");
    has(
        "SELECT 1\\; SELECT 2;",
        QueryMode::Prepared,
        "cannot be prepared",
    );
    has(
        "\\startpipeline\nSELECT 1;\n\\endpipeline",
        QueryMode::Simple,
        "-M extended",
    );
    let quiet = "COPY t FROM '/f';\nSELECT 1 AS x \\gset p_\nSELECT :p_x, :scale, :client_id;\n\\set z hash(1)";
    assert_eq!(warnings(quiet, QueryMode::Prepared), Vec::<String>::new());
}

#[test]
fn a_check_lists_commands_and_variables() {
    let text = "\\set a :scale + :given\n\\if :a\nSELECT :b, :a;\n\\endif\n\\sleep 1 ms\n";
    let report = check("s.sql", text, QueryMode::Simple, &["given".to_owned()]);
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.variables_used, ["a", "b", "given", "scale"]);
    assert_eq!(report.variables_unset, ["b"]);
    let json = serde_json::to_value(&report).unwrap_or_default();
    let first = serde_json::json!({"line": 1, "text": "\\set a :scale + :given", "kind": "set"});
    assert_eq!(json["commands"][0], first);
    let kinds: Vec<_> = report.commands.iter().map(|command| command.kind).collect();
    assert_eq!(kinds, ["set", "if", "sql", "endif", "sleep"]);
    assert_eq!(json["warnings"][0]["line"], 3);
    assert!(check("s.sql", "\\endif", QueryMode::Simple, &[]).is_err());
}

#[test]
fn a_builtin_is_found_by_the_start_of_its_name() {
    let name = |prefix| {
        builtin(prefix)
            .map(|found| found.name)
            .map_err(|error| error.to_string())
    };
    assert_eq!(name("tpcb-like"), Ok("tpcb-like"));
    assert_eq!(name("si"), Ok("simple-update"));
    assert_eq!(name("sel"), Ok("select-only"));
    let ambiguous = "ambiguous builtin name: 2 builtin scripts found for prefix \"s\"";
    assert_eq!(name("s"), Err(ambiguous.to_owned()));
    assert!(
        name("x").is_err_and(|text| text.starts_with("no builtin script found for name \"x\""))
    );
    assert_eq!(builtins().len(), 3);
}

#[test]
fn query_modes_have_names() {
    for mode in ["simple", "extended", "prepared"] {
        assert_eq!(
            mode.parse::<QueryMode>().map(|mode| mode.to_string()),
            Ok(mode.to_owned())
        );
    }
    assert!("fast".parse::<QueryMode>().is_err());
}
