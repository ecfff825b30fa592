//! A recorder's work and its clients, in the place of a drive's own.

use loadstone_wire::postgres::{Frontend, Message};
use serde_json::{Map, Value, json};

use crate::program::{Failure, Program, Readiness, Step};
use crate::record::Record;
use crate::work::Labels;

/// The work of a recorder, as the account sees it.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(super) labels: Labels,
    pub(super) is_load: bool,
}

impl Recorded {
    pub(crate) fn labels(&self) -> Labels {
        self.labels.clone()
    }

    pub(crate) fn is_load(&self) -> bool {
        self.is_load
    }

    pub(crate) fn account(&self, totals: &Record) -> Map<String, Value> {
        let mut account = Map::new();
        if !self.is_load {
            let labels = self.labels.accounts(totals);
            account.insert("queries".to_owned(), json!({"labels": labels}));
        }
        account
    }
}

/// What the clients of a recorder do, which has none: nothing.
pub(crate) struct NoProgram;

impl Program for NoProgram {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        Readiness::Ended
    }

    fn begin(&mut self) -> usize {
        0
    }

    fn retry(&mut self) {}

    fn resume(&mut self, _frontend: &mut Frontend<'_>, _statements: &mut Vec<u32>) -> Step {
        Step::Done
    }

    fn message(&mut self, _message: &Message<'_>) {}

    fn answered(&mut self, _failed: bool) -> Result<(), Failure> {
        Ok(())
    }

    fn reconnected(&mut self) {}
}
