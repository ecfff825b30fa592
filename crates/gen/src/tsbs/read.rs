//! TSBS's text for `TimescaleDB`, read back as Arrow record batches.
//!
//! After a [header](header) a row is two lines: `tags,hostname=host_0,…` and `cpu,1451606400000000000,58,…`. The
//! [input] keeps whole lines in one buffer; [lines] tell devices by their tags; [numbers](number) are read
//! where they stand.

mod fault;
mod header;
mod input;
mod lines;
mod number;

use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use self::fault::{CUT, DAMAGED, Fault, excerpt};
use self::header::Header;
use self::input::{Input, LINE_MAX, More};
use self::lines::{LineError, Lines};
use super::arrow::columns::SeriesRows;
use super::arrow::schema::FIRST_FIELD;
use super::arrow::states::TagRows;
use crate::dataset::{Chunk, Dataset, Source, SourceError, Table, TableRows, check_chunk_rows};

/// TSBS writes rows of this table with as many fields as the host has, the first of all; of other tables
/// always all of them.
const RAGGED_TABLE: &str = "generic_metrics";

/// A data set of TSBS, read from its text for `TimescaleDB`.
///
/// Fields are doubles, as in the tables that TSBS makes; an empty field is null, and so are those that a row of
/// `generic_metrics` does not have. Ids count the different tags that rows have by the header's names;
/// further tags are in `additional_tags`. Memory grows with the number of different lines of tags, not with
/// that of rows.
///
/// ```
/// use loadstone_gen::dataset::Source;
/// use loadstone_gen::tsbs::TextSource;
///
/// let text = "tags,name string\ncpu,usage\n\ntags,name=a\ncpu,1451606400000000000,58\n";
/// let mut source = TextSource::new(text.as_bytes())?;
/// let chunk = source.next(1000)?.ok_or("one row")?;
/// assert_eq!((chunk.rows, chunk.metrics), (1, 1));
/// assert!(source.next(1000)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TextSource {
    input: Input,
    dataset: Arc<Dataset>,
    lines: Lines,
    tags: TagRows,
    tables: Vec<Rows>,
    /// The table of the row before.
    table: usize,
    header_lines: u64,
    /// Rows of the chunks before, and of this one.
    rows: u64,
}

/// Rows of one table under construction.
struct Rows {
    /// `cpu,`
    lead: Vec<u8>,
    ragged: bool,
    columns: SeriesRows,
    /// Whether a row of this chunk has additional tags; if so, each has them or a null.
    additional: bool,
    additional_bytes: usize,
}

impl TextSource {
    /// Reads the header.
    ///
    /// # Errors
    /// If the input cannot be read, or does not begin with TSBS's header.
    pub fn new(reader: impl Read + Send + 'static) -> Result<Self, SourceError> {
        let mut input = Input::new(Box::new(reader));
        let header = Header::read(&mut input)?;
        let dataset = header.dataset;
        let schema = dataset.tags.as_ref().map(|tags| Arc::clone(&tags.schema));
        let schema = schema.unwrap_or_else(|| Arc::new(arrow_schema::Schema::empty()));
        let names = schema.fields().iter().skip(1);
        let lines = Lines::new(
            names.map(|tag| (tag.name().as_str(), *tag.data_type() == DataType::Float32)),
        );
        let tables = dataset.tables.iter().map(|table| Rows {
            lead: format!("{},", table.name).into_bytes(),
            ragged: table.name == RAGGED_TABLE,
            columns: SeriesRows::new(table.metrics),
            additional: false,
            additional_bytes: 0,
        });
        Ok(Self {
            tables: tables.collect(),
            input,
            lines,
            tags: TagRows::new(&schema),
            table: 0,
            header_lines: header.lines,
            rows: 0,
            dataset,
        })
    }

    /// Reads up to so many rows, as many as the buffer has whole; returns how many, and their metrics.
    fn take(&mut self, most: usize) -> Result<(usize, u64), LineError> {
        let bytes = &self.input.bytes[..];
        let complete = self.input.complete;
        let (mut rows, mut metrics) = (0, 0);
        while rows < most && self.input.at < complete {
            let at = self.input.at;
            let found = self.lines.find(bytes, at, complete, &mut self.tags)?;
            if found.end == complete {
                break;
            }
            let Some(number) = table_at(&self.tables, self.table, bytes, found.end) else {
                return Err(unknown_table(&bytes[found.end..complete], &self.dataset).into());
            };
            self.table = number;
            let table = &mut self.tables[number];
            let Some((end, fields)) = table.push(bytes, found.end, found.id) else {
                let expected = &self.dataset.tables[number];
                return Err(bad_row(&bytes[found.end..complete], expected, table.ragged).into());
            };
            if end - found.end > LINE_MAX {
                return Err(Fault::long_line().of_row().into());
            }
            table.push_additional(self.lines.json(found.line));
            self.input.at = end + 1;
            self.rows += 1;
            rows += 1;
            metrics += fields as u64;
        }
        Ok((rows, metrics))
    }

