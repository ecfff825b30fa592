//! What a load is asked to do.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::data::{DataSpec, FileFormat, FilesSpec};
use crate::error::DriveError;
use crate::share::Share;

/// Most rows of one batch: its bytes must stay far below what one buffer can hold.
const BATCH_ROWS_MAX: usize = 10_000_000;

/// Most rows between two marks of a long transaction: they are in memory together.
const MARK_ROWS_MAX: usize = 100_000;

/// Rows into tables that are there; each batch is one transaction.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flags of a document"
)]
pub struct LoadSpec {
    /// Where the rows come from.
    pub data: DataSpec,
    /// How they are sent.
    #[serde(default)]
    pub method: Method,
    /// Rows of one batch, over all tables together.
    #[serde(default = "ten_thousand")]
    pub batch_rows: usize,
    /// All rows with the same `tags_id` go through the same client.
    #[serde(default)]
    pub hash_workers: bool,
    /// Stop after so many rows; 0: all.
    #[serde(default)]
    pub limit_rows: u64,
    /// TSBS's `a,b-c`: least seconds between the starts of a client's batches.
    #[serde(default)]
    pub insert_intervals: String,
    /// Where each table's rows go, by its name in the data set, and `tags`; absent: to the same names.
    #[serde(default)]
    pub tables: Option<BTreeMap<String, Option<TableSpec>>>,
    /// Tags go into one column of type jsonb.
    #[serde(default)]
    pub jsonb_tags: bool,
    /// The first tag's text is before the other columns of every row.
    #[serde(default)]
    pub in_table_tag: bool,
    /// Table (as SQL) of `batch` and `rows` that gets a row with every batch.
    #[serde(default)]
    pub ledger: Option<String>,
    /// Batches that have been stored before, first and last of each range: made, and not sent.
    #[serde(default)]
    pub skip: Vec<(u64, u64)>,
    /// Rows of one step: a batch of the next is not begun before all of this one are stored; 0: no steps.
    #[serde(default)]
    pub step_rows: u64,
    /// Nor before the owner of the drive says so.
    #[serde(default)]
    pub hold: bool,
    /// INSERT: a batch is one long transaction, whose rows go in a few at a time.
    #[serde(default)]
    pub transaction: Option<LongSpec>,
    /// INSERT: statements are parsed once for each connection.
    #[serde(default = "yes")]
    pub prepared: bool,
}

/// Where the rows of one table go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// The table as SQL names it.
    pub name: String,
    /// One column for each column of the rows; quoted here unless they are already.
    pub columns: Vec<String>,
}

/// How rows are sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// COPY in PostgreSQL's binary format.
    #[default]
    CopyBinary,
    /// COPY as text.
    CopyText,
    /// INSERT of many rows, with binary parameters.
    Insert,
    /// As Arrow has them: only through a library.
    Arrow,
}

impl Method {
    /// As the specification spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CopyBinary => "copy_binary",
            Self::CopyText => "copy_text",
            Self::Insert => "insert",
            Self::Arrow => "arrow",
        }
    }
}

/// How the rows of a long transaction are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongSpec {
    /// Rows of one INSERT.
    #[serde(default = "one")]
    pub statement_rows: usize,
    /// Send the statements up to the next mark without waiting for answers.
    #[serde(default = "yes")]
    pub pipeline: bool,
    /// Note the time whenever so many rows more have been answered.
    #[serde(default = "thousand")]
    pub mark_rows: usize,
}

/// Rows of each step, and what comes between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepPlan {
    /// Rows of a step; none: all rows are one, which nobody asks about.
    pub(crate) rows: Option<u64>,
    /// The next step waits for a word of the drive's owner.
    pub(crate) hold: bool,
    /// Other hosts have batches of the same steps: one of which none are here is a step, too.
    pub(crate) in_parts: bool,
}

impl StepPlan {
    /// The same on one of several hosts.
    pub(crate) fn on(self, share: Share) -> Self {
        Self {
            in_parts: share.is_part(),
            ..self
        }
    }
}

fn one() -> usize {
    1
}

fn thousand() -> usize {
    1000
}

fn ten_thousand() -> usize {
    10_000
}

fn yes() -> bool {
    true
}

