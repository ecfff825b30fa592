//! What must hold for any text and any expression.

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use loadstone_gen::random::Prng;
use loadstone_script::{
    CommandKind, EvalContext, EvalError, Expr, Machine, Next, QueryMode, Scalar, Symbols, Value,
    Vars, parse,
};
use proptest::prelude::*;

/// The expression of `\set x …` and its variables, `:a` an integer, `:b` a double, `:c` null.
fn expression(text: &str) -> Result<(Expr, Vars), String> {
    let mut symbols = Symbols::new();
    let mut vars = Vars::default();
    let values = [
        ("a", Value::Int(7)),
        ("b", Value::Double(-2.5)),
        ("c", Value::Null),
    ];
    for (name, value) in values {
        vars.set(symbols.intern(name), value);
    }
    vars.set(symbols.intern("default_seed"), Value::Int(99));
    let source = format!("\\set x {text}");
    let script = parse("x", &source, QueryMode::Simple, &mut symbols).map_err(|e| e.to_string())?;
    match &script.commands[0].kind {
        CommandKind::Set { expr, .. } => Ok((expr.clone(), vars)),
        other => Err(format!("{other:?}")),
    }
}

fn value(text: &str) -> (String, Result<Scalar, EvalError>) {
    let (expr, mut vars) = match expression(text) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{text}: {error}"),
    };
    let mut prng = Prng::from_seed(5);
    let mut debug = |_: &str| {};
    let mut cx = EvalContext::new(&mut vars, &mut prng, &mut debug);
    let value = expr.scalar(&mut cx);
    (expr.to_string(), value)
}

/// Text of a value, so that two NaN are equal.
fn text_of(value: &Result<Scalar, EvalError>) -> String {
    format!("{value:?}")
}

fn operand() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|v| v.to_string()),
        (-20_i64..20).prop_map(|v| v.to_string()),
        any::<f64>()
            .prop_filter("finite", |v| v.is_finite())
            .prop_map(|v| format!("{v:?}")),
        (-9.0..9.0).prop_map(|v: f64| format!("{v:.2}")),
        Just("9223372036854775807".to_owned()),
        Just("NULL".to_owned()),
        Just("true".to_owned()),
        Just("FALSE".to_owned()),
        Just(":a".to_owned()),
        Just(":b".to_owned()),
        Just(":c".to_owned()),
    ]
}

fn any_expression() -> impl Strategy<Value = String> {
    let operators = vec![
        "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "&", "|", "#", "<<", ">>", "AND",
        "or",
    ];
    let functions = vec![
        "abs",
        "int",
        "double",
        "sqrt",
        "exp",
        "ln",
        "debug",
        "hash",
        "hash_fnv1a",
    ];
    let pairs = vec![
        "random",
        "pow",
        "mod",
        "least",
        "greatest",
        "permute",
        "hash_murmur2",
    ];
    operand().prop_recursive(6, 40, 3, move |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (pair.clone(), prop::sample::select(operators.clone()))
                .prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            inner.clone().prop_map(|a| format!("- ({a})")),
            inner.clone().prop_map(|a| format!("~ ({a})")),
            inner.clone().prop_map(|a| format!("NOT ({a})")),
            inner.clone().prop_map(|a| format!("({a}) IS NOT NULL")),
            inner.clone().prop_map(|a| format!("({a}) is true")),
            (inner.clone(), prop::sample::select(functions.clone()))
                .prop_map(|(a, name)| format!("{name}({a})")),
            (pair.clone(), prop::sample::select(pairs.clone()))
                .prop_map(|((a, b), name)| format!("{name}({a}, {b})")),
            (pair, inner).prop_map(|((a, b), c)| format!("CASE WHEN {a} THEN {b} ELSE {c} END")),
        ]
    })
}