    /// The next rows, up to so many; fewer only at the end.
    fn fill(&mut self, rows: usize) -> Result<(usize, u64), SourceError> {
        let (mut made, mut metrics) = (0, 0);
        loop {
            let (more_rows, more_metrics) =
                self.take(rows - made).map_err(|error| match error {
                    LineError::Fault(fault) => self.fault(*fault),
                    LineError::Refused(error) => *error,
                })?;
            made += more_rows;
            metrics += more_metrics;
            if made == rows {
                return Ok((made, metrics));
            }
            match self.input.more()? {
                More::Lines => {}
                More::End
                    if self.input.at == self.input.complete && self.input.rest().is_empty() =>
                {
                    return Ok((made, metrics));
                }
                More::End => return Err(self.fault(self.cut_off())),
                More::LongLine => return Err(self.fault(self.of_rest(Fault::long_line()))),
            }
        }
    }

    /// What is wrong at the end of the input.
    fn cut_off(&self) -> Fault {
        if self.input.rest().is_empty() {
            return Fault::new(
                "the text ends after a line of tags, without the row's values",
                CUT,
            );
        }
        let rest = excerpt(self.input.rest());
        let message =
            format!("the last line, {rest}, has no end: TSBS ends each line with a line feed");
        self.of_rest(Fault::new(message, CUT))
    }

    /// Says of which line a fault in what follows the last whole line is.
    fn of_rest(&self, fault: Fault) -> Fault {
        if self.input.at < self.input.complete {
            fault.of_row()
        } else {
            fault
        }
    }

    /// A fault of the row that begins where the input stands. It stays there: the next call finds it again.
    fn fault(&self, fault: Fault) -> SourceError {
        let at = self.input.at;
        let first = self.header_lines + 2 * self.rows + 1;
        if !fault.next_line {
            return fault.at(first, self.input.position(at));
        }
        let lines = &self.input.bytes[at..];
        let tags = memchr::memchr(b'\n', lines).unwrap_or(0);
        fault.at(first + 1, self.input.position(at + tags + 1))
    }

    fn finish(&mut self, rows: usize, metrics: u64) -> Result<Chunk, ArrowError> {
        let tags = match &self.dataset.tags {
            Some(table) => self.tags.take(&table.schema)?,
            None => None,
        };
        let mut tables = Vec::with_capacity(self.tables.len());
        for (number, table) in self.tables.iter_mut().enumerate() {
            if table.columns.len() > 0 {
                let rows = table.take(&self.dataset.tables[number].schema)?;
                tables.push(TableRows {
                    table: number,
                    rows: rows.into(),
                });
            }
        }
        Ok(Chunk {
            tags,
            tables,
            rows: rows as u64,
            metrics,
        })
    }
}

impl Source for TextSource {
    fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError> {
        check_chunk_rows(rows)?;
        let known = self.lines.bytes();
        let (made, metrics) = match self.fill(rows) {
            Ok(filled) => filled,
            Err(error) => {
                self.tables.iter_mut().for_each(Rows::clear);
                return Err(error);
            }
        };
        let texts = self.tables.iter().map(|table| table.additional_bytes);
        let most = texts.fold(self.lines.bytes() - known, usize::max);
        if i32::try_from(most).is_err() {
            let refusal = "the tags of one chunk exceed 2 GiB; read fewer rows at once";
            return Err(SourceError::Refused(refusal.to_owned()));
        }
        if made == 0 {
            return Ok(None);
        }
        let chunk = self.finish(made, metrics);
        chunk
            .map(Some)
            .map_err(|error| SourceError::Refused(error.to_string()))
    }
}

