//! Backslash commands.

use std::ops::Range;

use crate::error::{RuntimeErrorKind, ScriptError};
use crate::expr::{Expr, Function, Node, parse_expression, parse_operand};
use crate::number;
use crate::script::{CommandKind, SleepAmount};
use crate::source::Source;
use crate::statement::Capture;
use crate::symbols::{Symbols, VarId, is_variable_name};
use crate::value::Vars;

/// One word of a shell command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellArg {
    /// Passed as it is.
    Text(Box<str>),
    /// Replaced by the variable's text. The second field is the name, for the error.
    Var(VarId, Box<str>),
}

/// Longest shell command in bytes, as in pgbench.
const SHELL_BYTES_MAX: usize = 254;
/// Most words of a backslash command that runs a shell, its own name excluded, as in pgbench.
const SHELL_WORDS_MAX: usize = 255;

/// The command line of a `\shell` or `\setshell`, its words joined by spaces: hand it to `/bin/sh`.
///
/// For `\setshell`, give the first line of the output to [`Vars::set_shell_result`].
pub fn shell_command(args: &[ShellArg], vars: &Vars) -> Result<String, RuntimeErrorKind> {
    let mut line = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        if index > 0 {
            line.push(b' ');
        }
        match arg {
            ShellArg::Text(text) => line.extend_from_slice(text.as_bytes()),
            ShellArg::Var(id, name) => {
                if !vars.write_text(*id, &mut line) {
                    let name = format!(":{name}").into();
                    return Err(RuntimeErrorKind::Undefined { name });
                }
            }
        }
        if line.len() > SHELL_BYTES_MAX {
            return Err(RuntimeErrorKind::ShellTooLong);
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// What a backslash command is, before its place among the others is known.
#[derive(Debug)]
pub(crate) enum Meta {
    Command(CommandKind),
    Capture(Capture),
}

/// A backslash command and where it is in the text.
#[derive(Debug)]
pub(crate) struct MetaCommand {
    pub(crate) meta: Meta,
    /// From the backslash to the end of its line, line end excluded.
    pub(crate) range: Range<usize>,
}

/// Reads the command whose backslash is at `start`, `None` if nothing follows the backslash on its
/// line, and the offset where scanning goes on.
pub(crate) fn parse_meta(
    source: &Source<'_>,
    start: usize,
    symbols: &mut Symbols,
) -> Result<(Option<MetaCommand>, usize), ScriptError> {
    let mut words = Words {
        source,
        at: start + 1,
        ended: false,
    };
    let Some(name) = words.next() else {
        return Ok((None, words.at));
    };
    let command = source.text[name.clone()].to_ascii_lowercase();
    let mut reader = Reader {
        source,
        words,
        symbols,
        name,
    };
    let meta = match command.as_str() {
        "set" => reader.set()?,
        "setrandom" => reader.set_random()?,
        "if" => Meta::Command(CommandKind::If {
            condition: reader.expression()?,
            on_false: 0,
        }),
        "elif" => {
            let condition = reader.expression()?;
            Meta::Command(CommandKind::Elif {
                condition,
                on_false: 0,
                end: 0,
            })
        }
        "else" => reader.alone(CommandKind::Else { end: 0 })?,
        "endif" => reader.alone(CommandKind::EndIf)?,
        "startpipeline" => reader.alone(CommandKind::StartPipeline)?,
        "syncpipeline" => reader.alone(CommandKind::SyncPipeline)?,
        "endpipeline" => reader.alone(CommandKind::EndPipeline)?,
        "sleep" => reader.sleep()?,
        "shell" => reader.shell()?,
        "setshell" => reader.set_shell()?,
        "gset" => Meta::Capture(Capture::Gset {
            prefix: reader.prefix()?,
        }),
        "aset" => Meta::Capture(Capture::Aset {
            prefix: reader.prefix()?,
        }),
        _ => return Err(reader.invalid_command()),
    };
    let end = reader.words.at;
    let length = source.text[start..end].trim_end_matches(['\n', '\r']).len();
    Ok((
        Some(MetaCommand {
            meta,
            range: start..start + length,
        }),
        end,
    ))
}

/// The words of a backslash command, separated by white space, up to the end of its line.
#[derive(Clone)]
struct Words<'a> {
    source: &'a Source<'a>,
    at: usize,
    ended: bool,
}

impl Words<'_> {
    /// The next word; `None` at the end of the line, which is then left behind.
    fn next(&mut self) -> Option<Range<usize>> {
        while !self.ended {
            if let Some(length) = self.source.continuation(self.at) {
                self.at += length;
                continue;
            }
            match self.source.byte(self.at)? {
                b'\n' => {
                    self.at += 1;
                    self.ended = true;
                }
                byte if number::is_c_space(byte) => self.at += 1,
                _ => return Some(self.word()),
            }
        }
        None
    }

    fn word(&mut self) -> Range<usize> {
        let start = self.at;
        while self
            .source
            .byte(self.at)
            .is_some_and(|b| !number::is_c_space(b))
            && self.source.continuation(self.at).is_none()
        {
            self.at += 1;
        }
        start..self.at
    }
}

