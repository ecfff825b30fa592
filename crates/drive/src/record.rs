//! What is counted and measured: per worker and interval, merged into totals whose size does not grow with the run.

mod latency;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::latency::{Latency, Moments, Stats, cost_ns};

/// Outcomes of scheduled transactions.
///
/// The counting equation: scheduled = done + failed + skipped + dropped + under way, and at the end of a run
/// nothing is under way. [`Counts::under_way`] asserts it wherever counts are merged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Transactions that should have started.
    pub scheduled: u64,
    /// Ended as they should.
    pub done: u64,
    /// Ended in an error of the server, the connection, the script, or by a timeout.
    pub failed: u64,
    /// Never started because they were already over the latency limit.
    pub skipped: u64,
    /// Never started because the run's end came first.
    pub dropped: u64,
}

impl Counts {
    /// Add another part's counts.
    pub fn merge(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.done += other.done;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.dropped += other.dropped;
    }

    /// Transactions that have started and not ended.
    ///
    /// # Panics
    /// When more transactions ended than were scheduled: a broken invariant of the recorder.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        let ended = self.done + self.failed + self.skipped + self.dropped;
        assert!(
            ended <= self.scheduled,
            "counting equation violated: {self:?}"
        );
        self.scheduled - ended
    }
}

/// What kind of trouble ended a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// The server's five-character SQLSTATE.
    Server([u8; 5]),
    /// The connection was lost.
    Connection,
    /// No answer within the time limit.
    Timeout,
    /// The script could not go on (an expression failed, `\gset` found no row).
    Script,
    /// The server sent bytes that are not the protocol.
    Protocol,
    /// The driver itself could not go on.
    Internal,
    /// A query gave another answer than before.
    Answer,
    /// What another driver calls it.
    Named(&'static str),
}

impl ErrorClass {
    /// The text under which it is counted: the SQLSTATE, or a word for what has none.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Server(state) => String::from_utf8_lossy(state).into_owned(),
            Self::Connection => "connection".to_owned(),
            Self::Timeout => "timeout".to_owned(),
            Self::Script => "script".to_owned(),
            Self::Protocol => "protocol".to_owned(),
            Self::Internal => "internal".to_owned(),
            Self::Answer => "answer".to_owned(),
            Self::Named(name) => (*name).to_owned(),
        }
    }
}

/// Errors of one class: how many, the first one's words, when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorTally {
    /// The first message.
    pub message: String,
    /// How many.
    pub count: u64,
    /// Time of the first.
    pub first_ns: u64,
    /// Time of the last.
    pub last_ns: u64,
}

/// Errors by class.
pub type Errors = BTreeMap<ErrorClass, ErrorTally>;

/// At most this many classes of errors are kept apart; SQLSTATE has a few hundred, so only garbage exceeds it.
const ERROR_CLASSES_MAX: usize = 256;

/// Count one error; `message` is only called for the first of its class.
pub fn count_error(
    errors: &mut Errors,
    class: ErrorClass,
    at_ns: u64,
    message: impl FnOnce() -> String,
) {
    if let Some(tally) = errors.get_mut(&class) {
        tally.count += 1;
        tally.last_ns = at_ns;
    } else if errors.len() < ERROR_CLASSES_MAX {
        let tally = ErrorTally {
            message: message(),
            count: 1,
            first_ns: at_ns,
            last_ns: at_ns,
        };
        errors.insert(class, tally);
    }
}

/// Add another part's errors.
pub fn merge_errors(errors: &mut Errors, other: &Errors) {
    for (class, tally) in other {
        errors
            .entry(*class)
            .and_modify(|mine| {
                if tally.first_ns < mine.first_ns {
                    mine.message.clone_from(&tally.message);
                }
                mine.count += tally.count;
                mine.first_ns = mine.first_ns.min(tally.first_ns);
                mine.last_ns = mine.last_ns.max(tally.last_ns);
            })
            .or_insert_with(|| tally.clone());
    }
}

/// Counts of the warm-up and of the measured window.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct WindowCounts {
    /// Intended start before the measured window.
    pub warmup: Counts,
    /// Intended start inside it.
    pub measured: Counts,
}

impl WindowCounts {
    /// The counts to which a transaction with this window belongs.
    pub fn of(&mut self, measured: bool) -> &mut Counts {
        if measured {
            &mut self.measured
        } else {
            &mut self.warmup
        }
    }

    /// Add another part's counts.
    pub fn merge(&mut self, other: &Self) {
        self.warmup.merge(&other.warmup);
        self.measured.merge(&other.measured);
    }

    /// Transactions under way in either window.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.warmup.under_way() + self.measured.under_way()
    }
}

/// What became of the transactions of one script.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct ScriptRecord {
    /// Outcomes of those that were started.
    pub counts: WindowCounts,
    /// From the real start to the end.
    pub service: Moments,
    /// From the intended start to the end.
    pub response: Moments,
}

/// All that a worker learns during one interval, or the sum of it over workers and intervals.
#[derive(Debug, Clone)]
pub struct Record {
    /// Outcomes over all scripts.
    pub counts: WindowCounts,
    /// Started transactions by script.
    pub scripts: Vec<ScriptRecord>,
    /// From the intended start to the end.
    pub response: Latency,
    /// From the real start to the end; kept apart only under a rate.
    pub service: Option<Latency>,
    /// Real minus intended start, under a rate.
    pub lag: Moments,
    /// Latency of each statement, by the flat number of its command, with its failures.
    pub statements: Vec<(Latency, u64)>,
    /// Errors by class.
    pub errors: Errors,
    /// Transactions sent whose connection was lost before the answer.
    pub in_doubt: u64,
    /// Transactions tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Rows stored.
    pub rows: u64,
    /// Values of fields in them.
    pub metrics: u64,
    /// Done, but over the latency limit.
    pub late: u64,
    /// Times to connect and log in.
    pub connect: Moments,
    /// Connections made again after a loss.
    pub reconnects: u64,
    /// Bytes given to the kernel.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// From each wake-up of the event loop to its next wait.
    pub loop_lag: Latency,
    /// Events handled.
    pub loop_events: u64,
}

