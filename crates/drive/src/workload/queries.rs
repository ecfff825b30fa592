//! Queries that were drawn beforehand, as the work of a drive.
//!
//! All clients take from one list, each the next query when it is free. A query is a transaction of its own whose
//! kind is its label, sent as one pipeline: Parse (of a text that this connection does not hold yet), Bind,
//! Describe, Execute, Sync. So a new text costs one round trip, where a driver that asks for the description
//! before it executes needs two. Texts stay prepared on a connection, the most recently used ones, as TSBS's
//! driver keeps them.
//!
//! Reading the answer is part of the query: its end is the arrival of the last row, decoded into its digest.

mod answers;
mod client;
mod feed;
mod library;
mod library_probe;
mod probe;
mod statements;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::answers::{Answer, Answers};
use self::client::QueryProgram;
use self::feed::Feed;
use self::library::LibraryQueries;
use self::library_probe::LibraryProbe;
use self::probe::{Probe, ProbeProgram};
use self::statements::key;
use crate::error::DriveError;
use crate::protocol::Protocol;
use crate::record::Record;
use crate::spec::DriveSpec;
use crate::spec::queries::{AnswerMode, QueriesSpec};
use crate::workload::blocking::{self, BlockingProgram};
use crate::workload::{Labels, Program};

/// The queries, shared by all clients.
#[derive(Debug)]
pub(crate) struct QueryWork {
    labels: Vec<String>,
    shared: Arc<Shared>,
    probe: Option<Arc<Probe>>,
    /// Clients reach the database through a library.
    by_library: bool,
    /// Where answers of several hosts to one text differ.
    differences: Mutex<Vec<String>>,
}

/// What one of several hosts has learnt beside its records.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum QueryPart {
    /// The answer to the query of this number.
    Answer(u64, Answer),
    /// Rows received by label, and how many answers were not kept.
    Rows(Vec<u64>, u64),
}

/// What the clients share.
#[derive(Debug)]
struct Shared {
    feed: Feed,
    answers: Answers,
    binary: bool,
    burn_in: u64,
    statements_max: usize,
    /// Rows received, by label.
    rows: Vec<AtomicU64>,
}

impl QueryWork {
    /// Read and check all queries.
    pub(crate) fn new(spec: &QueriesSpec, drive: &DriveSpec) -> Result<Self, DriveError> {
        check(spec, drive)?;
        let mut labels = spec.labels.clone();
        let probe = match &spec.probe {
            Some(probe) => {
                labels = vec!["probe".to_owned()];
                Some(Arc::new(Probe::new(probe, spec.binary, drive)?))
            }
            None => None,
        };
        let shared = Arc::new(Shared {
            feed: Feed::new(spec, drive.share())?,
            answers: Answers::new(spec),
            binary: spec.binary,
            burn_in: spec.burn_in,
            statements_max: spec.statements_max,
            rows: labels.iter().map(|_| AtomicU64::new(0)).collect(),
        });
        let work = Self {
            labels,
            shared,
            probe,
            by_library: false,
            differences: Mutex::default(),
        };
        work.check_burn_in(spec)?;
        Ok(work)
    }

    /// The same for clients that reach the database through a library.
    pub(crate) fn for_library(spec: &QueriesSpec, drive: &DriveSpec) -> Result<Self, DriveError> {
        if spec.answers == AnswerMode::Rows {
            return Err(DriveError::bad_spec(
                "answers of a library can only be digested or counted".to_owned(),
                "set answers to digest or none",
            ));
        }
        Ok(Self {
            by_library: true,
            ..Self::new(spec, drive)?
        })
    }

    pub(crate) fn blocking_program(&self) -> Box<dyn BlockingProgram> {
        match &self.probe {
            Some(probe) => Box::new(LibraryProbe::new(Arc::clone(probe))),
            None => Box::new(LibraryQueries::new(Arc::clone(&self.shared))),
        }
    }

    fn check_burn_in(&self, spec: &QueriesSpec) -> Result<(), DriveError> {
        let total = self.shared.feed.total();
        if spec.burn_in > 0 && total.is_some_and(|total| spec.burn_in >= total) {
            let run = total.unwrap_or_default();
            return Err(DriveError::bad_spec(
                format!(
                    "burn_in is {}, but only {run} queries are run",
                    spec.burn_in
                ),
                "use a smaller burn_in, more queries, or loop",
            ));
        }
        Ok(())
    }

