//! Runs a script step by step: everything that needs no outside world happens in here.

use crate::error::{RuntimeError, RuntimeErrorKind};
use crate::expr::EvalContext;
use crate::number;
use crate::script::{CommandKind, QueryMode, Script, SleepAmount};
use crate::value::{Value, Vars};

/// What the driver must do before it calls [`Machine::next`] again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the statement of this command. Outside a pipeline, also wait for its results and store
    /// what its [`crate::Capture`] wants; [`Machine::in_pipeline`] tells.
    Sql(usize),
    /// Wait.
    Sleep {
        /// How long; 0 for a script that asks for less than nothing.
        ns: u64,
    },
    /// Run the shell command of this [`CommandKind::Shell`] or [`CommandKind::SetShell`].
    Shell(usize),
    /// Do what this [`CommandKind::StartPipeline`], [`CommandKind::SyncPipeline`] or
    /// [`CommandKind::EndPipeline`] says.
    Pipeline(usize),
    /// Many commands were run and none of them needed the driver: it may look after others, and call again.
    Yield,
    /// The script is done. The next call starts it again.
    End,
}

/// Commands that are run before the driver is asked to look after others: a millisecond's worth at most, of the
/// usual ones.
const COMMANDS_PER_CALL: usize = 1_000;

/// One client's place in a script.
///
/// Jumps only lead forward, so a script always comes to its end. Evaluation allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    at: usize,
    current: usize,
    in_pipeline: bool,
}

impl Machine {
    /// A machine that is before the first command.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes back to the start of the script: for a new transaction, and for the retry of a failed
    /// one. For the retry also restore the client's [`loadstone_gen::random::Prng`]; variables keep
    /// their values, as in pgbench.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Index of the command that the last [`Next`] is about, or at which an error happened.
    #[must_use]
    pub const fn command(&self) -> usize {
        self.current
    }

    /// Whether the script stands between `\startpipeline` and `\endpipeline`.
    #[must_use]
    pub const fn in_pipeline(&self) -> bool {
        self.in_pipeline
    }

    /// Runs commands up to the next one that needs the driver. After an error the machine stands
    /// at the start of the script again.
    pub fn next(
        &mut self,
        script: &Script,
        cx: &mut EvalContext<'_>,
    ) -> Result<Next, RuntimeError> {
        self.next_within(script, cx, COMMANDS_PER_CALL)
    }

    /// As [`Machine::next`], but yields after `most` commands: after each, to measure it.
    pub fn next_within(
        &mut self,
        script: &Script,
        cx: &mut EvalContext<'_>,
        most: usize,
    ) -> Result<Next, RuntimeError> {
        self.run(script, cx, most).map_err(|kind| {
            let command = self.current;
            self.reset();
            self.current = command;
            runtime_error(script, command, kind)
        })
    }

    fn run(
        &mut self,
        script: &Script,
        cx: &mut EvalContext<'_>,
        most: usize,
    ) -> Result<Next, RuntimeErrorKind> {
        let mut left = most;
        while let Some(command) = script.commands.get(self.at) {
            let here = self.at;
            let Some(fewer) = left.checked_sub(1) else {
                return Ok(Next::Yield);
            };
            left = fewer;
            self.current = here;
            self.at = here + 1;
            match &command.kind {
                CommandKind::Set { var, expr } => {
                    cx.command = here + 1;
                    let value = expr.scalar(cx)?;
                    cx.vars.set(*var, value.into());
                }
                CommandKind::Sql(statement) => {
                    if self.in_pipeline
                        && let Some(capture) = &statement.capture
                    {
                        return Err(RuntimeErrorKind::CaptureInPipeline(capture.name()));
                    }
                    return Ok(Next::Sql(here));
                }
                CommandKind::If {
                    condition,
                    on_false,
                } => {
                    cx.command = here + 1;
                    if !condition.scalar(cx)?.truth() {
                        self.branch(script, *on_false, cx)?;
                    }
                }
                CommandKind::Elif { end, .. } | CommandKind::Else { end } => self.at = *end,
                CommandKind::EndIf => {}
                CommandKind::SetUnnamed { name } => {
                    return Err(RuntimeErrorKind::VariableName(name.clone()));
                }
                CommandKind::Sleep { amount, unit_ns } => {
                    let ns = sleep_ns(amount, *unit_ns, cx.vars)?;
                    return Ok(Next::Sleep { ns });
                }
                CommandKind::Shell { .. } | CommandKind::SetShell { .. } => {
                    return Ok(Next::Shell(here));
                }
                kind => {
                    self.pipeline(kind, script.mode)?;
                    return Ok(Next::Pipeline(here));
                }
            }
        }
        // The last command was run in this call: it is still the current one.
        if left == 0 {
            return Ok(Next::Yield);
        }
        self.finish(script)
    }

