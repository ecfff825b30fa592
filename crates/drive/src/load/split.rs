//! The rows of a chunk by the client that is to send them.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take_record_batch;
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
        .ok_or_else(|| ArrowError::SchemaError("ids are no 32-bit integers".to_owned()))?;
    let mut chosen: Vec<Vec<u32>> = vec![Vec::with_capacity(rows.num_rows() / lanes + 1); lanes];
    for (row, &id) in (0_u32..).zip(ids.values()) {
        let lane = usize::try_from(id.unsigned_abs()).unwrap_or(0) % lanes;
        chosen[lane].push(row);
    }
    chosen
        .into_iter()
        .map(|rows_of_lane| {
            if rows_of_lane.is_empty() {
                return Ok(None);
            }
            take_record_batch(rows, &UInt32Array::from(rows_of_lane)).map(Some)
        })
        .collect()
}
