//! What has become of the batches of a load.

use loadstone_gen::fingerprint::Tables;
use serde::Serialize;
use serde_json::{Value, json};

use super::batch::Content;
use super::long::{Account as LongAccount, Progress, TxnOutcome};
use super::ranges::Ranges;
use crate::data::FingerprintDocument;
use crate::protocol::Failure;
use crate::workload::LoadCount;

/// A batch that holds a later row time than all that were stored before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Mark {
    /// Its latest row time, microseconds since 1970.
    pub(crate) time_us: i64,
    /// Its first bytes were passed on.
    pub(crate) sent_ns: u64,
    /// The server had said that it was committed.
    pub(crate) acked_ns: u64,
}

/// The sums over all batches that have ended.
///
/// Clients go through the batches in order, so the ranges stay few; the collector takes the marks away at every
/// interval, so they stay few as well.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Stored by this load, and said to be.
    committed: Ranges,
    batches: u64,
    /// Of the batches that this load stored.
    content: Content,
    skipped: u64,
    /// Of those, and of the batches that an earlier load has stored.
    held: Option<Tables>,
    /// Rows of tags of all these.
    tags_held: u64,
    in_doubt: Vec<u64>,
    failed: Vec<u64>,
    unsent: u64,
    latest_us: Option<i64>,
    marks: Vec<Mark>,
    marks_total: u64,
    /// Of long transactions.
    progress: Vec<Progress>,
    transactions: Vec<LongAccount>,
    failure: Option<String>,
}

impl Tally {
    /// The server has committed a batch.
    pub(crate) fn commit(&mut self, number: u64, content: &Content, sent_ns: u64, acked_ns: u64) {
        self.committed.insert(number);
        self.batches += 1;
        self.content.add(content);
        self.hold(content);
        if content.latest_us > self.latest_us
            && let Some(time_us) = content.latest_us
        {
            self.latest_us = content.latest_us;
            self.marks_total += 1;
            self.marks.push(Mark {
                time_us,
                sent_ns,
                acked_ns,
            });
        }
    }

    /// A batch that an earlier load has stored.
    pub(crate) fn skip(&mut self, content: &Content) {
        self.skipped += 1;
        self.hold(content);
    }

    /// A number whose batch has no row.
    pub(crate) fn pass_over(&mut self, number: u64) {
        self.committed.insert(number);
    }

    fn hold(&mut self, content: &Content) {
        self.tags_held += content.tags_rows;
        match (&mut self.held, &content.fingerprints) {
            (Some(held), Some(more)) => held.merge(more),
            (held, more) => held.clone_from(more),
        }
    }

    /// A batch has failed; the first to do so is why the load has.
    pub(crate) fn fail(&mut self, number: u64, failure: &Failure, in_doubt: bool) {
        if in_doubt {
            self.in_doubt.push(number);
        } else {
            self.failed.push(number);
        }
        let label = failure.class.label();
        let known = if label.len() == 5 {
            format!(" (SQLSTATE {label})")
        } else {
            format!(" ({label})")
        };
        self.give_up(|| format!("batch {number} failed: {}{known}", failure.message));
    }

    /// The load has failed.
    pub(crate) fn give_up(&mut self, why: impl FnOnce() -> String) {
        self.failure.get_or_insert_with(why);
    }

    /// Batches that were made and will not be sent.
    pub(crate) fn throw_away(&mut self, batches: u64) {
        self.unsent += batches;
    }

    /// What this load has stored.
    pub(crate) fn gain(&self) -> LoadCount {
        LoadCount {
            rows: self.content.rows,
            metrics: self.content.metrics,
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The marks since they were last taken.
    pub(crate) fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    /// How far a long transaction has come.
    pub(crate) fn progress(&mut self, transaction: u64, rows: u64, t_ns: u64, state: TxnOutcome) {
        self.progress.push(Progress {
            transaction,
            rows,
            t_ns,
            state,
        });
    }

    /// A long transaction has ended.
    pub(crate) fn end_transaction(&mut self, account: LongAccount) {
        let LongAccount {
            transaction,
            rows,
            end_ns,
            state,
            ..
        } = account;
        self.progress(transaction, rows, end_ns, state);
        self.transactions.push(account);
    }

    /// What long transactions have come to since it was last taken.
    pub(crate) fn take_progress(&mut self) -> Vec<Progress> {
        std::mem::take(&mut self.progress)
    }

    /// The long transactions that have ended, by number.
    pub(crate) fn transactions(&self) -> Vec<LongAccount> {
        let mut transactions = self.transactions.clone();
        transactions.sort_unstable_by_key(|account| account.transaction);
        transactions
    }

    /// The tally's part of the account; `names` are those of the tables. Fingerprints are of all rows that are in
    /// the tables now, if they were empty before the first load.
    pub(crate) fn account<'a>(&self, names: impl Iterator<Item = &'a str>) -> Value {
        let content = &self.content;
        let mut in_doubt = self.in_doubt.clone();
        let mut failed = self.failed.clone();
        in_doubt.sort_unstable();
        failed.sort_unstable();
        let stored = content.fingerprints.as_ref().map(Tables::as_slice);
        let held = self.held.as_ref().map(Tables::as_slice);
        let tables: Vec<_> = names
            .enumerate()
            .map(|(table, name)| {
                json!({
                    "name": name,
                    // Plain rows, which have no fingerprint, are of one table.
                    "rows": stored.map_or(content.rows, |tables| tables[table].rows()),
                    "fingerprint": held.map(|tables| FingerprintDocument::new(&tables[table])),
                })
            })
            .collect();
        json!({
            "rows": content.rows,
            "metrics": content.metrics,
            "tags_rows": content.tags_rows,
            "logical_bytes": content.logical_bytes,
            "tags_total": self.tags_held,
            "batches": self.batches,
            "skipped_batches": self.skipped,
            "unsent_batches": self.unsent,
            "in_doubt_batches": in_doubt,
            "failed_batches": failed,
            "committed": self.committed.list(),
            "tables": tables,
            "marks": self.marks_total,
        })
    }
}