struct Reader<'a, 's> {
    source: &'a Source<'a>,
    words: Words<'a>,
    symbols: &'s mut Symbols,
    name: Range<usize>,
}

impl Reader<'_, '_> {
    fn text(&self, range: &Range<usize>) -> &str {
        &self.source.text[range.clone()]
    }

    fn error(&self, range: Range<usize>, message: &str, hint: &str) -> ScriptError {
        self.source
            .error(range, message, hint)
            .in_command(self.text(&self.name))
    }

    /// The next word, which must be there.
    fn argument(&mut self, hint: &str) -> Result<Range<usize>, ScriptError> {
        self.words.next().ok_or_else(|| {
            let end = self.name.end;
            self.error(end..end, "missing argument", hint)
        })
    }

    fn no_more(&mut self, message: &str, hint: &str) -> Result<(), ScriptError> {
        match self.words.next() {
            None => Ok(()),
            Some(range) => Err(self.error(range, message, hint)),
        }
    }

    fn alone(&mut self, kind: CommandKind) -> Result<Meta, ScriptError> {
        self.no_more("unexpected argument", "nothing may follow it on its line")?;
        Ok(Meta::Command(kind))
    }

    fn expression(&mut self) -> Result<Expr, ScriptError> {
        let parsed = parse_expression(self.source, self.words.at, self.symbols);
        let (expr, end) = parsed.map_err(|error| error.in_command(self.text(&self.name)))?;
        self.words.at = end;
        Ok(expr)
    }

    /// The name of the variable to set.
    fn target(&mut self, hint: &str) -> Result<VarId, ScriptError> {
        let range = self.argument(hint)?;
        let name = self.text(&range);
        if !is_variable_name(name) {
            let hint = "a name holds letters, digits and _, begins with no digit, and has no colon";
            return Err(self.error(range, "invalid variable name", hint));
        }
        let name = name.to_owned();
        Ok(self.symbols.intern(&name))
    }

    fn set(&mut self) -> Result<Meta, ScriptError> {
        let hint = "write \\set name expression";
        if self.source.late
            && let Some(name) = self.unnamed()
        {
            self.argument(hint)?;
            self.expression()?;
            return Ok(Meta::Command(CommandKind::SetUnnamed { name }));
        }
        let var = self.target(hint)?;
        Ok(Meta::Command(CommandKind::Set {
            var,
            expr: self.expression()?,
        }))
    }

    /// The next word, which is left there, if no variable can have that name.
    fn unnamed(&self) -> Option<Box<str>> {
        let range = self.words.clone().next()?;
        let name = self.text(&range);
        (!is_variable_name(name)).then(|| name.into())
    }

    fn operand(&mut self, range: Range<usize>) -> Result<Node, ScriptError> {
        let parsed = parse_operand(self.source, range, self.symbols);
        parsed.map_err(|error| error.in_command(self.text(&self.name)))
    }

    /// `\setrandom name min max [uniform | gaussian parameter | exponential parameter]` of
    /// pgbench 9.x, which later versions write as `\set name random(min, max)`.
    fn set_random(&mut self) -> Result<Meta, ScriptError> {
        let hint = "write \\setrandom name min max [uniform | gaussian n | exponential n]";
        let var = self.target(hint)?;
        let mut args = Vec::new();
        for _ in 0..2 {
            let range = self.argument(hint)?;
            args.push(self.operand(range)?);
        }
        let mut function = Function::Random;
        if let Some(range) = self.words.next() {
            function = match self.text(&range).to_ascii_lowercase().as_str() {
                "uniform" => Function::Random,
                "gaussian" => Function::RandomGaussian,
                "exponential" => Function::RandomExponential,
                _ => return Err(self.error(range, "unexpected argument", hint)),
            };
        }
        if function != Function::Random {
            let range = self.argument(hint)?;
            args.push(self.operand(range)?);
        }
        self.no_more("too many arguments", hint)?;
        Ok(Meta::Command(CommandKind::Set {
            var,
            expr: Expr(Node::Call(function, args)),
        }))
    }