/// Pieces that scripts are made of, in any order.
fn script_text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "\\set x ",
        "\\if ",
        "\\elif ",
        "\\else\n",
        "\\endif\n",
        "\\sleep ",
        "\\gset ",
        "\\aset",
        "\\shell ",
        "\\setshell ",
        "\\setrandom ",
        "\\startpipeline\n",
        "\\endpipeline\n",
        "\\;",
        "\\:",
        "\\",
        "\n",
        "\\\n",
        " ",
        ";",
        "'",
        "\"",
        "$$",
        "$a$",
        "E'",
        "/*",
        "*/",
        "--",
        "(",
        ")",
        ":x",
        "::int",
        ":",
        ":{?x}",
        "1",
        "2.5",
        "random(1,10)",
        "+",
        "<",
        "CASE ",
        "WHEN ",
        "THEN ",
        "END",
        "NULL",
        "x ",
        "SELECT ",
        "CREATE FUNCTION f() BEGIN ",
        "us",
        "\r\n",
        "é",
        "\0",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Parses `text` in all modes and runs what comes out. Returns whether it was a script at all.
fn survive(text: &str) -> Result<bool, TestCaseError> {
    let mut parsed = false;
    for mode in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        let mut symbols = Symbols::new();
        let Ok(script) = parse("any", text, mode, &mut symbols) else {
            continue;
        };
        parsed = true;
        let mut vars = Vars::new(symbols.len());
        let mut prng = Prng::from_seed(1);
        let mut debug = |_: &str| {};
        let mut machine = Machine::new();
        for _ in 0..=script.commands.len() {
            let mut cx = EvalContext::new(&mut vars, &mut prng, &mut debug);
            match machine.next(&script, &mut cx) {
                Ok(Next::End) | Err(_) => return Ok(true),
                Ok(Next::Sql(index)) => {
                    if let CommandKind::Sql(statement) = &script.commands[index].kind {
                        statement.write_simple(&vars, &mut Vec::new());
                    }
                }
                Ok(_) => {}
            }
        }
        prop_assert!(false, "more steps than commands");
    }
    Ok(parsed)
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_or_the_machine_panic(text in script_text()) {
        survive(&text)?;
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        survive(&String::from_utf8_lossy(&bytes))?;
    }

    #[test]
    fn a_printed_expression_has_the_value_of_the_parsed_one(text in any_expression()) {
        let (printed, first) = value(&text);
        let (again, second) = value(&printed);
        prop_assert_eq!(text_of(&first), text_of(&second), "{} printed as {}", text, &printed);
        let (_, third) = value(&again);
        prop_assert_eq!(text_of(&second), text_of(&third));
    }

    #[test]
    fn doubles_are_written_with_fifteen_digits(number in any::<f64>()) {
        let mut text = Vec::new();
        Scalar::Double(number).write_text(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        prop_assert!(text.len() <= 22, "{}", text);
        let back: f64 = text.parse().unwrap_or(f64::NAN);
        let close = (back - number).abs() <= number.abs() * 1e-14;
        // The largest doubles round up to infinity, which is then written out.
        prop_assert!(close || number.is_nan() || !back.is_finite(), "{} became {}", number, text);
    }

    #[test]
    fn integers_are_written_in_full(number in any::<i64>()) {
        let mut text = Vec::new();
        Scalar::Int(number).write_text(&mut text);
        prop_assert_eq!(String::from_utf8_lossy(&text).into_owned(), number.to_string());
    }

    #[test]
    fn outside_text_goes_into_statements_unchanged(text in any::<String>()) {
        let mut symbols = Symbols::new();
        let id = symbols.intern("t");
        let mut vars = Vars::new(1);
        vars.set_text(id, &text);
        let mut out = Vec::new();
        prop_assert!(vars.write_text(id, &mut out));
        prop_assert_eq!(out, text.into_bytes());
    }
}

#[test]
fn deep_expressions_are_refused_instead_of_overflowing_the_stack() {
    let deep = [
        format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        "- ".repeat(100_000) + "1",
        "not ".repeat(100_000) + "true",
        vec![":a"; 100_000].join("+"),
        format!("{}1", "abs(".repeat(100_000)),
        "1".to_owned() + &" is null".repeat(100_000),
        "case when ".repeat(100_000),
    ];
    for text in deep {
        match expression(&text) {
            Err(error) => assert!(error.contains("nested too deeply"), "{error}"),
            Ok((expr, _)) => assert!(expr.to_string().len() < 100, "kept a deep expression"),
        }
    }
}