    pub(crate) fn labels(&self) -> Labels {
        Labels::plain(&self.labels)
    }

    pub(crate) fn program<P: Protocol>(&self) -> Box<dyn Program<P> + Send> {
        match &self.probe {
            Some(probe) => Box::new(ProbeProgram::new(Arc::clone(probe))),
            None => Box::new(QueryProgram::new(Arc::clone(&self.shared))),
        }
    }

    pub(crate) fn mode(&self) -> String {
        if self.by_library {
            return blocking::IO.to_owned();
        }
        let keeps = self.shared.statements_max > 0 || self.probe.is_some();
        if keeps { "prepared" } else { "extended" }.to_owned()
    }

    /// Why the work cannot go on.
    pub(crate) fn failure(&self) -> Option<String> {
        let probe = self.probe.as_ref().and_then(|probe| probe.failure());
        probe.or_else(|| self.shared.feed.failure())
    }

    /// Hand over what is learnt beside the records, for who puts several hosts together.
    pub(crate) fn parts(
        &self,
        take: &mut dyn FnMut(Value) -> Result<(), DriveError>,
    ) -> Result<(), DriveError> {
        let left_out = (self.shared.answers)
            .each(|number, answer| take(json!({"answer": (number, answer)})))?;
        let rows = self.shared.rows.iter();
        let rows: Vec<u64> = rows.map(|rows| rows.load(Ordering::Relaxed)).collect();
        take(json!(QueryPart::Rows(rows, left_out)))
    }

    /// Take in what another host has learnt.
    pub(crate) fn join(&self, part: Value) {
        match serde_json::from_value(part) {
            Ok(QueryPart::Answer(number, answer)) => self.join_answer(number, answer),
            Ok(QueryPart::Rows(rows, left_out)) => {
                for (mine, theirs) in self.shared.rows.iter().zip(rows) {
                    mine.fetch_add(theirs, Ordering::Relaxed);
                }
                self.shared.answers.left_out(left_out);
            }
            Err(_) => {} // a line that was cut off
        }
    }

    fn join_answer(&self, number: u64, answer: Answer) {
        let Some(text) = self.shared.feed.text(number) else {
            return;
        };
        let differs = (self.shared.answers).join(key(&text), number, answer);
        let mut differences = (self.differences.lock()).unwrap_or_else(PoisonError::into_inner);
        differences.extend(differs);
    }

    /// Where answers of several hosts differ, in words.
    pub(crate) fn differences(&self) -> Vec<String> {
        (self
            .differences
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
        .clone()
    }

    pub(crate) fn account(&self, totals: &Record) -> Map<String, Value> {
        let mut labels = self.labels().accounts(totals);
        for (label, rows) in labels.iter_mut().zip(&self.shared.rows) {
            label["rows"] = json!(rows.load(Ordering::Relaxed));
        }
        let (answers, left_out) = self.shared.answers.account();
        let queries = json!({
            "labels": labels,
            "total": self.shared.feed.listed(),
            "burn_in": self.shared.burn_in,
            "binary": (!self.by_library).then_some(self.shared.binary),
            "answers": answers,
            "answers_left_out": left_out,
        });
        Map::from_iter([("queries".to_owned(), queries)])
    }
}

fn check(spec: &QueriesSpec, drive: &DriveSpec) -> Result<(), DriveError> {
    let refuse = |message: &str, hint: &str| Err(DriveError::bad_spec(message.to_owned(), hint));
    let given = [
        spec.queries.is_some(),
        spec.file.is_some(),
        spec.probe.is_some(),
    ];
    if given.into_iter().filter(|&given| given).count() != 1 {
        return refuse(
            "queries come from one source",
            "set exactly one of queries, file and probe",
        );
    }
    if spec.max_queries > 0 && spec.burn_in >= spec.max_queries {
        return refuse(
            "burn_in is not smaller than max_queries, so no query is measured",
            "set a smaller burn_in",
        );
    }
    let ends = drive.duration_s.is_some() || drive.transactions_per_client.is_some();
    if spec.repeat && !ends && spec.max_queries == 0 {
        return refuse(
            "a list that repeats never ends",
            "set duration_s, transactions_per_client or max_queries with loop",
        );
    }
    Ok(())
}
