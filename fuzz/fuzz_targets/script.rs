//! Any bytes as a pgbench script: parsing them and running the result never panics and always
//! comes to an end. The same bytes as SQL: what is found lies in the text, in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadstone_gen::random::Prng;
use loadstone_script::{
    CommandKind, EvalContext, Machine, Next, QueryMode, Symbols, Vars, parse, scan_sql,
    shell_command,
};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for mode in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        run(&text, mode);
    }
    if let Ok(found) = scan_sql("fuzz", &text) {
        for ranges in [&found.statements, &found.names] {
            assert!(ranges.is_sorted_by(|one, other| one.end <= other.start));
            assert!(ranges.iter().all(|range| text.get(range.clone()).is_some()));
        }
    }
});

fn run(text: &str, mode: QueryMode) {
    let mut symbols = Symbols::new();
    let script = match parse("fuzz", text, mode, &mut symbols) {
        Ok(script) => script,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1 && !error.hint.is_empty());
            return;
        }
    };
    let mut vars = Vars::new(symbols.len());
    if let Some(id) = symbols.get("a") {
        vars.set_text(id, text);
    }
    let mut prng = Prng::from_seed(1);
    let mut debug = |_: &str| {};
    let mut machine = Machine::new();
    let mut message = Vec::new();
    // Jumps only lead forward: each command is reached once at most.
    for _ in 0..=script.commands.len() {
        let mut cx = EvalContext::new(&mut vars, &mut prng, &mut debug);
        match machine.next(&script, &mut cx) {
            Ok(Next::End) | Err(_) => return,
            Ok(Next::Sql(index) | Next::Shell(index)) => match &script.commands[index].kind {
                CommandKind::Sql(statement) => {
                    message.clear();
                    statement.write_simple(&vars, &mut message);
                }
                CommandKind::Shell { args } | CommandKind::SetShell { args, .. } => {
                    let _ = shell_command(args, &vars);
                }
                other => panic!("{other:?} is no command of this step"),
            },
            Ok(Next::Sleep { .. } | Next::Pipeline(_) | Next::Yield) => {}
        }
    }
    panic!("the script did not end");
}