impl LoadSpec {
    /// Refuse what no load can do.
    pub(crate) fn check(&self) -> Result<(), DriveError> {
        let refuse = |message: String, hint: &str| Err(DriveError::bad_spec(message, hint));
        if !(1..=BATCH_ROWS_MAX).contains(&self.batch_rows) {
            let message = format!("batch_rows is {}", self.batch_rows);
            return refuse(message, "use 1 to 10000000");
        }
        if let Some((first, last)) = self.skip.iter().find(|(first, last)| first > last) {
            let message = format!("skip has a range from {first} to {last}");
            return refuse(message, "write each range as [first, last]");
        }
        if self.hold && self.step_rows == 0 {
            let message = "`hold` is set without step_rows".to_owned();
            return refuse(message, "set step_rows: the load waits between steps");
        }
        if let Some(long) = &self.transaction {
            self.check_long(long)?;
        }
        if let DataSpec::Files(files) = &self.data {
            self.check_files(files)?;
        }
        if self.ledger.as_deref().is_some_and(str::is_empty) {
            return refuse(
                "the ledger has no name".to_owned(),
                "name its table, or use null",
            );
        }
        if self.texts().any(|text| text.contains('\0')) {
            return refuse(
                "the name of a table or a column contains a NUL byte".to_owned(),
                "no database has such names",
            );
        }
        self.data.check()
    }

    fn check_long(&self, long: &LongSpec) -> Result<(), DriveError> {
        let refuse =
            |message: &str, hint: &str| Err(DriveError::bad_spec(message.to_owned(), hint));
        if self.method != Method::Insert || !self.prepared || self.hash_workers {
            let message =
                "long transactions use prepared INSERTs, and cannot divide rows among workers";
            return refuse(message, "use the method insert without hash_workers");
        }
        if !matches!(self.data, DataSpec::Rows(_)) {
            let message = "long transactions need data that can start at any row";
            return refuse(message, "use data of the kind rows");
        }
        if long.statement_rows == 0 || long.mark_rows == 0 || long.mark_rows > MARK_ROWS_MAX {
            return refuse(
                "statement_rows or mark_rows of the transaction is out of range",
                "use 1 to 100000",
            );
        }
        if !long.mark_rows.is_multiple_of(long.statement_rows) {
            let message = "mark_rows of the transaction is not a multiple of statement_rows";
            return refuse(message, "use a multiple of statement_rows");
        }
        Ok(())
    }

    fn check_files(&self, files: &FilesSpec) -> Result<(), DriveError> {
        let method = match files.format {
            FileFormat::Text | FileFormat::Csv => Method::CopyText,
            FileFormat::Binary => Method::CopyBinary,
        };
        if self.method != method {
            let message = format!("these files cannot be loaded by {}", self.method.name());
            let hint = format!("rows of files are sent unchanged: use {}", method.name());
            return Err(DriveError::bad_spec(message, &hint));
        }
        Ok(())
    }

    /// Refuse what several hosts cannot share: their rows must begin anywhere, and their batches belong to no client.
    pub(crate) fn check_shared(&self) -> Result<(), DriveError> {
        let refuse =
            |message: &str, hint: &str| Err(DriveError::bad_spec(message.to_owned(), hint));
        if !matches!(self.data, DataSpec::Native(_) | DataSpec::Rows(_)) {
            let message = "only rows that can be generated from any place on can be loaded from several hosts";
            return refuse(message, "use native data, or load from one host");
        }
        if self.hash_workers || self.transaction.is_some() {
            let message =
                "neither hashed rows nor long transactions can be loaded from several hosts";
            return refuse(
                message,
                "remove hash_workers and transaction, or load from one host",
            );
        }
        if self.step_rows > 0 && !self.hold {
            let message = "the steps of several hosts need a word to begin";
            return refuse(message, "set hold");
        }
        Ok(())
    }

    /// Its steps.
    pub(crate) fn step_plan(&self) -> StepPlan {
        StepPlan {
            rows: (self.step_rows > 0).then_some(self.step_rows),
            hold: self.hold,
            in_parts: false,
        }
    }

    /// All that becomes part of SQL.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let tables = self.tables.iter().flat_map(BTreeMap::values).flatten();
        let names = tables.flat_map(|table| std::iter::once(&table.name).chain(&table.columns));
        names.chain(&self.ledger)
    }
}
