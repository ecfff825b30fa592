//! A whole answer.

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

/// What a statement gave, all of it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, in the pieces in which the library gave them.
    pub batches: Vec<RecordBatch>,
}

impl Answer {
    /// Its rows as a stream.
    #[must_use]
    pub fn into_reader(self) -> Box<dyn RecordBatchReader + Send> {
        let batches = self.batches.into_iter().map(Ok::<_, ArrowError>);
        Box::new(RecordBatchIterator::new(batches, self.schema))
    }
}
