//! One client that runs queries through a library.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};

use super::Shared;
use super::answers::Want;
use super::feed::Query;
use super::statements::{Key, key};
use crate::answer::{Digester, arrow};
use crate::client::library::{Call, LibraryClient, LibraryError};
use crate::protocol::Failure;
use crate::record::ErrorClass;
use crate::workload::blocking::BlockingProgram;
use crate::workload::{End, LoadCount, Readiness};

pub(super) struct LibraryQueries {
    shared: Arc<Shared>,
    query: Query,
    key: Key,
    /// The query was taken from the list and has not begun.
    is_held: bool,
    digester: Digester,
    schema: SchemaRef,
    answer: Vec<RecordBatch>,
    row_count: u64,
}

impl LibraryQueries {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            query: Query::default(),
            key: 0,
            is_held: false,
            digester: Digester::default(),
            schema: Arc::new(Schema::empty()),
            answer: Vec::new(),
            row_count: 0,
        }
    }
}

impl BlockingProgram for LibraryQueries {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        if !self.is_held {
            self.is_held = self.shared.feed.take(&mut self.query);
        }
        if self.is_held {
            Readiness::Ready
        } else {
            Readiness::Ended
        }
    }

    fn begin(&mut self) -> usize {
        self.is_held = false;
        self.key = key(&self.query.sql);
        self.query.label
    }

    fn is_measured(&self) -> bool {
        self.query.turn >= self.shared.burn_in
    }

    fn call(&mut self, client: &mut dyn LibraryClient, call: &Call) -> Result<(), LibraryError> {
        self.answer.clear();
        let stream = client.query(&self.query.sql, call)?;
        self.schema = stream.schema();
        for batch in stream {
            let batch = batch.map_err(|error| LibraryError::new("answer", &error.to_string()))?;
            self.answer.push(batch);
        }
        Ok(())
    }

    fn answered(&mut self) -> Result<(), Failure> {
        let answers = &self.shared.answers;
        let answer = std::mem::take(&mut self.answer);
        self.row_count = answer.iter().map(|batch| batch.num_rows() as u64).sum();
        if answers.want(self.key) == Want::Count {
            answers.counted(self.key);
            return Ok(());
        }
        let wrong = |words: String| Failure::new(ErrorClass::Answer, words);
        let digest = arrow::digest(&self.schema, &answer, &mut self.digester);
        let digest = digest.map_err(|error| wrong(error.to_string()))?;
        let difference = answers.digest(self.key, self.query.number, digest);
        difference.map_or(Ok(()), |words| Err(wrong(words)))
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        if let End::Done { .. } = end {
            self.shared.rows[self.query.label].fetch_add(self.row_count, Ordering::Relaxed);
        }
        LoadCount::default()
    }

    fn gone(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.shared.feed.give_back(&self.query);
        }
    }
}
