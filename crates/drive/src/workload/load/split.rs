//! The rows of a chunk by the client that is to send them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int32Type, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use loadstone_gen::dataset::{Chunk, Dataset, TableRows};

/// One piece for each lane; all rows of a device's state, and its tags, go to the same lane.
pub(crate) fn by_device(
    chunk: &Chunk,
    lanes: usize,
    dataset: &Dataset,
) -> Result<Vec<Chunk>, ArrowError> {
    let mut pieces: Vec<Chunk> = (0..lanes).map(|_| Chunk::default()).collect();
    if let Some(tags) = &chunk.tags {
        for (piece, rows) in pieces.iter_mut().zip(scatter(tags, 0, lanes)?) {
            piece.tags = rows;
        }
    }
    let mut uniform = 0;
    for table in &chunk.tables {
        let metrics = dataset.tables[table.table].metrics;
        let rows = table.rows.batch();
        uniform += (rows.num_rows() * metrics) as u64;
        let key = rows.schema().index_of("tags_id")?;
        for (piece, rows) in pieces.iter_mut().zip(scatter(&rows, key, lanes)?) {
            if let Some(rows) = rows {
                piece.rows += rows.num_rows() as u64;
                piece.metrics += (rows.num_rows() * metrics) as u64;
                piece.tables.push(TableRows {
                    table: table.table,
                    rows: rows.into(),
                });
            }
        }
    }
    if uniform != chunk.metrics {
        share_metrics(chunk.metrics, dataset, &mut pieces);
    }
    Ok(pieces)
}

/// Where rows of one table have different numbers of fields, a piece has those that are there; what else the
/// chunk counts goes to the last piece that has rows.
fn share_metrics(total: u64, dataset: &Dataset, pieces: &mut [Chunk]) {
    let mut left = total;
    for piece in &mut *pieces {
        let tables = piece.tables.iter();
        let present = tables.map(|t| present(&t.rows.batch(), dataset.tables[t.table].metrics));
        piece.metrics = present.sum::<u64>().min(left);
        left -= piece.metrics;
    }
    if let Some(last) = pieces.iter_mut().rev().find(|p| !p.tables.is_empty()) {
        last.metrics += left;
    }
}

/// Fields that are not null; they come after `time` and `tags_id`.
fn present(rows: &RecordBatch, metrics: usize) -> u64 {
    let fields = rows.columns().iter().skip(2).take(metrics);
    fields.map(|f| (f.len() - f.null_count()) as u64).sum()
}

/// Rows by the lane of the id in column `key`; none for a lane that gets no row.
fn scatter(
    rows: &RecordBatch,
    key: usize,
    lanes: usize,
) -> Result<Vec<Option<RecordBatch>>, ArrowError> {
    let ids = rows
        .column(key)
        .as_primitive_opt::<Int32Type>()
        .ok_or_else(|| ArrowError::SchemaError("ids are not 32-bit integers".to_owned()))?;
    let mut chosen: Vec<Vec<usize>> = vec![Vec::with_capacity(rows.num_rows() / lanes + 1); lanes];
    for (row, &id) in ids.values().iter().enumerate() {
        let lane = usize::try_from(id.unsigned_abs()).unwrap_or(0) % lanes;
        chosen[lane].push(row);
    }
    chosen
        .into_iter()
        .map(|rows_of_lane| {
            if rows_of_lane.is_empty() {
                return Ok(None);
            }
            take(rows, &rows_of_lane).map(Some)
        })
        .collect()
}

/// Some rows, in the order in which they are named.
fn take(rows: &RecordBatch, chosen: &[usize]) -> Result<RecordBatch, ArrowError> {
    let columns = rows.columns().iter().map(|column| pick(column, chosen));
    RecordBatch::try_new(rows.schema(), columns.collect::<Result<_, _>>()?)
}

/// Some values of a column, of the types that time series have.
fn pick(column: &ArrayRef, chosen: &[usize]) -> Result<ArrayRef, ArrowError> {
    Ok(match column.data_type() {
        DataType::Int32 => Arc::new(values::<Int32Type>(column, chosen)),
        DataType::Float32 => Arc::new(values::<Float32Type>(column, chosen)),
        DataType::Float64 => Arc::new(values::<Float64Type>(column, chosen)),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let times = values::<TimestampNanosecondType>(column, chosen);
            Arc::new(times.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => {
            let texts = column.as_string::<i32>();
            let text = |&row: &usize| texts.is_valid(row).then(|| texts.value(row));
            Arc::new(chosen.iter().map(text).collect::<StringArray>())
        }
        other => {
            let message = format!("rows of devices have no values of the type {other}");
            return Err(ArrowError::SchemaError(message));
        }
    })
}

fn values<T: ArrowPrimitiveType>(column: &ArrayRef, chosen: &[usize]) -> PrimitiveArray<T> {
    let column = column.as_primitive::<T>();
    let value = |&row: &usize| column.is_valid(row).then(|| column.value(row));
    chosen.iter().map(value).collect()
}
