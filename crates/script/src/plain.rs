//! SQL that is no script: cut into statements, and the names in it that stand for values.

use std::ops::Range;

use crate::error::ScriptError;
use crate::source::Source;
use crate::sql::{SqlScanner, Stop};

/// What [`scan_sql`] finds, as ranges of bytes of the text, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlainSql {
    /// Statements without their semicolons, and without comments before them. White space behind them is left.
    pub statements: Vec<Range<usize>>,
    /// Names behind a single colon, outside of quotes and comments.
    pub names: Vec<Range<usize>>,
}

/// Cut SQL at the semicolons that end a statement, by psql's rules. Text of comments alone is no statement.
///
/// # Errors
/// A quote or comment that never ends, and a backslash command of psql: with the line of `name` where it is.
pub fn scan_sql(name: &str, text: &str) -> Result<PlainSql, ScriptError> {
    let source = Source::new(name, text);
    let mut scanner = SqlScanner::plain(&source);
    let mut found = PlainSql::default();
    loop {
        let piece = scanner.next()?;
        let is_last = piece.stop == Stop::End;
        let end = scanner.at - usize::from(!is_last);
        found.statements.extend(piece.first.map(|first| first..end));
        found.names.extend(piece.names);
        if is_last {
            return Ok(found);
        }
    }
}
