//! Scripts as one transaction with a last statement of the driver's own.

use std::ops::Range;

use super::{Command, CommandKind};
use crate::error::ScriptError;
use crate::source::Source;
use crate::statement::Statement;
use crate::symbols::Symbols;

/// What a statement does to the transaction that it is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    Begin,
    Commit,
    /// It ends the transaction in another way, or together with others.
    Other,
}

/// Put `last` before the COMMIT of the only transaction; a script without one becomes one. Returns the place of
/// the COMMIT.
pub(super) fn enclose(
    source: &Source<'_>,
    commands: &mut Vec<Command>,
    symbols: &mut Symbols,
    last: &str,
) -> Result<usize, ScriptError> {
    let controls: Vec<_> = (0..)
        .zip(commands.iter())
        .filter_map(|(at, command)| control(command).map(|what| (at, what)))
        .collect();
    let commit = match controls.as_slice() {
        [] => {
            let (first, end) = (
                commands.first().map_or(1, |c| c.line),
                commands.last().map_or(1, |c| c.line),
            );
            commands.insert(0, statement("begin", first, symbols));
            commands.push(statement("commit", end, symbols));
            commands.len() - 1
        }
        [(begin, Control::Begin), (commit, Control::Commit)]
            if depth(commands, 0..*begin) == 0 && depth(commands, 0..*commit) == 0 =>
        {
            *commit
        }
        [.., (at, _)] => return Err(refused(source, &commands[*at])),
    };
    let line = commands[commit].line;
    commands.insert(commit, statement(last, line, symbols));
    Ok(commit + 1)
}

/// How many `\if` are open behind these commands.
fn depth(commands: &[Command], range: Range<usize>) -> usize {
    commands[range]
        .iter()
        .fold(0, |depth, command| match command.kind {
            CommandKind::If { .. } => depth + 1,
            CommandKind::EndIf => depth - usize::from(depth > 0),
            _ => depth,
        })
}

fn statement(sql: &str, line: u32, symbols: &mut Symbols) -> Command {
    Command {
        line,
        text: sql.to_owned(),
        kind: CommandKind::Sql(Statement::new(sql, 1, symbols)),
    }
}

fn refused(source: &Source<'_>, command: &Command) -> ScriptError {
    let start = source.line_start(command.line);
    let end = source.text[start..]
        .find('\n')
        .map_or(source.text.len(), |length| start + length);
    let hint = "a script whose commits are to be found again is one transaction: write BEGIN and COMMIT once \
                each, outside of \\if, as statements of their own, or leave both out";
    source.error(
        start..end,
        "this is not the only transaction of the script",
        hint,
    )
}

fn control(command: &Command) -> Option<Control> {
    let CommandKind::Sql(statement) = &command.kind else {
        return None;
    };
    if statement.group > 1 {
        // Several in one message: they may be a transaction by themselves.
        let mut parts = statement.prepared.split(';');
        return parts.find_map(control_of).map(|_| Control::Other);
    }
    control_of(&statement.prepared)
}

fn control_of(sql: &str) -> Option<Control> {
    let mut words = words(sql);
    let first = words.next()?.to_ascii_lowercase();
    let second = words.next().unwrap_or_default().to_ascii_lowercase();
    match (first.as_str(), second.as_str()) {
        ("begin", _) | ("start", "transaction") => Some(Control::Begin),
        ("commit" | "rollback", "prepared") | ("prepare", "transaction") | ("abort", _) => {
            Some(Control::Other)
        }
        ("commit" | "end", _) => Some(Control::Commit),
        ("rollback", _) if !has_savepoint(sql) => Some(Control::Other),
        _ => None,
    }
}

/// `ROLLBACK [WORK | TRANSACTION] TO …` leaves the transaction open.
fn has_savepoint(sql: &str) -> bool {
    words(sql)
        .take(3)
        .any(|word| word.eq_ignore_ascii_case("to"))
}

/// The words of a statement, without its comments.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    let mut rest = sql;
    std::iter::from_fn(move || {
        rest = after_comments(rest);
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let word;
        (word, rest) = rest.split_at(end);
        (!word.is_empty()).then_some(word)
    })
}

fn after_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        let end = if rest.starts_with("--") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|at| at + 1)
        } else {
            return rest;
        };
        rest = end.map_or("", |end| rest[end + 1..].trim_start());
    }
}
