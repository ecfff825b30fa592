//! Data sets: what tables there are, and rows of them as Arrow record batches, some columns of which may be packed.
//!
//! A [`Source`] gives rows in the order of its stream, in [`Chunk`]s of as many rows as asked for, over all
//! tables together. Encoders turn them into bytes; whoever sends them knows neither.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::dictionary_batch::DictionaryBatch;

/// The tables of a data set, in the order of their names in the stream.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The table of devices; none where rows carry all there is to know.
    ///
    /// Its first column is `id` (`Int32`), the others are the tags (`Utf8` or `Float32`, nullable), in order.
    pub tags: Option<Table>,
    /// The tables of rows.
    pub tables: Vec<Table>,
}

/// One table.
///
/// Tables of time series have the columns `time` (`Timestamp(Nanosecond, "+00:00")`), `tags_id` (`Int32`), the fields
/// (`Float64`, nullable) and `additional_tags` (`Utf8`, nullable, Arrow extension type `arrow.json`: a JSON object of the tags that only some
/// tables have).
#[derive(Clone, Debug)]
pub struct Table {
    /// Name, as SQL and files know it.
    pub name: String,
    /// Columns.
    pub schema: SchemaRef,
    /// How many columns are fields: what time-series benchmarks count as metrics, empty ones included. All, of a
    /// plain table.
    pub metrics: usize,
    /// What else is known of a plain table; none of time series.
    pub plain: Option<Plain>,
}

/// What is known of a table that is no time series, beyond its columns.
#[derive(Clone, Debug)]
pub struct Plain {
    /// The columns that can be indexed, in the order in which indexes are usually added.
    pub usual_indexes: Vec<String>,
    /// The column that grows with the number of the row.
    pub sequence: Option<Sequence>,
    /// Average logical bytes of a row, as [`crate::rows::logical_bytes`] counts them.
    pub row_bytes: f64,
}

/// A column whose value in row *i* (counted from 0) is `first + i * step`: what partitions can be cut by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sequence {
    /// Its name.
    pub column: &'static str,
    /// Its value in row 0; of a time, microseconds since 1970 UTC.
    pub first: i64,
    /// What each row adds.
    pub step: i64,
}

/// Rows of one table, in the order of the stream.
#[derive(Clone, Debug)]
pub struct TableRows {
    /// Number of the table in [`Dataset::tables`].
    pub table: usize,
    /// The rows.
    pub rows: DictionaryBatch,
}

/// The next rows of a stream.
#[derive(Clone, Debug, Default)]
pub struct Chunk {
    /// Rows of [`Dataset::tags`] that these rows are the first to refer to. Ids count up from 1 over the stream.
    pub tags: Option<RecordBatch>,
    /// The rows, by table, each table at most once, ascending; tables without a row are left out.
    pub tables: Vec<TableRows>,
    /// Rows over all tables, those of `tags` not among them.
    pub rows: u64,
    /// Fields of these rows, empty ones included.
    pub metrics: u64,
}

/// Rows from somewhere: a simulation, a file, a formula.
///
/// The same source gives the same rows and the same ids in the same order, whatever the sizes of its chunks.
pub trait Source: Send {
    /// The tables.
    fn dataset(&self) -> &Arc<Dataset>;

    /// The next `rows` rows (the last chunk may have fewer), or none at the end.
    ///
    /// # Errors
    /// If the rows cannot be had; the message says where and why.
    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError>;

    /// Goes past the next `rows` rows, and past the tags that come with them; returns how many there were, fewer at
    /// the end only.
    ///
    /// # Errors
    /// As [`Self::next`].
    fn pass(&mut self, rows: u64) -> Result<u64, SourceError> {
        let mut passed = 0;
        while passed < rows {
            let most = (rows - passed).min(PASS_ROWS);
            let Some(chunk) = self.next(usize::try_from(most).unwrap_or(CHUNK_ROWS_MAX))? else {
                break;
            };
            passed += chunk.rows;
        }
        Ok(passed)
    }
}

/// Rows that are read and dropped together by sources that cannot jump.
const PASS_ROWS: u64 = 10_000;

/// Most rows of one chunk: texts of so many fit the 2 GiB that Arrow's offsets reach.
pub(crate) const CHUNK_ROWS_MAX: usize = 1 << 24;

/// Refuses a number of rows that no chunk can have.
pub(crate) fn check_chunk_rows(rows: usize) -> Result<(), SourceError> {
    if (1..=CHUNK_ROWS_MAX).contains(&rows) {
        return Ok(());
    }
    Err(SourceError::Refused(format!(
        "a chunk cannot have {rows} rows: use 1 to {CHUNK_ROWS_MAX}"
    )))
}

/// Why a source cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// What is read is not in the format that it should be.
    #[error("line {line} (byte {byte}): {message}")]
    Format {
        /// Counted from 1.
        line: u64,
        /// Where the line begins, counted from 0.
        byte: u64,
        /// What is wrong.
        message: String,
        /// How to mend it.
        hint: &'static str,
    },
    /// It cannot be read.
    #[error("reading after {bytes} bytes: {source}")]
    Input {
        /// Bytes that were read before.
        bytes: u64,
        /// What went wrong.
        source: std::io::Error,
    },
    /// Whoever reads it failed.
    #[error("{0}")]
    Failed(std::io::Error),
    /// It cannot be generated as asked.
    #[error("{0}")]
    Refused(String),
}
