//! A parsed script: its commands in order, with all jumps resolved.

mod conditions;
mod enclosed;
mod warnings;

pub(crate) use warnings::{Assigned, reads};

use std::fmt;
use std::str::FromStr;

use crate::error::{ScriptError, Warning};
use crate::expr::Expr;
use crate::meta::{Meta, MetaCommand, ShellArg, parse_meta};
use crate::source::Source;
use crate::sql::{Piece, SqlScanner, Stop};
use crate::statement::Statement;
use crate::symbols::{Symbols, VarId};

/// How statements reach the server: pgbench's `-M`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueryMode {
    /// One text message, variables replaced in it.
    #[default]
    Simple,
    /// Parse, bind and execute each time.
    Extended,
    /// Parsed once per connection, then bound and executed.
    Prepared,
}

impl FromStr for QueryMode {
    type Err = QueryModeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "simple" => Ok(Self::Simple),
            "extended" => Ok(Self::Extended),
            "prepared" => Ok(Self::Prepared),
            _ => Err(QueryModeError(text.to_owned())),
        }
    }
}

impl fmt::Display for QueryMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simple => "simple",
            Self::Extended => "extended",
            Self::Prepared => "prepared",
        })
    }
}

/// A query mode that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid query mode (-M): \"{0}\": give simple, extended or prepared")]
pub struct QueryModeError(pub String);

/// How long `\sleep` sleeps, in the unit of its command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SleepAmount {
    /// A number in the script; a negative one was made 0.
    Literal(u64),
    /// The number with which the variable's text begins. The second field is the name.
    Var(VarId, Box<str>),
}

/// What a command does. Places are indexes into [`Script::commands`].
#[derive(Clone, Debug, PartialEq)]
pub enum CommandKind {
    /// Sends SQL.
    Sql(Statement),
    /// Stores the value of an expression.
    Set {
        /// Where to.
        var: VarId,
        /// What.
        expr: Expr,
    },
    /// Fails: its variable has no name that a variable may have.
    SetUnnamed {
        /// What stands there.
        name: Box<str>,
    },
    /// Stores the integer that a shell command prints.
    SetShell {
        /// Where to.
        var: VarId,
        /// See [`crate::shell_command`].
        args: Vec<ShellArg>,
    },
    /// Runs a shell command, which must succeed.
    Shell {
        /// See [`crate::shell_command`].
        args: Vec<ShellArg>,
    },
    /// Waits.
    Sleep {
        /// How many units.
        amount: SleepAmount,
        /// How long a unit is.
        unit_ns: u64,
    },
    /// Goes on with the next command if the condition holds, else *branches* to `on_false`.
    If {
        /// See [`crate::Scalar::truth`].
        condition: Expr,
        /// The `\elif`, `\else` or `\endif` of the same level that comes next.
        on_false: usize,
    },
    /// Reached by a branch: like [`CommandKind::If`]. Reached from the command before it: an
    /// earlier branch was taken, so go on at `end` without evaluating anything.
    Elif {
        /// See [`crate::Scalar::truth`].
        condition: Expr,
        /// The `\elif`, `\else` or `\endif` of the same level that comes next.
        on_false: usize,
        /// The `\endif` of the same level.
        end: usize,
    },
    /// Reached by a branch: go on with the next command. Reached from the command before it: go on
    /// at `end`.
    Else {
        /// The `\endif` of the same level.
        end: usize,
    },
    /// Does nothing, however it is reached.
    EndIf,
    /// Statements from here on are sent without waiting for their results.
    StartPipeline,
    /// Sends a synchronization point without waiting for it.
    SyncPipeline,
    /// Sends a synchronization point and waits for all results.
    EndPipeline,
}

impl CommandKind {
    /// The command's name in lower case: `sql`, `set`, `sleep`, `if`, …
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Sql(_) => "sql",
            Self::Set { .. } | Self::SetUnnamed { .. } => "set",
            Self::SetShell { .. } => "setshell",
            Self::Shell { .. } => "shell",
            Self::Sleep { .. } => "sleep",
            Self::If { .. } => "if",
            Self::Elif { .. } => "elif",
            Self::Else { .. } => "else",
            Self::EndIf => "endif",
            Self::StartPipeline => "startpipeline",
            Self::SyncPipeline => "syncpipeline",
            Self::EndPipeline => "endpipeline",
        }
    }
}

/// One command of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Line where it begins, from 1.
    pub line: u32,
    /// What `pgbench -r` shows for it: the first line of a statement, at most 127 bytes; all of a
    /// backslash command.
    pub text: String,
    /// What it does.
    pub kind: CommandKind,
}

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// As given to [`parse`].
    pub name: String,
    /// The query mode it was parsed for.
    pub mode: QueryMode,
    /// In the order of the text; pgbench's command numbers are these indexes (`\gset` and `\aset`
    /// belong to their statement and have none).
    pub commands: Vec<Command>,
    /// What is suspicious about it.
    pub warnings: Vec<Warning>,
}

