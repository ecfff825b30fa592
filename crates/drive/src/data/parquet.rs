//! Rows that are in Parquet files, read as values.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use loadstone_gen::dataset::{Chunk, Dataset, Plain, Source, SourceError, Table, TableRows};
use serde::Deserialize;

use crate::data::formats::{RowReader, formats};
use crate::error::DriveError;

/// What the one table of the files is called.
const TABLE: &str = "rows";

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
                "there are no files".to_owned(),
                "set at least one path",
            ));
        }
        Ok(())
    }

    /// Look at every file's columns, and begin with the first.
    pub(crate) fn open(&self) -> Result<ParquetRows, DriveError> {
        self.check()?;
        let known = formats().map_err(|source| DriveError::System {
            what: "reading Parquet".to_owned(),
            source,
            hint: String::new(),
        })?;
        let reader = known.parquet(self)?;
        Ok(ParquetRows {
            dataset: Arc::new(dataset(Arc::clone(reader.schema()))),
            reader,
        })
    }
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
    reader: Box<dyn RowReader>,
}

impl Source for ParquetRows {
    fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError> {
        let Some(batch) = self.reader.read(rows)? else {
            return Ok(None);
        };
        let count = batch.num_rows() as u64;
        Ok(Some(Chunk {
            tags: None,
            metrics: count * batch.num_columns() as u64,
            tables: vec![TableRows {
                table: 0,
                rows: batch.into(),
            }],
            rows: count,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parquet_without_a_file_or_a_library_is_refused() {
        let spec = |paths| ParquetSpec {
            paths,
            columns: Vec::new(),
        };
        let words = |spec: ParquetSpec| spec.open().err().unwrap().to_string();
        assert_eq!(words(spec(Vec::new())), "there are no files");
        let without = words(spec(vec![PathBuf::from("rows.parquet")]));
        assert_eq!(
            without,
            "reading Parquet: this program can neither read nor write Parquet or zstd"
        );
    }
}
