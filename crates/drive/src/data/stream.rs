//! Rows for whoever is no driver: read in pieces, counted on the way.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field};
use loadstone_gen::dataset::{Dataset, Plain, Source, SourceError, Table};
use loadstone_gen::encode::sql_type;
use loadstone_gen::fingerprint::{Fingerprint, Tables};
use serde::Serialize;

use super::DataSpec;
use crate::error::DriveError;

/// A source with what was read from it so far.
pub struct DataStream {
    source: Box<dyn Source>,
    rows: u64,
    metrics: u64,
    fingerprints: Option<Tables>,
}

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct TableBatch {
    /// The table's name.
    pub table: String,
    /// The rows.
    pub rows: RecordBatch,
}

#[derive(Serialize)]
struct DatasetDocument<'a> {
    tags: Option<TableDocument<'a>>,
    tables: Vec<TableDocument<'a>>,
}

#[derive(Serialize)]
struct TableDocument<'a> {
    name: &'a str,
    metrics: usize,
    columns: Vec<ColumnDocument<'a>>,
    #[serde(flatten)]
    plain: Option<PlainDocument<'a>>,
}

/// What is said of plain tables only.
#[derive(Serialize)]
struct PlainDocument<'a> {
    usual_indexes: &'a [String],
    sequence: Option<&'static str>,
    sequence_first: Option<i64>,
    sequence_step: Option<i64>,
    row_bytes: f64,
}

#[derive(Serialize)]
struct ColumnDocument<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// Its type in SQL, where it is narrower.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<&'a str>,
}

impl DataStream {
    /// Open the data of a document; `fingerprints` are taken while it is read.
    ///
    /// # Errors
    /// [`DriveError`] when it does not parse, or cannot be opened.
    pub fn from_json(text: &str, fingerprints: bool) -> Result<Self, DriveError> {
        let source = DataSpec::from_json(text)?.open()?;
        Ok(Self {
            fingerprints: fingerprints.then(|| Tables::new(source.dataset())),
            source,
            rows: 0,
            metrics: 0,
        })
    }

    /// The tables.
    #[must_use]
    pub fn dataset(&self) -> &Arc<Dataset> {
        self.source.dataset()
    }

    /// The tables as JSON: `{"tags":TABLE|null,"tables":[TABLE]}`.
    #[must_use]
    pub fn dataset_document(&self) -> String {
        document(self.dataset())
    }

    /// The next `rows` rows by table, new tags before all, or none at the end.
    ///
    /// # Errors
    /// [`DriveError::Data`] when the source cannot go on.
    pub fn read(&mut self, rows: usize) -> Result<Option<Vec<TableBatch>>, DriveError> {
        let Some(chunk) = self.source.next(rows)? else {
            return Ok(None);
        };
        if let Some(fingerprints) = &mut self.fingerprints {
            fingerprints.add(&chunk).map_err(|error| {
                DriveError::Data(SourceError::Refused(format!("no fingerprint: {error}")))
            })?;
        }
        self.rows += chunk.rows;
        self.metrics += chunk.metrics;
        let dataset = self.source.dataset();
        let name = |table: &Table| table.name.clone();
        let tags = chunk.tags.map(|rows| TableBatch {
            table: dataset.tags.as_ref().map(name).unwrap_or_default(),
            rows,
        });
        let tables = chunk.tables.into_iter().map(|part| TableBatch {
            table: name(&dataset.tables[part.table]),
            rows: part.rows.batch(),
        });
        Ok(Some(tags.into_iter().chain(tables).collect()))
    }

    /// The fingerprints of what was read so far, as JSON: `[{"name","rows","fingerprint":{…}}]`.
    #[must_use]
    pub fn fingerprints_document(&self) -> Option<String> {
        let fingerprints = self.fingerprints.as_ref()?;
        let tables = self.dataset().tables.iter().zip(fingerprints.as_slice());
        let documents: Vec<_> = tables
            .map(|(table, fingerprint)| TableFingerprint {
                name: &table.name,
                rows: fingerprint.rows(),
                fingerprint: FingerprintDocument::new(fingerprint),
            })
            .collect();
        serde_json::to_string(&documents).ok()
    }

    /// Rows read so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Fields read so far, empty ones included.
    #[must_use]
    pub fn metrics(&self) -> u64 {
        self.metrics
    }
}

#[derive(Serialize)]
struct TableFingerprint<'a> {
    name: &'a str,
    rows: u64,
    fingerprint: FingerprintDocument,
}

/// A fingerprint as JSON; whole numbers beyond what a double holds exactly are text.
#[derive(Debug, Clone, Serialize)]
pub struct FingerprintDocument {
    rows: String,
    time_sum: String,
    tags_sum: String,
    nulls: Vec<String>,
    content: String,
}

impl FingerprintDocument {
    /// As it is shown.
    #[must_use]
    pub fn new(fingerprint: &Fingerprint) -> Self {
        Self {
            rows: fingerprint.rows().to_string(),
            time_sum: fingerprint.time_sum().to_string(),
            tags_sum: fingerprint.tags_sum().to_string(),
            nulls: fingerprint.nulls().iter().map(u64::to_string).collect(),
            content: fingerprint.content().to_string(),
        }
    }
}

/// The tables of a data set as JSON.
#[must_use]
pub fn document(dataset: &Dataset) -> String {
    let document = DatasetDocument {
        tags: dataset.tags.as_ref().map(table_document),
        tables: dataset.tables.iter().map(table_document).collect(),
    };
    serde_json::to_string(&document).unwrap_or_default()
}

fn table_document(table: &Table) -> TableDocument<'_> {
    let column = |field| -> ColumnDocument<'_> {
        let field: &Field = field;
        ColumnDocument {
            name: field.name(),
            kind: kind(field),
            sql: sql_type(field),
        }
    };
    TableDocument {
        name: &table.name,
        metrics: table.metrics,
        columns: table
            .schema
            .fields()
            .iter()
            .map(|field| column(field))
            .collect(),
        plain: table.plain.as_ref().map(plain_document),
    }
}

fn plain_document(plain: &Plain) -> PlainDocument<'_> {
    PlainDocument {
        usual_indexes: &plain.usual_indexes,
        sequence: plain.sequence.map(|sequence| sequence.column),
        sequence_first: plain.sequence.map(|sequence| sequence.first),
        sequence_step: plain.sequence.map(|sequence| sequence.step),
        row_bytes: plain.row_bytes,
    }
}

pub(super) fn kind(field: &Field) -> &'static str {
    match field.data_type() {
        _ if sql_type(field) == Some("json") => "json",
        DataType::Timestamp(..) => "timestamp",
        DataType::Date32 => "date",
        DataType::Int16 => "int16",
        DataType::Int32 => "int32",
        DataType::Int64 => "int64",
        DataType::Float32 => "float32",
        DataType::Float64 => "float64",
        DataType::Boolean => "bool",
        _ => "text",
    }
}

impl From<SourceError> for DriveError {
    fn from(error: SourceError) -> Self {
        Self::Data(error)
    }
}
