//! Where `\if`, `\elif` and `\else` lead to.

use super::{Command, CommandKind};
use crate::error::ScriptError;
use crate::source::Source;

/// An `\if` whose `\endif` was not seen yet.
struct Open {
    /// The `\if` or `\elif` that does not know yet where its false branch leads.
    pending: Option<usize>,
    /// Every `\elif` and `\else`: they need the place of the `\endif`.
    later: Vec<usize>,
    start: usize,
    has_else: bool,
}

/// Fills in the places that [`CommandKind::If`] and its kin jump to, and checks that they match.
pub(super) fn resolve(source: &Source<'_>, commands: &mut [Command]) -> Result<(), ScriptError> {
    let mut open: Vec<Open> = Vec::new();
    for index in 0..commands.len() {
        let name = match commands[index].kind {
            CommandKind::If { .. } => {
                let pending = Some(index);
                open.push(Open {
                    pending,
                    later: Vec::new(),
                    start: index,
                    has_else: false,
                });
                continue;
            }
            CommandKind::Elif { .. } => "elif",
            CommandKind::Else { .. } => "else",
            CommandKind::EndIf => "endif",
            _ => continue,
        };
        let Some(innermost) = open.last_mut() else {
            return Err(error(
                source,
                &commands[index],
                &format!("\\{name} without matching \\if"),
            ));
        };
        if name != "endif" && innermost.has_else {
            return Err(error(
                source,
                &commands[index],
                &format!("\\{name} after \\else"),
            ));
        }
        if let Some(pending) = innermost.pending.take() {
            lead(&mut commands[pending].kind, index);
        }
        match name {
            "endif" => {
                close(commands, &innermost.later, index);
                open.pop();
            }
            "else" => {
                innermost.has_else = true;
                innermost.later.push(index);
            }
            _ => {
                innermost.pending = Some(index);
                innermost.later.push(index);
            }
        }
    }
    match open.last() {
        Some(unclosed) => Err(error(
            source,
            &commands[unclosed.start],
            "\\if without matching \\endif",
        )),
        None => Ok(()),
    }
}

fn lead(kind: &mut CommandKind, place: usize) {
    if let CommandKind::If { on_false, .. } | CommandKind::Elif { on_false, .. } = kind {
        *on_false = place;
    }
}

fn close(commands: &mut [Command], later: &[usize], place: usize) {
    for &index in later {
        if let CommandKind::Elif { end, .. } | CommandKind::Else { end } = &mut commands[index].kind
        {
            *end = place;
        }
    }
}

fn error(source: &Source<'_>, command: &Command, what: &str) -> ScriptError {
    ScriptError {
        file: source.name.to_owned(),
        line: command.line,
        column: source.column_of_line(command.line, &command.text),
        message: format!("condition error: {what}"),
        found: command.text.clone(),
        hint: "every \\if needs one \\endif; \\elif and \\else stand between them, \\else last"
            .to_owned(),
    }
}
