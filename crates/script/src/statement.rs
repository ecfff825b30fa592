//! One SQL message: where its variables are.

use std::fmt::Write as _;

use crate::QueryMode;
use crate::error::ScriptError;
use crate::source::Source;
use crate::symbols::{Symbols, VarId, is_name_byte, is_name_start};
use crate::value::Vars;

/// Most parameters that pgbench puts into one statement.
pub const PARAMETERS_MAX: usize = 255;

/// A piece of a statement in the simple query mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPart {
    /// Sent as it is.
    Text(Box<str>),
    /// Replaced by the variable's text; by `:name`, the second field, while it is unset.
    Var(VarId, Box<str>),
}

/// Where the result of a statement goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// `\gset`: the last result of the message must be one row; column `c` goes to the variable
    /// `prefix` + `c`, the last of several columns of one name wins.
    Gset {
        /// May be empty.
        prefix: Box<str>,
    },
    /// `\aset`: of each result of the message that has rows, the last row.
    Aset {
        /// May be empty.
        prefix: Box<str>,
    },
}

impl Capture {
    /// The text before each column's name.
    #[must_use]
    pub fn prefix(&self) -> &str {
        match self {
            Self::Gset { prefix } | Self::Aset { prefix } => prefix,
        }
    }

    /// `gset` or `aset`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Gset { .. } => "gset",
            Self::Aset { .. } => "aset",
        }
    }
}

/// SQL that is sent as one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text with its variables, for the simple query mode.
    pub parts: Vec<SqlPart>,
    /// The text with `$1`, `$2`, … in place of the variables, for the other modes. Each occurrence
    /// of a variable has its own number.
    pub prepared: Box<str>,
    /// The variables behind `$1`, `$2`, …; send them as text, without types.
    pub params: Vec<VarId>,
    /// How many SQL statements the message holds: 1 + the number of `\;`.
    pub group: u32,
    /// What becomes of the result; `None` throws it away.
    pub capture: Option<Capture>,
}

impl Statement {
    /// Appends the text to send in the simple query mode. As in pgbench, variables are replaced
    /// everywhere, also inside quotes, and what replaces them is not looked at again.
    pub fn write_simple(&self, vars: &Vars, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                SqlPart::Text(text) => out.extend_from_slice(text.as_bytes()),
                SqlPart::Var(id, original) => {
                    if !vars.write_text(*id, out) {
                        out.extend_from_slice(original.as_bytes());
                    }
                }
            }
        }
    }

    pub(crate) fn new(sql: &str, group: u32, symbols: &mut Symbols) -> Self {
        let mut statement = Self {
            parts: Vec::new(),
            prepared: "".into(),
            params: Vec::new(),
            group,
            capture: None,
        };
        let mut prepared = String::with_capacity(sql.len());
        let (mut done, mut at) = (0, 0);
        while let Some(colon) = sql[at..].find(':').map(|found| at + found) {
            let end = variable_end(sql.as_bytes(), colon);
            if end == colon + 1 {
                // Not a variable: skip all colons, as in a cast.
                at = colon + sql[colon..].bytes().take_while(|&b| b == b':').count();
                continue;
            }
            let id = symbols.intern(&sql[colon + 1..end]);
            statement.push_text(&sql[done..colon]);
            statement
                .parts
                .push(SqlPart::Var(id, sql[colon..end].into()));
            statement.params.push(id);
            prepared.push_str(&sql[done..colon]);
            let _ = write!(prepared, "${}", statement.params.len());
            (done, at) = (end, end);
        }
        statement.push_text(&sql[done..]);
        prepared.push_str(&sql[done..]);
        statement.prepared = prepared.into();
        statement
    }

    fn push_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(SqlPart::Text(text.into()));
        }
    }

    /// Refuses more parameters than pgbench takes.
    pub(crate) fn check(
        &self,
        mode: QueryMode,
        source: &Source<'_>,
        start: usize,
    ) -> Result<(), ScriptError> {
        if mode == QueryMode::Simple || self.params.len() <= PARAMETERS_MAX {
            return Ok(());
        }
        let message = format!("statement has too many arguments (maximum is {PARAMETERS_MAX})");
        let hint = "use fewer variables in it, or the query mode \"simple\"";
        let end = source.text[start..]
            .find('\n')
            .map_or(source.text.len(), |at| start + at);
        Err(source.error(start..end, message, hint))
    }
}

/// End of the variable whose colon is at `colon`; right behind the colon if it begins none.
fn variable_end(sql: &[u8], colon: usize) -> usize {
    let name = &sql[colon + 1..];
    if !name.first().is_some_and(|&b| is_name_start(b)) {
        return colon + 1;
    }
    colon + 1 + name.iter().take_while(|&&b| is_name_byte(b)).count()
}