    fn sleep(&mut self) -> Result<Meta, ScriptError> {
        let hint = "write \\sleep number [us | ms | s]";
        let amount = self.argument(hint)?;
        let unit = self.words.next();
        if unit.is_some() {
            self.no_more("too many arguments", hint)?;
        }
        if let Some(name) = self.text(&amount).strip_prefix(':') {
            let name = name.to_owned();
            let unit_ns = self.unit(unit)?;
            let amount = SleepAmount::Var(self.symbols.intern(&name), name.into());
            return Ok(Meta::Command(CommandKind::Sleep { amount, unit_ns }));
        }
        let text = self.text(&amount);
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digit_count = digits.bytes().take_while(u8::is_ascii_digit).count();
        let glued = amount.end - (digits.len() - digit_count)..amount.end;
        let value = u64::try_from(number::leading_int(text)).unwrap_or(0);
        if digit_count == 0 || (!glued.is_empty() && unit.is_some()) {
            return Err(self.error(amount, "invalid sleep time, must be an integer", hint));
        }
        let unit_ns = self.unit(if glued.is_empty() { unit } else { Some(glued) })?;
        Ok(Meta::Command(CommandKind::Sleep {
            amount: SleepAmount::Literal(value),
            unit_ns,
        }))
    }

    fn unit(&self, range: Option<Range<usize>>) -> Result<u64, ScriptError> {
        let Some(range) = range else {
            return Ok(1_000_000_000);
        };
        match self.text(&range).to_ascii_lowercase().as_str() {
            "us" => Ok(1_000),
            "ms" => Ok(1_000_000),
            "s" => Ok(1_000_000_000),
            _ => {
                let message = "unrecognized time unit, must be us, ms or s";
                Err(self.error(range, message, "leave the unit out for seconds"))
            }
        }
    }

    fn shell(&mut self) -> Result<Meta, ScriptError> {
        let args = self.shell_args(SHELL_WORDS_MAX)?;
        if args.is_empty() {
            let end = self.name.end;
            return Err(self.error(
                end..end,
                "missing command",
                "write \\shell command [argument …]",
            ));
        }
        Ok(Meta::Command(CommandKind::Shell { args }))
    }

    fn set_shell(&mut self) -> Result<Meta, ScriptError> {
        let hint = "write \\setshell name command [argument …]";
        let var = self.target(hint)?;
        let args = self.shell_args(SHELL_WORDS_MAX - 1)?;
        if args.is_empty() {
            let end = self.name.end;
            return Err(self.error(end..end, "missing argument", hint));
        }
        Ok(Meta::Command(CommandKind::SetShell { var, args }))
    }

    fn shell_args(&mut self, most: usize) -> Result<Vec<ShellArg>, ScriptError> {
        let mut args = Vec::new();
        while let Some(range) = self.words.next() {
            if args.len() == most {
                let hint = "put the command into a file, and run that";
                return Err(self.error(range, "too many arguments", hint));
            }
            let word = &self.source.text[range];
            args.push(match word.strip_prefix(':') {
                None => ShellArg::Text(word.into()),
                Some(rest) if rest.starts_with(':') => ShellArg::Text(rest.into()),
                Some(name) => ShellArg::Var(self.symbols.intern(name), name.into()),
            });
        }
        Ok(args)
    }

    fn prefix(&mut self) -> Result<Box<str>, ScriptError> {
        let prefix = self
            .words
            .next()
            .map_or("", |range| &self.source.text[range])
            .into();
        self.no_more(
            "too many arguments",
            "give at most one prefix for the variables' names",
        )?;
        Ok(prefix)
    }

    fn invalid_command(&self) -> ScriptError {
        let hint = "the commands are \\set, \\setrandom, \\setshell, \\shell, \\sleep, \\gset, \\aset, \
                    \\if, \\elif, \\else, \\endif, \\startpipeline, \\syncpipeline and \\endpipeline; \
                    psql's own commands do not work here";
        self.error(self.name.clone(), "invalid command", hint)
    }
}