/// Longest first line of a statement in reports, in bytes.
const FIRST_LINE_BYTES_MAX: usize = 127;

/// Parses a pgbench script. Its variables are interned in `symbols`, which the scripts of one run
/// share; intern `-D` names first, so that they are not taken for mistakes.
pub fn parse(
    name: &str,
    source: &str,
    mode: QueryMode,
    symbols: &mut Symbols,
) -> Result<Script, ScriptError> {
    parse_source(&Source::new(name, source), mode, symbols, |_, _, _| Ok(()))
        .map(|(script, ())| script)
}

/// As [`parse`], but what pgbench notices only when it runs the command is an error of the run here too.
pub fn parse_as_pgbench(
    name: &str,
    source: &str,
    mode: QueryMode,
    symbols: &mut Symbols,
) -> Result<Script, ScriptError> {
    let mut source = Source::new(name, source);
    source.late = true;
    parse_source(&source, mode, symbols, |_, _, _| Ok(())).map(|(script, ())| script)
}

/// As [`parse`], but the script is one transaction, at whose end stands the statement `last`: before its own
/// COMMIT, or before one that is added with a BEGIN. Also returns the place of the COMMIT.
pub fn parse_enclosed(
    name: &str,
    source: &str,
    mode: QueryMode,
    symbols: &mut Symbols,
    last: &str,
) -> Result<(Script, usize), ScriptError> {
    let enclose = |source: &Source<'_>, commands: &mut Vec<Command>, symbols: &mut Symbols| {
        enclosed::enclose(source, commands, symbols, last)
    };
    parse_source(&Source::new(name, source), mode, symbols, enclose)
}

fn parse_source<T>(
    source: &Source<'_>,
    mode: QueryMode,
    symbols: &mut Symbols,
    edit: impl FnOnce(&Source<'_>, &mut Vec<Command>, &mut Symbols) -> Result<T, ScriptError>,
) -> Result<(Script, T), ScriptError> {
    let known = symbols.len();
    let mut builder = Builder {
        source,
        mode,
        symbols,
        commands: Vec::new(),
    };
    builder.run()?;
    let mut commands = builder.commands;
    if commands.is_empty() {
        let hint = "write at least one SQL statement or backslash command";
        return Err(source.error(0..0, "empty command list for script", hint));
    }
    let edited = edit(source, &mut commands, symbols)?;
    conditions::resolve(source, &mut commands)?;
    let warnings = warnings::warnings(&commands, mode, symbols, known);
    let script = Script {
        name: source.name.to_owned(),
        mode,
        commands,
        warnings,
    };
    Ok((script, edited))
}

struct Builder<'a> {
    source: &'a Source<'a>,
    mode: QueryMode,
    symbols: &'a mut Symbols,
    commands: Vec<Command>,
}

impl Builder<'_> {
    fn run(&mut self) -> Result<(), ScriptError> {
        let mut scanner = SqlScanner::new(self.source);
        loop {
            let piece = scanner.next()?;
            let stop = piece.stop;
            self.push_sql(&piece)?;
            match stop {
                Stop::Semicolon => {}
                Stop::End => return Ok(()),
                Stop::Backslash => {
                    let backslash = scanner.at - 1;
                    let (command, end) = parse_meta(self.source, backslash, self.symbols)?;
                    scanner.at = end;
                    if let Some(command) = command {
                        self.push_meta(command)?;
                    }
                }
            }
        }
    }

    fn push_sql(&mut self, piece: &Piece) -> Result<(), ScriptError> {
        if piece.sql.is_empty() {
            return Ok(());
        }
        let statement = Statement::new(&piece.sql, piece.statements, self.symbols);
        statement.check(self.mode, self.source, piece.start)?;
        let first_line = piece.sql.split(['\n', '\r']).next().unwrap_or("");
        let length = first_line.floor_char_boundary(FIRST_LINE_BYTES_MAX);
        self.commands.push(Command {
            line: self.source.line(piece.start),
            text: first_line[..length].to_owned(),
            kind: CommandKind::Sql(statement),
        });
        Ok(())
    }

    fn push_meta(&mut self, command: MetaCommand) -> Result<(), ScriptError> {
        let MetaCommand { meta, range } = command;
        match meta {
            Meta::Command(kind) => self.commands.push(Command {
                line: self.source.line(range.start),
                text: self.source.text[range].to_owned(),
                kind,
            }),
            Meta::Capture(capture) => {
                let last = self.commands.last_mut().map(|command| &mut command.kind);
                let Some(CommandKind::Sql(statement @ Statement { capture: None, .. })) = last
                else {
                    let message = format!("\\{} must follow an SQL command", capture.name());
                    let hint = "put it directly behind the statement whose result it stores";
                    return Err(self.source.error(range, message, hint));
                };
                statement.capture = Some(capture);
            }
        }
        Ok(())
    }
}
