//! What has become of the batches of a load.

use loadstone_gen::fingerprint::Tables;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::Content;
use super::long::{LongResult, Progress, TxnOutcome};
use super::ranges::Ranges;
use crate::data::FingerprintDocument;
use crate::protocol::Failure;
use crate::workload::LoadCount;

/// A batch that holds a later row time than all that were stored before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Its latest row time, microseconds since 1970.
    pub(crate) time_us: i64,
    /// Its first bytes were passed on.
    pub(crate) sent_ns: u64,
    /// The server had said that it was committed.
    pub(crate) acked_ns: u64,
}

impl Mark {
    /// Move its times by so many nanoseconds: to the clock of another host.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        self.sent_ns = self.sent_ns.saturating_add_signed(by_ns);
        self.acked_ns = self.acked_ns.saturating_add_signed(by_ns);
    }
}

/// The sums over all batches that have ended: what one of several hosts leaves behind.
///
/// Clients go through the batches in order, so the ranges stay few.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct TallyPart {
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
    failure: Option<String>,
}

impl TallyPart {
    /// Every batch that was made is stored.
    pub(crate) fn is_whole(&self) -> bool {
        !self.has_failed() && self.unsent == 0 && self.in_doubt.is_empty()
    }

    /// A batch has failed, or the making of one.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    fn give_up(&mut self, why: impl FnOnce() -> String) {
        self.failure.get_or_insert_with(why);
    }

    fn hold(&mut self, content: &Content) {
        self.tags_held += content.tags_rows;
        merge_tables(&mut self.held, content.fingerprints.as_ref());
    }

    fn add(&mut self, more: &Self) {
        self.committed.add(&more.committed);
        self.batches += more.batches;
        self.content.add(&more.content);
        self.skipped += more.skipped;
        self.tags_held += more.tags_held;
        merge_tables(&mut self.held, more.held.as_ref());
        self.in_doubt.extend(&more.in_doubt);
        self.failed.extend(&more.failed);
        self.unsent += more.unsent;
        if let Some(failure) = &more.failure {
            self.give_up(|| failure.clone());
        }
    }

    /// Why it has failed, in words that name the host.
    pub(crate) fn name_host(&mut self, name: &str) {
        if let Some(failure) = &mut self.failure {
            *failure = format!("load host {name}: {failure}");
        }
    }
}

/// All that is known of a load's batches and long transactions.
///
/// The collector takes the marks away at every interval, so they stay few.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    part: TallyPart,
    latest_us: Option<i64>,
    marks: Vec<Mark>,
    marks_total: u64,
    /// Of long transactions.
    progress: Vec<Progress>,
    transactions: Vec<LongResult>,
}

impl Tally {
    /// The server has committed a batch.
    pub(crate) fn commit(&mut self, number: u64, content: &Content, sent_ns: u64, acked_ns: u64) {
        self.part.committed.insert(number);
        self.part.batches += 1;
        self.part.content.add(content);
        self.part.hold(content);
        if let Some(time_us) = content.latest_us {
            self.mark(Mark {
                time_us,
                sent_ns,
                acked_ns,
            });
        }
    }

    /// Keep a mark if it moves the latest row time.
    fn mark(&mut self, mark: Mark) {
        if Some(mark.time_us) > self.latest_us {
            self.latest_us = Some(mark.time_us);
            self.marks_total += 1;
            self.marks.push(mark);
        }
    }

    /// The marks that several hosts have left of one interval, times on one clock: one list.
    pub(crate) fn join_marks(&mut self, mut of_hosts: Vec<Mark>) {
        of_hosts.sort_unstable_by_key(|mark| (mark.acked_ns, mark.time_us));
        for mark in of_hosts {
            self.mark(mark);
        }
    }

    /// All but marks, which are taken with every interval: one of several hosts leaves it behind.
    pub(crate) fn part(&self) -> &TallyPart {
        &self.part
    }

    /// Add what a host has left behind.
    pub(crate) fn add(&mut self, part: &TallyPart) {
        self.part.add(part);
    }

    /// A host that was lost has left no more than its intervals: what they count was stored.
    pub(crate) fn at_least(&mut self, batches: u64, gain: LoadCount) {
        self.part.batches = self.part.batches.max(batches);
        self.part.content.rows = self.part.content.rows.max(gain.rows);
        self.part.content.metrics = self.part.content.metrics.max(gain.metrics);
    }

    /// A batch that an earlier load has stored.
    pub(crate) fn skip(&mut self, content: &Content) {
        self.part.skipped += 1;
        self.part.hold(content);
    }

    /// A number whose batch has no row.
    pub(crate) fn pass_over(&mut self, number: u64) {
        self.part.committed.insert(number);
    }

    /// A batch has failed; the first to do so is why the load has.
    pub(crate) fn fail(&mut self, number: u64, failure: &Failure, in_doubt: bool) {
        if in_doubt {
            self.part.in_doubt.push(number);
        } else {
            self.part.failed.push(number);
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
        self.part.give_up(why);
    }

    /// Batches that were made and will not be sent.
    pub(crate) fn throw_away(&mut self, batches: u64) {
        self.part.unsent += batches;
    }

    /// What this load has stored.
    pub(crate) fn gain(&self) -> LoadCount {
        LoadCount {
            rows: self.part.content.rows,
            metrics: self.part.content.metrics,
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.part.failure.as_deref()
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
    pub(crate) fn end_transaction(&mut self, account: LongResult) {
        let LongResult {
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
    pub(crate) fn transactions(&self) -> Vec<LongResult> {
        let mut transactions = self.transactions.clone();
        transactions.sort_unstable_by_key(|account| account.transaction);
        transactions
    }

    /// The tally's part of the account; `names` are those of the tables. Fingerprints are of all rows that are in
    /// the tables now, if they were empty before the first load.
    pub(crate) fn account<'a>(&self, names: impl Iterator<Item = &'a str>) -> Value {
        let content = &self.part.content;
        let mut in_doubt = self.part.in_doubt.clone();
        let mut failed = self.part.failed.clone();
        in_doubt.sort_unstable();
        failed.sort_unstable();
        let stored = content.fingerprints.as_ref().map(Tables::as_slice);
        let held = self.part.held.as_ref().map(Tables::as_slice);
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
            "tags_total": self.part.tags_held,
            "batches": self.part.batches,
            "skipped_batches": self.part.skipped,
            "unsent_batches": self.part.unsent,
            "in_doubt_batches": in_doubt,
            "failed_batches": failed,
            "committed": self.part.committed.list(),
            "tables": tables,
            "marks": self.marks_total,
        })
    }
}

/// Add the fingerprints of more rows.
fn merge_tables(held: &mut Option<Tables>, more: Option<&Tables>) {
    let Some(more) = more else {
        return;
    };
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more.clone()),
    }
}
