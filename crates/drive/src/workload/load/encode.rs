//! Rows into the messages of one transaction, sent in one pipeline.
//!
//! Data follows the statement that takes it, without waiting for the server's word that it wants some: after an
//! error it passes over what still comes, and every query is answered by itself, so both sides always know where
//! they are. INSERTs are prepared statements, between BEGIN and COMMIT as queries.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use loadstone_gen::dataset::{Chunk, Dataset, TableRows};
use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::EncodeError;
use loadstone_gen::fingerprint::{self, FingerprintError};
use loadstone_gen::rows::logical_bytes;

use super::batch::{Batch, Content};
use super::tables::{Tables, Target, shape_name};
use super::tags::{FirstTags, as_json, as_literals};
use crate::data::FileRows;
use crate::error::DriveError;
use crate::protocol::{Bulk, RowFormat, RowsError, Unencodable};

/// Why rows cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BatchError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    #[error("no fingerprint: {0}")]
    Fingerprint(#[from] FingerprintError),
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
}

impl From<RowsError> for BatchError {
    fn from(error: RowsError) -> Self {
        match error {
            RowsError::Encode(error) => Self::Encode(error),
            RowsError::Unencodable(error) => Self::Unencodable(error),
        }
    }
}

/// Turns the rows of batches into their messages.
#[derive(Debug)]
pub(crate) struct Encoder<B: Bulk> {
    tables: Arc<Tables>,
    first_tags: FirstTags,
    scratch: Vec<u8>,
    protocol: PhantomData<fn() -> B>,
}

impl<B: Bulk> Encoder<B> {
    pub(crate) fn new(tables: Arc<Tables>) -> Self {
        Self {
            tables,
            first_tags: FirstTags::default(),
            scratch: Vec::new(),
            protocol: PhantomData,
        }
    }

    /// Remember tags, before the first rows that refer to them.
    pub(crate) fn learn(&mut self, tags: &RecordBatch) {
        if self.tables.in_table_tag {
            self.first_tags.add(tags);
        }
    }

    /// The messages of one batch, into memory that is used again.
    pub(crate) fn encode(
        &mut self,
        number: u64,
        piece: &Chunk,
        content: Content,
        memory: Vec<u8>,
    ) -> Result<Batch, BatchError> {
        let tables = Arc::clone(&self.tables);
        let mut batch = Batch::whole(number, content, memory);
        batch.query::<B>(Tables::BEGIN, "BEGIN")?;
        if let (Some(target), Some(tags)) = (&tables.tags, &piece.tags) {
            self.put_tags(target, tags, &mut batch)?;
        }
        for TableRows { table, rows } in &piece.tables {
            let target = &tables.series[*table];
            let tagged = tables
                .in_table_tag
                .then(|| self.first_tags.before(&rows.batch(), &target.schema))
                .transpose()?
                .map(DictionaryBatch::from);
            let rows = tagged.as_ref().unwrap_or(rows);
            match tables.copies() {
                Some(format) => {
                    batch.query::<B>(Tables::rows_label(*table), &target.copy)?;
                    B::put_rows(format, rows, &mut batch.bytes)?;
                }
                None => self.put_insert(*table, rows, &mut batch)?,
            }
        }
        if tables.copies().is_none() {
            B::put_sync(&mut batch.bytes);
            batch.answers += 1;
        }
        put_end::<B>(&tables, &mut batch)?;
        Ok(batch)
    }

    /// The begin of a batch that is sent while its rows are made: the messages in front of them, and what answers
    /// them all will have.
    pub(crate) fn open(&self, number: u64, memory: Vec<u8>) -> Result<Batch, BatchError> {
        let tables = &self.tables;
        let mut batch = Batch::whole(number, Content::default(), memory);
        batch.query::<B>(Tables::BEGIN, "BEGIN")?;
        batch.query::<B>(Tables::rows_label(0), &tables.series[0].copy)?;
        B::put_data_begin(self.row_format(), &mut batch.bytes)?;
        let ends = tables.ledger.as_ref().map(|_| tables.ledger_label());
        batch.statements.extend(ends);
        batch.statements.push(tables.commit_label());
        batch.answers = u32::try_from(batch.statements.len()).unwrap_or(u32::MAX);
        Ok(batch)
    }

    /// Some of its rows, all of one table.
    pub(crate) fn put_part(&self, piece: &Chunk, out: &mut Vec<u8>) -> Result<(), BatchError> {
        for TableRows { rows, .. } in &piece.tables {
            B::put_part(self.row_format(), rows, out)?;
        }
        Ok(())
    }

    /// The end of such a batch of so many rows.
    pub(crate) fn close(
        &self,
        number: u64,
        rows: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), BatchError> {
        B::put_data_end(self.row_format(), out)?;
        let content = Content {
            rows,
            ..Content::default()
        };
        let mut end = Batch::whole(number, content, std::mem::take(out));
        put_end::<B>(&self.tables, &mut end)?;
        *out = end.bytes;
        Ok(())
    }

    fn row_format(&self) -> RowFormat {
        self.tables.copies().unwrap_or(RowFormat::Text)
    }