    /// Follows the false branches from `place` to the first command of the one that is taken.
    fn branch(
        &mut self,
        script: &Script,
        mut place: usize,
        cx: &mut EvalContext<'_>,
    ) -> Result<(), RuntimeErrorKind> {
        while let Some(CommandKind::Elif {
            condition,
            on_false,
            ..
        }) = script.commands.get(place).map(|command| &command.kind)
        {
            self.current = place;
            cx.command = place + 1;
            if condition.scalar(cx)?.truth() {
                break;
            }
            place = *on_false;
        }
        self.at = place + 1;
        Ok(())
    }

    fn pipeline(&mut self, kind: &CommandKind, mode: QueryMode) -> Result<(), RuntimeErrorKind> {
        match kind {
            CommandKind::StartPipeline if mode == QueryMode::Simple => {
                Err(RuntimeErrorKind::SimpleMode)
            }
            CommandKind::StartPipeline if self.in_pipeline => Err(RuntimeErrorKind::NestedPipeline),
            CommandKind::StartPipeline => {
                self.in_pipeline = true;
                Ok(())
            }
            _ if !self.in_pipeline => Err(RuntimeErrorKind::NoPipeline),
            CommandKind::EndPipeline => {
                self.in_pipeline = false;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, script: &Script) -> Result<Next, RuntimeErrorKind> {
        let open = self.in_pipeline;
        self.reset();
        self.current = script.commands.len();
        if open {
            Err(RuntimeErrorKind::OpenPipeline)
        } else {
            Ok(Next::End)
        }
    }
}

/// How long to sleep. A variable counts with the number that its text begins with.
fn sleep_ns(amount: &SleepAmount, unit_ns: u64, vars: &Vars) -> Result<u64, RuntimeErrorKind> {
    let units = match amount {
        SleepAmount::Literal(units) => *units,
        SleepAmount::Var(id, name) => match vars.get(*id) {
            Value::Unset => return Err(RuntimeErrorKind::Undefined { name: name.clone() }),
            Value::Int(units) => u64::try_from(*units).unwrap_or(0),
            value => {
                let mut text = Vec::new();
                vars.write_text(*id, &mut text);
                let text = String::from_utf8_lossy(&text);
                let units = number::leading_int(&text);
                let is_number = text.bytes().next().is_some_and(|b| b.is_ascii_digit());
                if units == 0 && !is_number && *value != Value::Int(0) {
                    let (name, value) = (name.clone(), text.into());
                    return Err(RuntimeErrorKind::SleepTime { name, value });
                }
                u64::try_from(units).unwrap_or(0)
            }
        },
    };
    Ok(units.saturating_mul(unit_ns))
}

fn runtime_error(script: &Script, command: usize, kind: RuntimeErrorKind) -> RuntimeError {
    let place = script.commands.get(command).or(script.commands.last());
    let name = match script.commands.get(command).map(|command| &command.kind) {
        None | Some(CommandKind::Sql(_)) => "",
        Some(kind) => kind.name(),
    };
    RuntimeError {
        command,
        line: place.map_or(0, |command| command.line),
        name,
        kind,
    }
}
