//! A script's run without a server, as text: for tests and for looking at a script.

use loadstone_gen::random::SeedSequence;

use crate::expr::EvalContext;
use crate::machine::{Machine, Next};
use crate::meta::shell_command;
use crate::script::{CommandKind, QueryMode, Script};
use crate::value::Vars;

/// Runs `script` once as the first client of a run with this random seed, and returns one line for everything that a driver would have had to do, and
/// for every line of `debug()`. Statements have no results, so `\gset` sets nothing. An error is
/// the last line.
pub fn trace(script: &Script, vars: &mut Vars, seed: u64) -> Vec<String> {
    let mut prng = SeedSequence::new(seed).next_prng();
    let mut machine = Machine::new();
    let mut lines = Vec::new();
    loop {
        let mut debug = |line: &str| lines.push(line.to_owned());
        let mut cx = EvalContext::new(vars, &mut prng, &mut debug);
        let next = machine.next(script, &mut cx);
        let line = match next {
            Ok(Next::End) => return lines,
            Ok(Next::Yield) => continue,
            Ok(Next::Sleep { ns }) => format!("sleep {ns} ns"),
            Ok(Next::Sql(index) | Next::Shell(index) | Next::Pipeline(index)) => {
                act(script, index, vars)
            }
            Err(error) => {
                lines.push(format!("error: {error}"));
                return lines;
            }
        };
        lines.push(line);
    }
}

fn act(script: &Script, index: usize, vars: &Vars) -> String {
    match &script.commands[index].kind {
        CommandKind::Sql(statement) if script.mode == QueryMode::Simple => {
            let mut text = Vec::new();
            statement.write_simple(vars, &mut text);
            format!("sql {}", String::from_utf8_lossy(&text))
        }
        CommandKind::Sql(statement) => {
            let params = statement.params.iter().map(|&id| {
                let mut text = Vec::new();
                let set = vars.write_text(id, &mut text);
                if set {
                    String::from_utf8_lossy(&text).into_owned()
                } else {
                    "(null)".to_owned()
                }
            });
            let params: Vec<_> = params.collect();
            format!("sql {} [{}]", statement.prepared, params.join(", "))
        }
        kind @ (CommandKind::Shell { args } | CommandKind::SetShell { args, .. }) => {
            match shell_command(args, vars) {
                Ok(line) => format!("{} {line}", kind.name()),
                Err(error) => format!("error: {error}"),
            }
        }
        kind => kind.name().to_owned(),
    }
}
