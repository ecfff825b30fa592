//! The rows of a batch for a library: Arrow, as it is.

use arrow_array::RecordBatch;
use loadstone_gen::dataset::{Chunk, Dataset, TableRows};

use super::batch::{Batch, Content};
use super::encode::BatchError;
use super::tables::Tables;
use super::tags::FirstTags;
use crate::client::library::RowBatch;
use crate::data::TableBatch;

/// Makes batches of Arrow.
#[derive(Debug, Default)]
pub(crate) struct Arrows {
    first_tags: FirstTags,
}

impl Arrows {
    /// Remember tags, before the first rows that refer to them.
    pub(crate) fn learn(&mut self, tags: &RecordBatch, tables: &Tables) {
        if tables.in_table_tag {
            self.first_tags.add(tags);
        }
    }

    /// One batch.
    pub(crate) fn encode(
        &self,
        number: u64,
        piece: &Chunk,
        content: Content,
        (dataset, tables): (&Dataset, &Tables),
    ) -> Result<Batch, BatchError> {
        let tags = piece.tags.iter().map(|rows| TableBatch {
            table: dataset
                .tags
                .as_ref()
                .map(|tags| tags.name.clone())
                .unwrap_or_default(),
            rows: rows.clone(),
        });
        let part = |TableRows { table, rows }: &TableRows| {
            let rows = rows.batch();
            let rows = if tables.in_table_tag {
                self.first_tags
                    .before(&rows, &tables.series[*table].schema)?
            } else {
                rows
            };
            let table = dataset.tables[*table].name.clone();
            Ok(TableBatch { table, rows })
        };
        let rows = RowBatch {
            number,
            rows: content.rows,
            tags: tags.collect(),
            tables: piece
                .tables
                .iter()
                .map(part)
                .collect::<Result<_, BatchError>>()?,
        };
        let mut batch = Batch::whole(number, content, Vec::new());
        batch.rows = Some(Box::new(rows));
        Ok(batch)
    }
}
