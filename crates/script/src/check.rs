//! What a planner wants to know about a script without running it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::error::{ScriptError, Warning};
use crate::script::{Assigned, QueryMode, Script, parse, parse_as_pgbench, reads};
use crate::symbols::Symbols;

/// One command of a checked script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckedCommand {
    /// Line where it begins, from 1.
    pub line: u32,
    /// [`crate::Command::text`].
    pub text: String,
    /// [`crate::CommandKind::name`]: `sql`, `set`, `sleep`, `if`, …
    pub kind: &'static str,
}

/// A script's commands and variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// In the order of the text.
    pub commands: Vec<CheckedCommand>,
    /// Every variable that the script reads, sorted.
    pub variables_used: Vec<String>,
    /// Those among them that neither the script nor the user nor pgbench itself sets. Columns of
    /// `\gset` and `\aset` count as set as far as their prefix allows.
    pub variables_unset: Vec<String>,
    /// [`crate::Script::warnings`].
    pub warnings: Vec<Warning>,
}

/// Parses a script and says what is in it. `variables` are the names that the user defines.
pub fn check(
    name: &str,
    text: &str,
    mode: QueryMode,
    variables: &[String],
) -> Result<CheckReport, ScriptError> {
    check_by(parse, name, text, mode, variables)
}

/// As [`check`], of a script that [`parse_as_pgbench`] is to read.
pub fn check_as_pgbench(
    name: &str,
    text: &str,
    mode: QueryMode,
    variables: &[String],
) -> Result<CheckReport, ScriptError> {
    check_by(parse_as_pgbench, name, text, mode, variables)
}

type Parse = fn(&str, &str, QueryMode, &mut Symbols) -> Result<Script, ScriptError>;

fn check_by(
    parse: Parse,
    name: &str,
    text: &str,
    mode: QueryMode,
    variables: &[String],
) -> Result<CheckReport, ScriptError> {
    let mut symbols = Symbols::new();
    for variable in variables {
        symbols.intern(variable);
    }
    let defined = symbols.len();
    let script = parse(name, text, mode, &mut symbols)?;
    let assigned = Assigned::of(&script.commands);
    let mut used = BTreeSet::new();
    let mut unset = BTreeSet::new();
    for command in &script.commands {
        reads(command, &mut |id| {
            let name = symbols.name(id);
            used.insert(name.to_owned());
            if id.index() >= defined && !assigned.covers(id, name) {
                unset.insert(name.to_owned());
            }
        });
    }
    let commands = script.commands.into_iter().map(|command| CheckedCommand {
        line: command.line,
        kind: command.kind.name(),
        text: command.text,
    });
    Ok(CheckReport {
        commands: commands.collect(),
        variables_used: used.into_iter().collect(),
        variables_unset: unset.into_iter().collect(),
        warnings: script.warnings,
    })
}
