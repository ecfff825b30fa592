//! Rows into the messages of one transaction, sent in one pipeline.
//!
//! COPY goes by the simple protocol, without waiting for the server's word that it wants data: after an error it
//! passes over the data that still comes, and every query has its own `ReadyForQuery`, so both sides always know
//! where they are. INSERTs go by the extended protocol, between simple BEGIN and COMMIT.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use loadstone_gen::dataset::{Chunk, Dataset, TableRows};
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text};
use loadstone_gen::fingerprint::{self, FingerprintError};
use loadstone_gen::packed::Packed;
use loadstone_gen::rows::logical_bytes;
use loadstone_wire::postgres::{WireError, bulk};

use super::batch::{Batch, Content};
use super::spec::Method;
use super::tables::{Tables, Target, shape_name};
use super::tags::{FirstTags, as_json, as_literals};
use crate::data::FileRows;
use crate::error::DriveError;

/// About how long one piece of COPY data is: the server reads each whole into its memory.
const PIECE_BYTES: usize = 64 * 1024;
/// About how long one value is, with its length.
const VALUE_BYTES: usize = 12;

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
    Wire(#[from] WireError),
}

/// Turns the rows of batches into their messages.
#[derive(Debug)]
pub(crate) struct Encoder {
    tables: Arc<Tables>,
    first_tags: FirstTags,
    scratch: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(tables: Arc<Tables>) -> Self {
        Self {
            tables,
            first_tags: FirstTags::default(),
            scratch: Vec::new(),
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
        batch.query(Tables::BEGIN, "BEGIN")?;
        if let (Some(target), Some(tags)) = (&tables.tags, &piece.tags) {
            self.put_tags(target, tags, &mut batch)?;
        }
        for TableRows { table, rows } in &piece.tables {
            let target = &tables.series[*table];
            let tagged = tables
                .in_table_tag
                .then(|| self.first_tags.before(&rows.batch(), &target.schema))
                .transpose()?
                .map(Packed::from);
            let rows = tagged.as_ref().unwrap_or(rows);
            match tables.method {
                Method::CopyBinary | Method::CopyText | Method::Arrow => {
                    batch.query(Tables::rows_label(*table), &target.copy)?;
                    put_copy(tables.method, rows, &mut batch.bytes)?;
                }
                Method::Insert => self.put_insert(*table, rows, &mut batch)?,
            }
        }
        if tables.method == Method::Insert {
            bulk::sync(&mut batch.bytes);
            batch.answers += 1;
        }
        put_end(&tables, &mut batch)?;
        Ok(batch)
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
        let refused = |error: WireError| DriveError::bad_spec(error.to_string(), "");
        let mut batch = Batch::whole(number, Content::default(), memory);
        batch.query(Tables::BEGIN, "BEGIN").map_err(refused)?;
        batch
            .query(Tables::rows_label(0), &tables.series[0].copy)
            .map_err(refused)?;
        let binary = tables.method == Method::CopyBinary;
        if binary {
            put_pieces(copy_binary::HEADER, &mut batch.bytes).map_err(refused)?;
        }
        let (mut bytes, mut put) = (0, Ok(()));
        let rows = files.next(most, &mut |found| {
            bytes += found.bytes.len() as u64;
            if put.is_ok() {
                put = put_pieces(found.bytes, &mut batch.bytes);
            }
        })? as u64;
        put.map_err(refused)?;
        if binary {
            put_pieces(&copy_binary::TRAILER, &mut batch.bytes).map_err(refused)?;
        }
        bulk::copy_done(&mut batch.bytes);
        batch.content = Content {
            rows,
            metrics: rows * tables.series[0].schema.fields().len() as u64,
            logical_bytes: bytes,
            ..Content::default()
        };
        put_end(tables, &mut batch).map_err(refused)?;
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
        if self.tables.method == Method::Insert {
            let sql = target.insert_into() + &as_literals(tags);
            return Ok(batch.query(Tables::TAGS, &sql)?);
        }
        batch.query(Tables::TAGS, &target.copy)?;
        put_copy(Method::CopyText, &tags.clone().into(), &mut batch.bytes)
    }

    fn put_insert(
        &mut self,
        table: usize,
        rows: &Packed,
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
                bulk::parse("", &target.insert_sql(count), &mut batch.bytes)?;
                (String::new(), count)
            };
            let columns = rows.num_columns();
            self.scratch.clear();
            copy_binary(&rows.slice(first, count), &mut self.scratch)?;
            let parameters = u16::try_from(count * columns).unwrap_or(u16::MAX);
            bulk::bind_binary::<WireError>(&name, parameters, &mut batch.bytes, |out| {
                put_values(&self.scratch, columns, usize::MAX, out);
                Ok(())
            })?;
            bulk::execute_and_flush(&mut batch.bytes);
            batch.statements.push(Tables::rows_label(table));
            first += count;
        }
        Ok(())
    }
}

impl Batch {
    fn query(&mut self, label: u32, sql: &str) -> Result<(), WireError> {
        bulk::query(sql, &mut self.bytes)?;
        self.statements.push(label);
        self.answers += 1;
        Ok(())
    }
}

/// The ledger's row, and COMMIT.
fn put_end(tables: &Tables, batch: &mut Batch) -> Result<(), WireError> {
    if let Some(sql) = tables.ledger_sql(batch.number, batch.content.rows) {
        batch.query(tables.ledger_label(), &sql)?;
    }
    batch.query(tables.commit_label(), "COMMIT")
}

/// Bytes as COPY data.
fn put_pieces(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    for piece in bytes.chunks(PIECE_BYTES) {
        bulk::copy_data::<WireError>(out, |out| {
            out.extend_from_slice(piece);
            Ok(())
        })?;
    }
    Ok(())
}

/// Rows as COPY data, in pieces, with what begins and ends them.
fn put_copy(method: Method, rows: &Packed, out: &mut Vec<u8>) -> Result<(), BatchError> {
    let binary = method == Method::CopyBinary;
    let step = (PIECE_BYTES / (2 + VALUE_BYTES * rows.num_columns())).max(1);
    for first in (0..rows.num_rows()).step_by(step) {
        let count = step.min(rows.num_rows() - first);
        let slice = rows.slice(first, count);
        bulk::copy_data::<BatchError>(out, |out| {
            if !binary {
                return Ok(copy_text(&slice, out)?);
            }
            if first == 0 {
                out.extend_from_slice(copy_binary::HEADER);
            }
            copy_binary(&slice, out)?;
            if first + count == rows.num_rows() {
                out.extend_from_slice(&copy_binary::TRAILER);
            }
            Ok(())
        })?;
    }
    bulk::copy_done(out);
    Ok(())
}

/// The values of the first `rows` tuples as Bind has them: the same, without each tuple's count of columns. Returns
/// the tuples after them.
pub(super) fn put_values<'t>(
    tuples: &'t [u8],
    columns: usize,
    rows: usize,
    out: &mut Vec<u8>,
) -> &'t [u8] {
    let (mut rest, mut put) = (tuples, 0);
    while rest.len() > 2 && put < rows {
        rest = &rest[2..];
        let mut length = 0;
        for _ in 0..columns {
            let value = rest.get(length..length + 4).and_then(|l| l.first_chunk());
            let bytes = value.map_or(-1, |bytes| i32::from_be_bytes(*bytes));
            length += 4 + usize::try_from(bytes).unwrap_or(0);
        }
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        put += 1;
    }
    rest
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
