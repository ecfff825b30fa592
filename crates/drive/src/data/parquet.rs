//! Rows that lie in Parquet files, read as values.

use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampMillisecondType};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow_select::concat::concat_batches;
use loadstone_gen::dataset::{Chunk, Dataset, Plain, Source, SourceError, Table, TableRows};
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use serde::Deserialize;

use super::stream::kind;
use crate::error::DriveError;

/// What the one table of the files is called.
const TABLE: &str = "rows";
/// Rows that are read at a time.
const READ_ROWS: usize = 8192;
const TYPES: &str =
    "write it as a 16, 32 or 64 bit integer, a float, text, a boolean, a date or a timestamp";

/// Files of the same columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParquetSpec {
    /// The files, in order.
    pub paths: Vec<PathBuf>,
    /// The columns that each must have, in any order, in the order in which they are handed on; those of the first
    /// file when absent.
    #[serde(default)]
    pub columns: Vec<WantedColumn>,
}

/// A column that files must have.
#[derive(Debug, Clone, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WantedColumn {
    /// Its name.
    pub name: String,
    /// Its type, as a data set's description has it: `int16`, `text`, …
    #[serde(rename = "type")]
    pub kind: String,
}

impl ParquetSpec {
    /// Refuse what no file can be.
    pub(super) fn check(&self) -> Result<(), DriveError> {
        if self.paths.is_empty() {
            return Err(DriveError::bad_spec(
                "no files are named".to_owned(),
                "give at least one path",
            ));
        }
        Ok(())
    }

    /// Look at every file's columns, and begin with the first.
    pub(crate) fn open(&self) -> Result<ParquetRows, DriveError> {
        self.check()?;
        let mut wanted = self.columns.clone();
        let mut schema: Option<SchemaRef> = None;
        for path in &self.paths {
            let builder = open(path)?;
            let found = read_as(path, builder.schema())?;
            if wanted.is_empty() {
                wanted = columns(&found);
            }
            check_columns(path, &found, &wanted)?;
            let ordered = wanted
                .iter()
                .filter_map(|column| found.column_with_name(&column.name))
                .map(|(_, field)| field.clone())
                .collect::<Vec<_>>();
            schema.get_or_insert_with(|| Arc::new(Schema::new(ordered)));
        }
        let schema = schema.unwrap_or_else(|| Arc::new(Schema::empty()));
        Ok(ParquetRows {
            dataset: Arc::new(dataset(Arc::clone(&schema))),
            schema,
            left: self.paths.iter().cloned().collect(),
            reader: None,
            rest: None,
        })
    }
}

fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, DriveError> {
    let file = File::open(path).map_err(|source| DriveError::System {
        what: format!("opening {}", path.display()),
        source,
        hint: "name files of rows that can be read".to_owned(),
    })?;
    // Types are those of Parquet itself, whatever wrote the file: one type for texts, for example.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = catch_unwind(AssertUnwindSafe(|| {
        ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
    }));
    let words = match builder {
        Ok(Ok(builder)) => return Ok(builder),
        Ok(Err(error)) => error.to_string(),
        Err(_) => BROKEN.to_owned(),
    };
    Err(DriveError::bad_spec(
        format!("{} is no Parquet: {words}", path.display()),
        "give a whole file of Parquet",
    ))
}

const BROKEN: &str = "what it holds contradicts itself";

/// The columns as they are handed on.
fn read_as(path: &Path, schema: &Schema) -> Result<Schema, DriveError> {
    let field = |field: &Arc<Field>| -> Result<Field, DriveError> {
        let kind = match field.data_type() {
            DataType::Timestamp(TimeUnit::Millisecond, zone) => {
                DataType::Timestamp(TimeUnit::Microsecond, zone.clone())
            }
            kind if is_known(kind) => kind.clone(),
            kind => {
                let name = field.name();
                let message = format!(
                    "{}: column {name:?} is of the type {kind}, which is not loaded",
                    path.display()
                );
                return Err(DriveError::bad_spec(message, TYPES));
            }
        };
        Ok(Field::new(field.name(), kind, true))
    };
    Ok(Schema::new(
        schema
            .fields()
            .iter()
            .map(field)
            .collect::<Result<Vec<_>, _>>()?,
    ))
}

fn is_known(kind: &DataType) -> bool {
    use DataType::{Boolean, Date32, Float32, Float64, Int16, Int32, Int64, Timestamp, Utf8};
    match kind {
        Boolean | Date32 | Float32 | Float64 | Int16 | Int32 | Int64 | Utf8 => true,
        kind => matches!(
            kind,
            Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _)
        ),
    }
}

fn columns(schema: &Schema) -> Vec<WantedColumn> {
    let column = |field: &Arc<Field>| WantedColumn {
        name: field.name().clone(),
        kind: kind(field).to_owned(),
    };
    schema.fields().iter().map(column).collect()
}