impl Rows {
    /// Appends the row at `at` but for its additional tags; returns where its line ends and how many fields it has.
    #[inline]
    fn push(&mut self, bytes: &[u8], at: usize, id: i32) -> Option<(usize, usize)> {
        let row = self.columns.len();
        let (time, mut end) = number::integer(bytes, at + self.lead.len())?;
        let mut fields = 0;
        for column in &mut self.columns.fields {
            if bytes[end] == b'\n' {
                if self.ragged {
                    break;
                }
                return None;
            }
            if self.ragged {
                column.skip_to(row);
            }
            fields += 1;
            end += 1;
            if matches!(bytes[end], b',' | b'\n') {
                column.push_null();
                continue;
            }
            let (value, value_end) = number::double(bytes, end)?;
            column.values.push(value);
            end = value_end;
        }
        if bytes[end] != b'\n' {
            return None;
        }
        self.columns.times.push(time);
        self.columns.tags.push(id);
        Some((end, fields))
    }

    /// Appends the additional tags of the row that was pushed last.
    #[inline]
    fn push_additional(&mut self, json: &[u8]) {
        let additional = &mut self.columns.additional;
        if !json.is_empty() {
            if !self.additional {
                self.additional = true;
                (1..self.columns.times.len()).for_each(|_| additional.push_null());
            }
            additional.push(json);
            self.additional_bytes += json.len();
        } else if self.additional {
            additional.push_null();
        }
    }

    fn take(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        self.additional = false;
        self.additional_bytes = 0;
        self.columns.take(schema)
    }

    fn clear(&mut self) {
        self.additional = false;
        self.additional_bytes = 0;
        self.columns = SeriesRows::new(self.columns.fields.len());
    }
}

/// The table whose row is at `at`: `last`, if it is that one.
#[inline]
fn table_at(tables: &[Rows], last: usize, bytes: &[u8], at: usize) -> Option<usize> {
    let line = &bytes[at..];
    if line.starts_with(&tables.get(last)?.lead) {
        return Some(last);
    }
    tables
        .iter()
        .position(|table| line.starts_with(&table.lead))
}

/// The first of these lines.
fn first_line(lines: &[u8]) -> &[u8] {
    let length = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
    &lines[..length]
}

#[cold]
fn unknown_table(lines: &[u8], dataset: &Dataset) -> Fault {
    let line = first_line(lines);
    if line.starts_with(b"tags,") {
        let message = "a line of tags follows a line of tags, whose row is missing";
        return Fault::new(message, DAMAGED).of_row();
    }
    let name = line.split(|&byte| byte == b',').next().unwrap_or(line);
    let known: Vec<_> = dataset
        .tables
        .iter()
        .take(20)
        .map(|table| table.name.as_str())
        .collect();
    let message = format!(
        "table {} is not among those of the header: {}",
        excerpt(name),
        known.join(", ")
    );
    Fault::new(message, DAMAGED).of_row()
}

/// What is wrong with a row.
#[cold]
fn bad_row(lines: &[u8], table: &Table, ragged: bool) -> Fault {
    let line = first_line(lines);
    if line.ends_with(b"\r") {
        return Fault::carriage_return().of_row();
    }
    let ended = [line, b"\n\0\0\0\0\0\0\0\0"].concat();
    let mut at = table.name.len() + 1;
    let Some((_, end)) = number::integer(&ended, at) else {
        let time = excerpt(line[at..].split(|&byte| byte == b',').next().unwrap_or(&[]));
        let message = format!("{time} is not a time; times are nanoseconds since 1970, in 64 bits");
        return Fault::new(message, DAMAGED).of_row();
    };
    at = end;
    let given = memchr::memchr_iter(b',', &line[at..]).count();
    if given > table.metrics || (given < table.metrics && !ragged) {
        let message = format!(
            "the row has {given} fields, but {} has {} in the header",
            table.name, table.metrics
        );
        return Fault::new(message, DAMAGED).of_row();
    }
    let values = line[at..].split(|&byte| byte == b',').skip(1);
    for (value, field) in values.zip(table.schema.fields().iter().skip(FIRST_FIELD)) {
        let ended = [value, b"\n\0\0\0\0\0\0\0\0"].concat();
        if !value.is_empty() && number::double(&ended, 0).is_none() {
            let message = format!(
                "{} is {}, which is not a number that fits into a double",
                field.name(),
                excerpt(value)
            );
            return Fault::new(message, DAMAGED).of_row();
        }
    }
    Fault::new(
        format!("{} is not a row of {}", excerpt(line), table.name),
        DAMAGED,
    )
    .of_row()
}
