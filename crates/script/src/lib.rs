//! pgbench's script language: parsed once, then run without looking anything up.
//!
//! The crate knows neither clock nor socket nor thread. A driver parses its scripts with [`parse`],
//! gives each client its [`Vars`], its random stream and a [`Machine`], and asks the machine what to
//! do next:
//!
//! ```
//! use loadstone_gen::random::Prng;
//! use loadstone_script::{CommandKind, EvalContext, Machine, Next, QueryMode, Symbols, Vars, parse};
//!
//! let mut symbols = Symbols::new();
//! let text = "\\set aid random(1, 10)\nSELECT :aid;";
//! let script = parse("example.sql", text, QueryMode::Simple, &mut symbols)?;
//!
//! let mut vars = Vars::new(symbols.len());
//! let mut prng = Prng::from_seed(1);
//! let mut debug = |_: &str| {};
//! let mut machine = Machine::new();
//! let mut cx = EvalContext::new(&mut vars, &mut prng, &mut debug);
//! let Next::Sql(index) = machine.next(&script, &mut cx)? else { panic!("no statement") };
//! let CommandKind::Sql(statement) = &script.commands[index].kind else { panic!("no statement") };
//! let mut message = Vec::new();
//! statement.write_simple(cx.vars, &mut message);
//! assert!(message.starts_with(b"SELECT "));
//! assert_eq!(machine.next(&script, &mut cx)?, Next::End);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod check;
mod error;
mod expr;
mod machine;
mod meta;
mod number;
mod plain;
mod script;
mod source;
mod sql;
mod statement;
mod symbols;
mod trace;
mod value;

pub use builtin::{Builtin, BuiltinError, builtin, builtins};
pub use check::{CheckReport, CheckedCommand, check, check_as_pgbench};
pub use error::{EvalError, RuntimeError, RuntimeErrorKind, ScriptError, Warning};
pub use expr::{EvalContext, Expr};
pub use machine::{Machine, Next};
pub use meta::{ShellArg, shell_command};
pub use plain::{PlainSql, scan_sql};
pub use script::{
    Command, CommandKind, QueryMode, QueryModeError, Script, SleepAmount, parse, parse_as_pgbench,
    parse_enclosed,
};
pub use statement::{Capture, PARAMETERS_MAX, SqlPart, Statement};
pub use symbols::{Symbols, VarId, is_variable_name};
pub use trace::trace;
pub use value::{Scalar, Value, Vars};
