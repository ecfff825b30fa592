//! Rows in files that `COPY` reads: where each ends, and whether it has as many fields as it should.
//!
//! A row is handed on as it is, so nothing is decoded here; what is looked at is what decides where a row and its
//! fields end. The formats are those of <https://www.postgresql.org/docs/current/sql-copy.html>: lines of text with
//! backslashes, CSV with quotes, binary tuples. Lines end with a line feed, or with a carriage return and a line feed.

mod binary;
mod lines;

use std::ops::Range;

/// How rows are in a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// Lines of fields parted by tabs.
    Text,
    /// Lines of fields parted by commas, some of them quoted.
    Csv,
    /// Tuples of values, each after its length.
    Binary,
}

/// Bytes that no row reaches: what is longer is no row, or `PostgreSQL` could not take it.
const ROW_BYTES_MAX: usize = 1 << 30;

/// Finds the rows of one file, whose bytes come in pieces.
#[derive(Clone, Debug)]
pub struct RowFinder {
    format: Format,
    columns: usize,
    stage: Stage,
    /// Rows found so far, the header not among them.
    row: u64,
    /// Bytes gone past so far.
    byte: u64,
}

/// How far the file has been read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// Before the header.
    Header,
    Rows,
    /// After the mark that ends the data.
    Ended,
}

/// Whole rows in a piece.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Found {
    /// Where they lie: they follow each other.
    pub bytes: Range<usize>,
    /// How many they are; none when more bytes are needed, or the file holds no more.
    pub rows: usize,
    /// Bytes of the piece that are done with.
    pub consumed: usize,
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("row {row} (byte {byte}): {message}")]
pub struct RowError {
    /// Counted from 1; a header is not counted.
    pub row: u64,
    /// Where the row begins, counted from 0.
    pub byte: u64,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub hint: &'static str,
}

/// One row at the begin of a piece.
enum Row {
    /// It takes so many bytes, and has so many fields. A file's last line need not have an end.
    Whole { bytes: usize, fields: usize },
    /// The mark that ends the data, of so many bytes.
    End { bytes: usize },
    /// Its end is not among the bytes.
    Part,
}

/// What is wrong with a row, and how to mend it.
type Fault = (String, &'static str);

const SHAPE: &str = "use a file with as many columns as the table has";

impl RowFinder {
    /// For a file of rows with `columns` fields each; `header`: its first row holds names (CSV and text only).
    #[must_use]
    pub fn new(format: Format, columns: usize, header: bool) -> Self {
        let stage = if header || format == Format::Binary {
            Stage::Header
        } else {
            Stage::Rows
        };
        Self {
            format,
            columns,
            stage,
            row: 0,
            byte: 0,
        }
    }

    /// Rows found so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.row
    }

    /// Finds at most `most` whole rows in bytes that follow those consumed before; `last`: the file ends with them.
    ///
    /// # Errors
    /// If what is there is no row of this format with so many fields.
    pub fn find(&mut self, bytes: &[u8], last: bool, most: usize) -> Result<Found, RowError> {
        let mut found = Found::default();
        if self.stage == Stage::Header {
            let Some(header) = self.header(bytes, last)? else {
                return Ok(found);
            };
            found.bytes = header..header;
            found.consumed = header;
            self.stage = Stage::Rows;
            self.byte += header as u64;
        }
        while found.rows < most && self.stage == Stage::Rows {
            match self.row(&bytes[found.consumed..], last)? {
                Row::Part => break,
                Row::End { bytes: length } => {
                    self.stage = Stage::Ended;
                    found.consumed += length;
                    self.byte += length as u64;
                }
                Row::Whole { bytes: length, .. } => {
                    found.rows += 1;
                    found.consumed += length;
                    found.bytes.end = found.consumed;
                    self.row += 1;
                    self.byte += length as u64;
                }
            }
        }
        if self.stage == Stage::Ended && found.consumed < bytes.len() {
            let message = "there are bytes after the mark that ends the data".to_owned();
            return Err(self.error((message, "remove them, or write the file again")));
        }
        Ok(found)
    }

    /// The bytes of the header, once it is whole.
    fn header(&self, bytes: &[u8], last: bool) -> Result<Option<usize>, RowError> {
        if self.format == Format::Binary {
            return binary::header(bytes, last).map_err(|fault| self.error(fault));
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        Ok(match self.row(bytes, last)? {
            Row::Whole { bytes, .. } | Row::End { bytes } => Some(bytes),
            Row::Part => None,
        })
    }

    /// The row at the begin of these bytes.
    #[inline]
    fn row(&self, bytes: &[u8], last: bool) -> Result<Row, RowError> {
        let found = match self.format {
            Format::Text => Ok(lines::text(bytes, last)),
            Format::Csv => lines::csv(bytes, last),
            Format::Binary => binary::tuple(bytes, last, self.columns),
        };
        match found {
            Ok(Row::Whole { fields, .. }) if fields != self.columns => {
                let message = format!("it has {fields} fields, but {} are needed", self.columns);
                Err(self.error((message, SHAPE)))
            }
            Ok(Row::Part) if bytes.len() >= ROW_BYTES_MAX => {
                let message = "it does not end within a gigabyte".to_owned();
                Err(self.error((
                    message,
                    "check the format: rows of PostgreSQL are never that long",
                )))
            }
            Ok(row) => Ok(row),
            Err(fault) => Err(self.error(fault)),
        }
    }

    #[cold]
    fn error(&self, (message, hint): Fault) -> RowError {
        RowError {
            row: self.row + 1,
            byte: self.byte,
            message,
            hint,
        }
    }
}

#[cfg(test)]
mod tests;
