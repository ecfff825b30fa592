//! What is counted and measured: per worker and interval, merged into totals whose size does not grow with the run.

pub mod booking;
mod details;
mod distribution;
mod errors;
mod latency;
mod operations;
mod text;

use serde::{Deserialize, Serialize};

pub use self::details::{CommandTime, Details, Outcomes};
pub use self::distribution::Distribution;
pub use self::errors::{ErrorClass, ErrorTally, Errors, count_error, merge_errors, shift_errors};
pub use self::latency::{Latency, Moments, Stats, cost_ns};
pub use self::operations::Operations;

/// Transactions of the warm-up or of the measured window: starts by their intended time, outcomes by the moment of
/// the outcome. What the warm-up scheduled and had not ended when it was over is carried into the window.
///
/// The counting equations: of the warm-up, scheduled = done + failed + skipped + dropped + carried (+ under way); of
/// the measured window, scheduled + carried = done + failed + skipped + dropped (+ under way). At the end of a run
/// nothing is running. [`WindowCounts::under_way`] asserts it wherever counts are merged.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Transactions that should have started.
    pub scheduled: u64,
    /// Scheduled in the warm-up, and with an outcome in the measured window only: one number in both.
    pub carried: u64,
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
        self.carried += other.carried;
        self.done += other.done;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.dropped += other.dropped;
    }

    /// Those with an outcome.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.skipped + self.dropped
    }
}

/// Counts of the warm-up and of the measured window.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowCounts {
    /// Before the measured window.
    pub warmup: Counts,
    /// Inside it, the drain included.
    pub measured: Counts,
}

impl WindowCounts {
    /// The counts of the window that is meant.
    pub fn of(&mut self, measured: bool) -> &mut Counts {
        if measured {
            &mut self.measured
        } else {
            &mut self.warmup
        }
    }

    /// The warm-up is over, and so many of its transactions are not.
    pub fn carry(&mut self, transactions: u64) {
        self.warmup.carried += transactions;
        self.measured.carried += transactions;
    }

    /// Add another part's counts.
    pub fn merge(&mut self, other: &Self) {
        self.warmup.merge(&other.warmup);
        self.measured.merge(&other.measured);
    }

    /// Transactions that were scheduled and have no outcome, of the warm-up and of the measured window.
    ///
    /// # Panics
    /// When more transactions ended than were scheduled: a broken invariant of the recorder.
    #[must_use]
    pub fn under_way_of_each(&self) -> [u64; 2] {
        let (warmup, measured) = (&self.warmup, &self.measured);
        let left = [
            warmup
                .scheduled
                .checked_sub(warmup.ended() + warmup.carried),
            (measured.scheduled + measured.carried).checked_sub(measured.ended()),
        ];
        let [Some(warmup), Some(measured)] = left else {
            panic_on(self)
        };
        [warmup, measured]
    }

    /// Transactions in flight in either window.
    ///
    /// # Panics
    /// As [`WindowCounts::under_way_of_each`].
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.under_way_of_each().iter().sum()
    }

    /// Nothing that is running will ever end: count it as failed.
    fn abandon(&mut self) -> u64 {
        let [warmup, measured] = self.under_way_of_each();
        self.warmup.failed += warmup;
        self.measured.failed += measured;
        warmup + measured
    }
}

#[expect(clippy::panic, reason = "a broken invariant ends the run")]
fn panic_on(counts: &WindowCounts) -> ! {
    panic!("counting equation violated: {counts:?}")
}

/// What became of the transactions of one script.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptRecord {
    /// Outcomes of those that were started.
    pub counts: WindowCounts,
    /// From the real start to the end.
    pub service: Moments,
    /// From the intended start to the end.
    pub response: Moments,
}

/// All that a worker learns during one interval, or the sum of it over workers and intervals.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    /// Failures and retries apart, where that is requested.
    pub details: Option<Box<Details>>,
    /// Statements by what they did, where the workload tells.
    pub operations: Option<Box<Operations>>,
}

impl Record {
    /// Empty, for so many scripts; of each command whether it is a statement, whose latency is kept.
    pub fn new(
        scripts: usize,
        statements: impl IntoIterator<Item = bool>,
        under_a_rate: bool,
    ) -> Self {
        Self {
            counts: WindowCounts::default(),
            scripts: vec![ScriptRecord::default(); scripts],
            response: Latency::new(),
            service: under_a_rate.then(Latency::new),
            lag: Moments::default(),
            statements: statements
                .into_iter()
                .map(|timed| {
                    (
                        if timed {
                            Latency::new()
                        } else {
                            Latency::unused()
                        },
                        0,
                    )
                })
                .collect(),
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
            details: None,
            operations: None,
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
        self.clear_details();
    }

    /// Move all times by so many nanoseconds: to the clock of another host.
    pub fn shift(&mut self, by_ns: i64) {
        shift_errors(&mut self.errors, by_ns);
        if let Some(operations) = &mut self.operations {
            shift_errors(&mut operations.ignored, by_ns);
        }
    }

    /// Forget what only some drives ask for.
    pub fn clear_details(&mut self) {
        if let Some(details) = &mut self.details {
            details.clear();
        }
        if let Some(operations) = &mut self.operations {
            **operations = Operations::default();
        }
    }

    /// What is running will never end: count it as failed.
    pub fn abandon(&mut self, now_ns: u64) {
        for _ in 0..self.counts.abandon() {
            count_error(&mut self.errors, ErrorClass::Internal, now_ns, || {
                "in flight when its thread failed".to_owned()
            });
        }
        for ScriptRecord { counts, .. } in &mut self.scripts {
            counts.abandon();
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
        if let (Some(mine), Some(theirs)) = (&mut self.details, &other.details) {
            mine.merge(theirs);
        }
        if let (Some(mine), Some(theirs)) = (&mut self.operations, &other.operations) {
            mine.merge(theirs);
        }
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
                carried: 0,
                done,
                failed,
                skipped,
                dropped,
            })
    }

    fn windows() -> impl Strategy<Value = WindowCounts> {
        (counts(), counts(), 0..1_000_u64).prop_map(|(warmup, measured, carried)| {
            let mut windows = WindowCounts { warmup, measured };
            windows.warmup.scheduled += carried;
            windows.carry(carried);
            windows
        })
    }

    proptest! {
        #[test]
        fn the_counting_equation_survives_merging(a in windows(), b in windows()) {
            let mut sum = a;
            sum.merge(&b);
            prop_assert_eq!(sum.under_way(), a.under_way() + b.under_way());
            let mut other_way = b;
            other_way.merge(&a);
            prop_assert_eq!(sum, other_way);
        }

        #[test]
        fn what_is_carried_is_neither_lost_nor_counted_twice(windows in windows(), carried in 0..100_u64) {
            let mut more = windows;
            more.warmup.scheduled += carried;
            prop_assert_eq!(more.under_way(), windows.under_way() + carried);
            more.carry(carried);
            prop_assert_eq!(more.under_way(), windows.under_way() + carried);
            more.measured.done += carried;
            prop_assert_eq!(more.under_way_of_each(), windows.under_way_of_each());
        }
    }

    #[test]
    #[should_panic(expected = "counting equation violated")]
    fn more_ended_than_scheduled_is_a_broken_invariant() {
        let mut counts = WindowCounts::default();
        (counts.measured.scheduled, counts.measured.done) = (1, 2);
        let _ = counts.under_way();
    }

    #[test]
    fn what_a_broken_thread_leaves_behind_has_failed() {
        let mut record = Record::new(1, [true], false);
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