impl Record {
    /// Empty, for so many scripts and statements.
    #[must_use]
    pub fn new(scripts: usize, statements: usize, under_a_rate: bool) -> Self {
        Self {
            counts: WindowCounts::default(),
            scripts: vec![ScriptRecord::default(); scripts],
            response: Latency::new(),
            service: under_a_rate.then(Latency::new),
            lag: Moments::default(),
            statements: (0..statements).map(|_| (Latency::new(), 0)).collect(),
            errors: Errors::new(),
            in_doubt: 0,
            retried: 0,
            retries: 0,
            rows: 0,
            metrics: 0,
            late: 0,
            connect: Moments::default(),
            reconnects: 0,
            bytes_sent: 0,
            bytes_received: 0,
            loop_lag: Latency::new(),
            loop_events: 0,
        }
    }

    /// Forget everything, keep the memory.
    pub fn clear(&mut self) {
        self.counts = WindowCounts::default();
        self.scripts.fill(ScriptRecord::default());
        self.response.clear();
        self.service.iter_mut().for_each(Latency::clear);
        self.lag = Moments::default();
        for (latency, failed) in &mut self.statements {
            latency.clear();
            *failed = 0;
        }
        self.errors.clear();
        (self.in_doubt, self.retried, self.retries, self.late) = (0, 0, 0, 0);
        (self.rows, self.metrics) = (0, 0);
        self.connect = Moments::default();
        self.reconnects = 0;
        (self.bytes_sent, self.bytes_received) = (0, 0);
        self.loop_lag.clear();
        self.loop_events = 0;
    }

    /// What is under way will never end: count it as failed.
    pub fn abandon(&mut self, now_ns: u64) {
        for window in [&mut self.counts.warmup, &mut self.counts.measured] {
            for _ in 0..window.under_way() {
                count_error(&mut self.errors, ErrorClass::Internal, now_ns, || {
                    "under way when its thread broke".to_owned()
                });
            }
            window.failed += window.under_way();
        }
        for ScriptRecord { counts, .. } in &mut self.scripts {
            counts.warmup.failed += counts.warmup.under_way();
            counts.measured.failed += counts.measured.under_way();
        }
    }

    /// Add another part.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.counts.merge(&theirs.counts);
            mine.service.merge(&theirs.service);
            mine.response.merge(&theirs.response);
        }
        self.response.merge(&other.response);
        if let (Some(mine), Some(theirs)) = (&mut self.service, &other.service) {
            mine.merge(theirs);
        }
        self.lag.merge(&other.lag);
        for (mine, theirs) in self.statements.iter_mut().zip(&other.statements) {
            mine.0.merge(&theirs.0);
            mine.1 += theirs.1;
        }
        merge_errors(&mut self.errors, &other.errors);
        self.in_doubt += other.in_doubt;
        self.retried += other.retried;
        self.retries += other.retries;
        self.rows += other.rows;
        self.metrics += other.metrics;
        self.late += other.late;
        self.connect.merge(&other.connect);
        self.reconnects += other.reconnects;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.loop_lag.merge(&other.loop_lag);
        self.loop_events += other.loop_events;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts() -> impl Strategy<Value = Counts> {
        (
            0..1_000_u64,
            0..1_000_u64,
            0..1_000_u64,
            0..1_000_u64,
            0..9_u64,
        )
            .prop_map(|(done, failed, skipped, dropped, under_way)| Counts {
                scheduled: done + failed + skipped + dropped + under_way,
                done,
                failed,
                skipped,
                dropped,
            })
    }

    proptest! {
        #[test]
        fn the_counting_equation_survives_merging(a in counts(), b in counts()) {
            let mut sum = a;
            sum.merge(&b);
            prop_assert_eq!(sum.under_way(), a.under_way() + b.under_way());
            let mut other_way = b;
            other_way.merge(&a);
            prop_assert_eq!(sum, other_way);
        }

    }

    #[test]
    #[should_panic(expected = "counting equation violated")]
    fn more_ended_than_scheduled_is_a_broken_invariant() {
        let _ = Counts {
            scheduled: 1,
            done: 2,
            ..Counts::default()
        }
        .under_way();
    }

    #[test]
    fn what_a_broken_thread_leaves_behind_has_failed() {
        let mut record = Record::new(1, 1, false);
        record.counts.measured.scheduled = 5;
        record.counts.measured.done = 2;
        record.scripts[0].counts.measured = record.counts.measured;
        record.abandon(7);
        assert_eq!(record.counts.under_way(), 0);
        assert_eq!(record.counts.measured.failed, 3);
        assert_eq!(record.scripts[0].counts.measured, record.counts.measured);
        assert_eq!(record.errors[&ErrorClass::Internal].count, 3);
    }

    #[test]
    fn the_first_error_of_a_class_keeps_its_words() {
        let class = ErrorClass::Server(*b"40001");
        let (mut a, mut b) = (Errors::new(), Errors::new());
        count_error(&mut a, class, 20, || "second".to_owned());
        count_error(&mut b, class, 10, || "first".to_owned());
        count_error(&mut b, class, 30, || unreachable!());
        merge_errors(&mut a, &b);
        let tally = &a[&class];
        assert_eq!((tally.message.as_str(), tally.count), ("first", 3));
        assert_eq!((tally.first_ns, tally.last_ns), (10, 30));
    }
}
