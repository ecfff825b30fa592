//! What can be wrong with a script, before and while it runs.

use std::fmt;

/// A mistake in the text of a script, found before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}{}", quoted(found))]
pub struct ScriptError {
    /// The script's name as the user gave it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, in pgbench's own words where it has some.
    pub message: String,
    /// The text that was found there; empty at the end of a line.
    pub found: String,
    /// What to do about it.
    pub hint: String,
}

impl ScriptError {
    /// Names the backslash command in which the error is.
    pub(crate) fn in_command(mut self, name: &str) -> Self {
        self.message = format!("{} in command \"{name}\"", self.message);
        self
    }
}

fn quoted(found: &str) -> String {
    if found.is_empty() {
        String::new()
    } else {
        format!(" (found \"{found}\")")
    }
}

/// Something in a script that runs, but hardly as its author means it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Warning {
    /// Line, from 1.
    pub line: u32,
    /// What is suspicious and what to do about it.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// Why an expression has no value. The texts are pgbench's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvalError {
    /// A variable that nothing has set.
    #[error("undefined variable \"{name}\" (set it with \\set, \\gset or -D)")]
    Undefined {
        /// Name without the colon.
        name: Box<str>,
    },
    /// A variable whose text is neither null, a boolean, an integer nor a double.
    #[error("malformed variable \"{name}\" value: \"{value}\"")]
    Malformed {
        /// Name without the colon.
        name: Box<str>,
        /// Its text.
        value: Box<str>,
    },
    /// A variable whose text is an integer of more than 64 bits.
    #[error("value \"{value}\" is out of range for type bigint")]
    IntegerRange {
        /// Its text.
        value: Box<str>,
    },
    /// An operand of the wrong type.
    #[error("cannot coerce {from} to {to}")]
    Coerce {
        /// Type found.
        from: &'static str,
        /// Type needed.
        to: &'static str,
    },
    /// A double without an integer near it.
    #[error("double to int overflow for {}", fixed(*.0))]
    DoubleToInt(f64),
    /// Integer arithmetic that leaves 64 bits; names the operation.
    #[error("bigint {0} out of range")]
    Overflow(&'static str),
    /// Division by zero, or remainder of one.
    #[error("division by zero")]
    DivisionByZero,
    /// A random function whose lower bound is above its upper bound.
    #[error("empty range given to random")]
    EmptyRange,
    /// A random function over more than 2^63 - 1 values.
    #[error("random range is too large")]
    RangeTooLarge,
    /// A parameter of `random_gaussian` below 2.
    #[error("gaussian parameter must be at least 2.000000 (not {})", fixed(*.0))]
    GaussianParameter(f64),
    /// A parameter of `random_zipfian` outside 1.001..=1000.
    #[error("zipfian parameter must be in range [1.001, 1000] (not {})", fixed(*.0))]
    ZipfianParameter(f64),
    /// A parameter of `random_exponential` that is not positive.
    #[error("exponential parameter must be greater than zero (not {})", fixed(*.0))]
    ExponentialParameter(f64),
    /// `greatest` or `least` of more values than pgbench takes.
    #[error("too many function arguments, maximum is 16")]
    TooManyArguments,
    /// A size of `permute` that is not positive.
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
}

/// `%f` of PostgreSQL's `printf`.
fn fixed(value: f64) -> String {
    if value.is_finite() || value.is_nan() {
        return format!("{value:.6}");
    }
    if value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned()
}

/// Why a client cannot continue with its script. pgbench aborts such a client.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {}{kind}", command_prefix(name))]
pub struct RuntimeError {
    /// Index into [`crate::Script::commands`]; their number where the script ended too early.
    pub command: usize,
    /// Line of that command, from 1.
    pub line: u32,
    /// The backslash command's name, such as `set`; empty for a statement and at the script's end.
    pub name: &'static str,
    /// What went wrong.
    pub kind: RuntimeErrorKind,
}

fn command_prefix(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!("\\{name}: ")
    }
}

/// What went wrong in a [`RuntimeError`]. The texts are pgbench's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RuntimeErrorKind {
    /// An expression has no value.
    #[error("{0}")]
    Eval(#[from] EvalError),
    /// `\sleep :name` where the variable does not begin with a number.
    #[error("invalid sleep time \"{value}\" for variable \"{name}\"")]
    SleepTime {
        /// Name without the colon.
        name: Box<str>,
        /// Its text.
        value: Box<str>,
    },
    /// `\sleep :name` or a shell argument `:name` where nothing has set the variable.
    #[error("undefined variable \"{name}\"")]
    Undefined {
        /// Name without the colon.
        name: Box<str>,
    },
    /// `\set` where what stands for the variable cannot be one.
    #[error("invalid variable name: \"{0}\"")]
    VariableName(Box<str>),
    /// `\startpipeline` in the simple query mode.
    #[error("cannot use pipeline mode with the simple query protocol")]
    SimpleMode,
    /// `\startpipeline` inside a pipeline.
    #[error("already in pipeline mode")]
    NestedPipeline,
    /// `\endpipeline` or `\syncpipeline` outside a pipeline.
    #[error("not in pipeline mode")]
    NoPipeline,
    /// `\gset` or `\aset` inside a pipeline.
    #[error("\\{0} is not allowed in pipeline mode")]
    CaptureInPipeline(&'static str),
    /// The script ended between `\startpipeline` and `\endpipeline`.
    #[error("end of script reached with pipeline open")]
    OpenPipeline,
    /// A shell command of 256 bytes or more.
    #[error("shell command is too long")]
    ShellTooLong,
    /// The first line of a `\setshell` command's output is no integer.
    #[error("shell command must return an integer (not \"{0}\")")]
    ShellResult(String),
}
