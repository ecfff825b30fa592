//! What a script does that its author hardly means.

use std::collections::BTreeSet;

use super::{Command, CommandKind, QueryMode, SleepAmount};
use crate::error::Warning;
use crate::meta::ShellArg;
use crate::statement::Capture;
use crate::symbols::{Symbols, VarId};

/// Variables that pgbench sets itself.
pub(crate) const AUTOMATIC: [&str; 4] = ["client_id", "default_seed", "random_seed", "scale"];

/// The variables that `commands` set, and the prefixes of those whose names only the server knows.
#[derive(Debug, Default)]
pub(crate) struct Assigned<'a> {
    pub(crate) vars: BTreeSet<VarId>,
    pub(crate) prefixes: Vec<&'a str>,
}

impl<'a> Assigned<'a> {
    pub(crate) fn of(commands: &'a [Command]) -> Self {
        let mut assigned = Self::default();
        for command in commands {
            match &command.kind {
                CommandKind::Set { var, .. } | CommandKind::SetShell { var, .. } => {
                    assigned.vars.insert(*var);
                }
                CommandKind::Sql(statement) => {
                    assigned
                        .prefixes
                        .extend(statement.capture.as_ref().map(Capture::prefix));
                }
                _ => {}
            }
        }
        assigned
    }

    /// Whether `id` may get a value from these commands or from pgbench itself.
    pub(crate) fn covers(&self, id: VarId, name: &str) -> bool {
        self.vars.contains(&id)
            || AUTOMATIC.contains(&name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Calls `visit` with every variable that `command` reads.
pub(crate) fn reads(command: &Command, visit: &mut dyn FnMut(VarId)) {
    match &command.kind {
        CommandKind::Sql(statement) => statement.params.iter().copied().for_each(visit),
        CommandKind::Set { expr, .. }
        | CommandKind::If {
            condition: expr, ..
        }
        | CommandKind::Elif {
            condition: expr, ..
        } => expr.variables(visit),
        CommandKind::Shell { args } | CommandKind::SetShell { args, .. } => {
            for arg in args {
                if let ShellArg::Var(id, _) = arg {
                    visit(*id);
                }
            }
        }
        CommandKind::Sleep {
            amount: SleepAmount::Var(id, _),
            ..
        } => visit(*id),
        _ => {}
    }
}

/// `known` names were in `symbols` before this script was parsed: the user or another script of
/// the run has them.
pub(super) fn warnings(
    commands: &[Command],
    mode: QueryMode,
    symbols: &Symbols,
    known: usize,
) -> Vec<Warning> {
    let assigned = Assigned::of(commands);
    let mut warnings = Vec::new();
    let mut told = BTreeSet::new();
    for command in commands {
        let line = command.line;
        let mut warn = |message| warnings.push(Warning { line, message });
        reads(command, &mut |id| {
            let name = symbols.name(id);
            if id.index() >= known && !assigned.covers(id, name) && told.insert(id) {
                warn(unset_variable(name, &command.kind, mode));
            }
        });
        if let Some(message) = suspicious(&command.kind, mode) {
            warn(message);
        }
    }
    warnings
}

fn unset_variable(name: &str, kind: &CommandKind, mode: QueryMode) -> String {
    let effect = match kind {
        CommandKind::Sql(_) if mode == QueryMode::Simple => "and will be sent as it is written",
        CommandKind::Sql(_) => "and will be sent as NULL",
        _ => "and the client will stop here",
    };
    format!("nothing in this script sets :{name}, {effect}; set it with \\set or -D {name}=…")
}

fn suspicious(kind: &CommandKind, mode: QueryMode) -> Option<String> {
    match kind {
        CommandKind::StartPipeline if mode == QueryMode::Simple => Some(
            "\\startpipeline fails in the query mode \"simple\": run with -M extended or -M prepared"
                .to_owned(),
        ),
        CommandKind::Sql(statement) => {
            if copies(&statement.prepared) {
                let text = "COPY FROM STDIN and TO STDOUT are not supported in a script: \
                            the client will stop; COPY a file on the server, or INSERT";
                return Some(text.to_owned());
            }
            if is_comment(&statement.prepared) {
                let text = "a /* */ comment without a statement is sent as an empty query; \
                            write -- instead";
                return Some(text.to_owned());
            }
            if statement.group > 1 && mode != QueryMode::Simple {
                let text = "statements joined by \\; cannot be prepared: \
                            run with -M simple, or end each with a plain semicolon";
                return Some(text.to_owned());
            }
            None
        }
        _ => None,
    }
}

fn copies(sql: &str) -> bool {
    let mut words = sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_any = |word: &str, of: &[&str]| of.iter().any(|w| word.eq_ignore_ascii_case(w));
    words.next().is_some_and(|first| is_any(first, &["copy"]))
        && words.any(|word| is_any(word, &["stdin", "stdout"]))
}

/// Whether `sql` holds one block comment and nothing else.
fn is_comment(sql: &str) -> bool {
    let sql = sql.trim_end();
    sql.starts_with("/*") && sql.find("*/").is_some_and(|end| end + 2 == sql.len())
}