    /// The messages of one batch of at most `most` rows that lie in files; without a row at their end.
    pub(crate) fn encode_files(
        &self,
        number: u64,
        files: &mut FileRows,
        most: usize,
        memory: Vec<u8>,
    ) -> Result<Batch, DriveError> {
        let tables = &self.tables;
        let refused = |error: Unencodable| DriveError::bad_spec(error.to_string(), "");
        let mut batch = Batch::whole(number, Content::default(), memory);
        batch.query::<B>(Tables::BEGIN, "BEGIN").map_err(refused)?;
        batch
            .query::<B>(Tables::rows_label(0), &tables.series[0].copy)
            .map_err(refused)?;
        let format = self.row_format();
        B::put_data_begin(format, &mut batch.bytes).map_err(refused)?;
        let (mut bytes, mut put) = (0, Ok(()));
        let rows = files.next(most, &mut |found| {
            bytes += found.bytes.len() as u64;
            if put.is_ok() {
                put = B::put_data(found.bytes, &mut batch.bytes);
            }
        })? as u64;
        put.map_err(refused)?;
        B::put_data_end(format, &mut batch.bytes).map_err(refused)?;
        batch.content = Content {
            rows,
            metrics: rows * tables.series[0].schema.fields().len() as u64,
            logical_bytes: bytes,
            ..Content::default()
        };
        put_end::<B>(tables, &mut batch).map_err(refused)?;
        Ok(batch)
    }

    fn put_tags(
        &self,
        target: &Target,
        tags: &RecordBatch,
        batch: &mut Batch,
    ) -> Result<(), BatchError> {
        let json = self
            .tables
            .jsonb_tags
            .then(|| as_json(tags, &target.schema))
            .transpose()?;
        let tags = json.as_ref().unwrap_or(tags);
        if self.tables.copies().is_none() {
            let sql = target.insert_into() + &as_literals(tags);
            return Ok(batch.query::<B>(Tables::TAGS, &sql)?);
        }
        batch.query::<B>(Tables::TAGS, &target.copy)?;
        Ok(B::put_rows(
            RowFormat::Text,
            &tags.clone().into(),
            &mut batch.bytes,
        )?)
    }

    fn put_insert(
        &mut self,
        table: usize,
        rows: &DictionaryBatch,
        batch: &mut Batch,
    ) -> Result<(), BatchError> {
        let tables = Arc::clone(&self.tables);
        let target = &tables.series[table];
        let mut first = 0;
        while first < rows.num_rows() {
            let left = rows.num_rows() - first;
            let (name, count) = if tables.prepared {
                let log2 = left.ilog2().min(target.largest);
                let shape = Tables::shape(table, log2);
                batch.needs.push((batch.bytes.len(), shape));
                (shape_name(shape), 1 << log2)
            } else {
                let count = left.min(target.rows_max());
                B::put_prepare("", &target.insert_sql(count), &mut batch.bytes)?;
                (String::new(), count)
            };
            let columns = rows.num_columns();
            self.scratch.clear();
            B::put_values(&rows.slice(first, count), &mut self.scratch)?;
            B::put_execute(&name, columns, count, &self.scratch, &mut batch.bytes)?;
            // The server says at once that it is done with it.
            B::put_flush(&mut batch.bytes);
            batch.statements.push(Tables::rows_label(table));
            first += count;
        }
        Ok(())
    }
}

impl Batch {
    fn query<B: Bulk>(&mut self, label: u32, sql: &str) -> Result<(), Unencodable> {
        B::put_query(sql, &mut self.bytes)?;
        self.statements.push(label);
        self.answers += 1;
        Ok(())
    }
}

/// The ledger's row, and COMMIT.
fn put_end<B: Bulk>(tables: &Tables, batch: &mut Batch) -> Result<(), Unencodable> {
    if let Some(sql) = tables.ledger_sql(batch.number, batch.content.rows) {
        batch.query::<B>(tables.ledger_label(), &sql)?;
    }
    batch.query::<B>(tables.commit_label(), "COMMIT")
}

/// What a piece holds.
pub(crate) fn content(piece: &Chunk, dataset: &Dataset) -> Result<Content, FingerprintError> {
    if is_plain(dataset) {
        return Ok(Content {
            rows: piece.rows,
            metrics: piece.metrics,
            logical_bytes: piece.tables.iter().map(|t| logical_bytes(&t.rows)).sum(),
            ..Content::default()
        });
    }
    let mut fingerprints = fingerprint::Tables::new(dataset);
    fingerprints.add(piece)?;
    Ok(Content {
        rows: piece.rows,
        metrics: piece.metrics,
        tags_rows: piece.tags.as_ref().map_or(0, |t| t.num_rows() as u64),
        fingerprints: Some(fingerprints),
        latest_us: piece
            .tables
            .iter()
            .filter_map(|t| latest_us(&t.rows.batch()))
            .max(),
        logical_bytes: 0,
    })
}

/// The rows are no time series: they are compared after the load, not while it goes on.
pub(crate) fn is_plain(dataset: &Dataset) -> bool {
    dataset.tables.iter().all(|table| table.plain.is_some())
}

/// The latest time of rows that have one.
fn latest_us(rows: &RecordBatch) -> Option<i64> {
    let column = rows.column_by_name("time")?;
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let times = column.as_primitive::<TimestampNanosecondType>().values();
            times.iter().max().map(|ns| ns.div_euclid(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let times = column.as_primitive::<TimestampMicrosecondType>().values();
            times.iter().max().copied()
        }
        _ => None,
    }
}
