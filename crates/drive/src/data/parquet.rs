//! Rows that lie in Parquet files, read as values.

mod cast;
mod columns;

use std::collections::VecDeque;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use loadstone_gen::dataset::{Chunk, Dataset, Plain, Source, SourceError, Table, TableRows};
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use serde::Deserialize;

use crate::error::DriveError;

/// What the one table of the files is called.
const TABLE: &str = "rows";
/// Rows that are read at a time.
const READ_ROWS: usize = 8192;

/// Files of the same columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParquetSpec {
    /// The files, in order.
    pub paths: Vec<PathBuf>,
    /// The columns that each must have, in any order, in the order in which they are handed on; those of the first
    /// file when absent. Values of another type are cast where none changes by it.
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
        let mut schema: Option<SchemaRef> = None;
        for path in &self.paths {
            let builder = open(path)?;
            let wanted = match schema {
                Some(schema) => schema,
                None => Arc::new(columns::handed_on(path, builder.schema(), &self.columns)?),
            };
            columns::check(path, builder.schema(), &wanted)?;
            let looked = catch_unwind(AssertUnwindSafe(|| {
                columns::check_bounds(path, &builder, &wanted)
            }));
            looked.map_err(|_| broken(path, BROKEN))??;
            schema = Some(wanted);
        }
        let schema = schema.unwrap_or_else(|| Arc::new(Schema::empty()));
        Ok(ParquetRows {
            dataset: Arc::new(dataset(Arc::clone(&schema))),
            schema,
            left: self.paths.iter().cloned().collect(),
            reading: None,
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
    Err(broken(path, &words))
}

fn broken(path: &Path, words: &str) -> DriveError {
    DriveError::bad_spec(
        format!("{} is no Parquet: {words}", path.display()),
        "give a whole file of Parquet",
    )
}

const BROKEN: &str = "what it holds contradicts itself";

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
    reading: Option<Reading>,
    /// What was read and not given.
    rest: Option<RecordBatch>,
}

/// A file that is being read.
struct Reading {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    /// Rows that were read of it.
    rows: usize,
}

impl ParquetRows {
    /// The next rows of the files, as many as come together; none at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>, SourceError> {
        loop {
            let reading = match &mut self.reading {
                Some(reading) => reading,
                None => match self.left.pop_front() {
                    None => return Ok(None),
                    Some(path) => self.reading.insert(Reading::new(path)?),
                },
            };
            match reading.next(&self.schema)? {
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => return Ok(Some(batch)),
                None => self.reading = None,
            }
        }
    }
}

impl Reading {
    fn new(path: PathBuf) -> Result<Self, SourceError> {
        let reader = begin(&path).map_err(|error| refused(&path, &error))?;
        Ok(Self {
            path,
            reader,
            rows: 0,
        })
    }

    /// The next rows of the file, with the columns of the table in its order.
    fn next(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>, SourceError> {
        let read = catch_unwind(AssertUnwindSafe(|| self.reader.next()));
        let Some(batch) = read.map_err(|_| refused(&self.path, BROKEN))? else {
            return Ok(None);
        };
        let batch = batch.map_err(|error| refused(&self.path, &error.to_string()))?;
        let column = |field: &Arc<Field>| {
            let column = batch.column_by_name(field.name());
            let column = column.ok_or_else(|| refused(&self.path, "the file has changed"))?;
            cast::cast(column, field.data_type()).map_err(|row| {
                let words = columns::unfit(field, &cast::shown(column, row));
                refused(&self.path, &format!("row {}: {words}", self.rows + row + 1))
            })
        };
        let columns: Result<Vec<_>, SourceError> = schema.fields().iter().map(column).collect();
        let ordered = RecordBatch::try_new(Arc::clone(schema), columns?);
        self.rows += batch.num_rows();
        ordered
            .map(Some)
            .map_err(|error| refused(&self.path, &error.to_string()))
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