/// Refuse a file of other columns, naming the first that differs.
fn check_columns(path: &Path, found: &Schema, wanted: &[WantedColumn]) -> Result<(), DriveError> {
    let refuse = |message: String, hint: &str| {
        let message = format!("{}: {message}", path.display());
        Err(DriveError::bad_spec(message, hint))
    };
    for column in wanted {
        let name = &column.name;
        let Some((_, field)) = found.column_with_name(name) else {
            return refuse(
                format!("there is no column {name:?}"),
                "give a file of all columns of the table",
            );
        };
        if kind(field) != column.kind && (kind(field), column.kind.as_str()) != ("text", "json") {
            let types = (kind(field), &column.kind);
            return refuse(
                format!("column {name:?} is {}, and {} is wanted", types.0, types.1),
                "write the file anew with that type",
            );
        }
    }
    let is_wanted = |field: &&Arc<Field>| wanted.iter().any(|column| column.name == *field.name());
    let mut fields = found.fields().iter();
    if let Some(field) = fields.find(|field| !is_wanted(field)) {
        return refuse(
            format!("the table has no column {:?}", field.name()),
            "leave it out of the file",
        );
    }
    if found.fields().len() != wanted.len() {
        return refuse(
            "a column is there twice".to_owned(),
            "name each column once",
        );
    }
    Ok(())
}

fn dataset(schema: SchemaRef) -> Dataset {
    let table = Table {
        name: TABLE.to_owned(),
        metrics: schema.fields().len(),
        plain: Some(Plain {
            usual_indexes: schema.fields().iter().map(|f| f.name().clone()).collect(),
            sequence: None,
            row_bytes: 0.0,
        }),
        schema,
    };
    Dataset {
        tags: None,
        tables: vec![table],
    }
}

/// The rows of several files, one after the other.
pub(crate) struct ParquetRows {
    dataset: Arc<Dataset>,
    schema: SchemaRef,
    left: VecDeque<PathBuf>,
    reader: Option<(PathBuf, ParquetRecordBatchReader)>,
    /// What was read and not given.
    rest: Option<RecordBatch>,
}

impl ParquetRows {
    /// The next rows of the files, as many as come together; none at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        loop {
            let (path, reader) = match &mut self.reader {
                Some(reader) => reader,
                None => match self.left.pop_front() {
                    None => return Ok(None),
                    Some(path) => {
                        let reader = begin(&path).map_err(|error| refused(&path, &error))?;
                        self.reader.insert((path, reader))
                    }
                },
            };
            let read = catch_unwind(AssertUnwindSafe(|| reader.next()));
            match read {
                Ok(Some(Ok(batch))) if batch.num_rows() == 0 => {}
                Ok(Some(Ok(batch))) => return in_order(path, &batch, &self.schema).map(Some),
                Ok(Some(Err(error))) => return Err(refused(path, &error.to_string())),
                Ok(None) => self.reader = None,
                Err(_) => return Err(refused(path, BROKEN)),
            }
        }
    }
}

fn begin(path: &Path) -> Result<ParquetRecordBatchReader, String> {
    let builder = open(path).map_err(|error| error.to_string())?;
    let built = builder.with_batch_size(READ_ROWS).build();
    built.map_err(|error| error.to_string())
}

fn refused(path: &Path, words: &str) -> SourceError {
    SourceError::Refused(format!("{}: {words}", path.display()))
}

/// The columns of a batch in the table's order.
fn in_order(
    path: &Path,
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, SourceError> {
    let column = |field: &Arc<Field>| {
        let column = batch.column_by_name(field.name());
        let column = column.ok_or_else(|| refused(path, "the file has changed"))?;
        Ok(in_microseconds(column))
    };
    let columns: Result<Vec<_>, SourceError> = schema.fields().iter().map(column).collect();
    let ordered = RecordBatch::try_new(Arc::clone(schema), columns?);
    ordered.map_err(|error| refused(path, &error.to_string()))
}

/// Times in milliseconds as microseconds, which is what the rest of us knows.
fn in_microseconds(column: &ArrayRef) -> ArrayRef {
    let DataType::Timestamp(TimeUnit::Millisecond, zone) = column.data_type() else {
        return Arc::clone(column);
    };
    let times = column.as_primitive::<TimestampMillisecondType>();
    let finer = times.unary::<_, TimestampMicrosecondType>(|ms| ms.saturating_mul(1000));
    Arc::new(finer.with_timezone_opt(zone.clone()))
}

impl Source for ParquetRows {
    fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError> {
        let (mut parts, mut left) = (Vec::new(), rows);
        while left > 0 {
            let batch = match self.rest.take() {
                Some(batch) => batch,
                None => match self.read()? {
                    Some(batch) => batch,
                    None => break,
                },
            };
            let count = left.min(batch.num_rows());
            parts.push(batch.slice(0, count));
            left -= count;
            if count < batch.num_rows() {
                self.rest = Some(batch.slice(count, batch.num_rows() - count));
            }
        }
        let whole = match parts.as_slice() {
            [] => return Ok(None),
            [one] => one.clone(),
            several => concat_batches(&self.schema, several)
                .map_err(|error| SourceError::Refused(format!("{rows} rows at once: {error}")))?,
        };
        let count = whole.num_rows() as u64;
        Ok(Some(Chunk {
            tags: None,
            metrics: count * whole.num_columns() as u64,
            tables: vec![TableRows {
                table: 0,
                rows: whole.into(),
            }],
            rows: count,
        }))
    }
}

#[cfg(test)]
mod tests;
