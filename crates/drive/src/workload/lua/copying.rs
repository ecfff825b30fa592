//! Bulk inserts of a script that go as data, where the server takes such and the table is the same afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loadstone_lua::ResultRows;
use loadstone_lua::inserts::{PlainRows, plain_rows};

use super::answer::Heard;
use crate::protocol::{Protocol, RowFormat, Unencodable};

/// From this length on an insert is worth being read, and its table asked about.
const FROM_BYTES: usize = 4096;

/// What a protocol makes of an insert.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    question: fn(&str) -> Option<String>,
    put_query: fn(&str, &mut Vec<u8>) -> Result<(), Unencodable>,
    put_rows: PutRows,
}

type PutRows = fn(&PlainRows<'_>, &[u8], &mut Vec<u8>) -> Result<(), Unencodable>;

impl Dialect {
    pub(super) fn of<P: Protocol>() -> Self {
        Self {
            question: P::same_as_insert,
            put_query: P::put_query,
            put_rows: put_rows::<P>,
        }
    }
}

fn put_rows<P: Protocol>(
    plain: &PlainRows<'_>,
    rows: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let statement = P::rows_statement(plain.table, plain.columns, RowFormat::Text);
    P::put_query(&statement, out)?;
    P::put_data_begin(RowFormat::Text, out)?;
    P::put_data(rows, out)?;
    P::put_data_end(RowFormat::Text, out)
}

/// How an insert goes to the server now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// As the script wrote it.
    Insert,
    /// First comes a question about its table: [`Copying::messages`].
    Ask,
    /// As data: [`Copying::messages`].
    Copy,
}

/// What was sent last of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Nothing,
    Asked,
    Data,
    /// The data were refused.
    Refused,
}

/// The inserts of one client.
pub(super) struct Copying {
    /// None where inserts go as they are.
    dialect: Option<Dialect>,
    stage: Stage,
    /// The table asked about last, as long as nothing but its inserts was sent since.
    table: String,
    /// How many columns it takes; `None` where rows go as they are.
    columns: Option<usize>,
    /// Rows in flight.
    in_flight: usize,
    rows: Vec<u8>,
    messages: Vec<u8>,
    /// Rows of all clients that were stored as data.
    stored: Arc<AtomicU64>,
}

impl Copying {
    pub(super) fn new(dialect: Option<Dialect>, stored: Arc<AtomicU64>) -> Self {
        Self {
            dialect,
            stage: Stage::Nothing,
            table: String::new(),
            columns: None,
            in_flight: 0,
            rows: Vec::new(),
            messages: Vec::new(),
            stored,
        }
    }

    /// What goes to the server next of this insert.
    pub(super) fn way(&mut self, sql: &[u8], in_transaction: bool) -> Result<Way, Unencodable> {
        let was = std::mem::replace(&mut self.stage, Stage::Nothing);
        let is_candidate = sql.len() >= FROM_BYTES && !in_transaction && was != Stage::Refused;
        let Some(dialect) = self.dialect.filter(|_| is_candidate) else {
            return Ok(Way::Insert);
        };
        let Some(plain) = plain_rows(sql, &mut self.rows) else {
            return Ok(Way::Insert);
        };
        self.messages.clear();
        if plain.table != self.table {
            let Some(question) = (dialect.question)(plain.table) else {
                return Ok(Way::Insert);
            };
            (dialect.put_query)(&question, &mut self.messages)?;
            plain.table.clone_into(&mut self.table);
            self.stage = Stage::Asked;
            return Ok(Way::Ask);
        }
        let is_same = match self.columns {
            None => false,
            Some(columns) => !plain.columns.is_empty() || columns == plain.width,
        };
        if !is_same {
            return Ok(Way::Insert);
        }
        (dialect.put_rows)(&plain, &self.rows, &mut self.messages)?;
        self.in_flight = plain.rows;
        self.stage = Stage::Data;
        Ok(Way::Copy)
    }

    pub(super) fn messages(&self) -> &[u8] {
        &self.messages
    }

    /// The server has answered: true where the same insert is to be sent again, in another way.
    pub(super) fn goes_on(&mut self, heard: &Heard, result: &ResultRows) -> bool {
        match self.stage {
            Stage::Asked => {
                let first = result.first().filter(|_| !heard.has_failed());
                let digits = first.and_then(|first| std::str::from_utf8(first).ok());
                self.columns = digits.and_then(|digits| digits.parse().ok());
                self.stage = Stage::Nothing;
                true
            }
            // The insert itself says what is wrong with it.
            Stage::Data if heard.has_failed() => {
                self.stage = Stage::Refused;
                true
            }
            Stage::Data => {
                let rows = u64::try_from(self.in_flight).unwrap_or(0);
                self.stored.fetch_add(rows, Ordering::Relaxed);
                self.stage = Stage::Nothing;
                false
            }
            Stage::Nothing | Stage::Refused => false,
        }
    }

    /// Something else is sent, which may change the table.
    pub(super) fn forget(&mut self) {
        self.table.clear();
    }

    /// A question is under way.
    pub(super) fn is_asking(&self) -> bool {
        self.stage == Stage::Asked
    }

    /// Data are under way, or were answered just now.
    pub(super) fn is_sent(&self) -> bool {
        self.stage == Stage::Data
    }
}
