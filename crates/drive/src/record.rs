//! What is counted and measured: per worker and interval, merged into totals whose size does not grow with the run.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies above one hour are recorded as one hour.
const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

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

/// Count, mean, standard deviation and extremes, kept in exact integers so that merging loses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// Number of samples.
    pub count: u64,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Default for Moments {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            sum_of_squares: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Moments {
    /// Add one sample, nanoseconds.
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.sum += u128::from(ns);
        self.sum_of_squares += u128::from(ns) * u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Add another part's samples.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Largest sample, nanoseconds; zero without samples.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max
    }

    /// The figures that drive.json holds.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a mean needs no more than 53 bits"
    )]
    pub fn stats(&self) -> Stats {
        if self.count == 0 {
            return Stats::default();
        }
        let count = u128::from(self.count);
        // Sum of squared deviations = sum of squares - sum^2 / n, exact up to one unit in whole numbers.
        let deviations = self
            .sum_of_squares
            .saturating_sub(self.sum * self.sum / count);
        Stats {
            count: self.count,
            mean_ns: Some(self.sum as f64 / self.count as f64),
            stddev_ns: Some((deviations as f64 / self.count as f64).sqrt()),
            min_ns: Some(self.min),
            max_ns: Some(self.max),
        }
    }
}

/// Samples in figures; without samples only the count stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub struct Stats {
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean_ns: Option<f64>,
    /// Standard deviation of the samples (divisor n, as pgbench's).
    pub stddev_ns: Option<f64>,
    /// Smallest sample.
    pub min_ns: Option<u64>,
    /// Largest sample.
    pub max_ns: Option<u64>,
}

/// Moments and distribution of one kind of latency.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Count, mean and spread.
    pub moments: Moments,
    /// Distribution, three significant digits, nanoseconds.
    pub histogram: Histogram<u32>,
}

impl Latency {
    /// Empty.
    ///
    /// # Panics
    /// Never: the bounds are constants that the library accepts.
    #[must_use]
    #[expect(clippy::expect_used, reason = "constant bounds")]
    pub fn new() -> Self {
        let histogram =
            Histogram::new_with_bounds(1, MAX_LATENCY_NS, 3).expect("constant bounds are valid");
        Self {
            moments: Moments::default(),
            histogram,
        }
    }

    /// Add one sample, nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.moments.record(ns);
        self.histogram.saturating_record(ns.min(MAX_LATENCY_NS));
    }

    /// Forget all samples, keep the memory.
    pub fn clear(&mut self) {
        if self.moments.count > 0 {
            self.moments = Moments::default();
            self.histogram.reset();
        }
    }

    /// Add another part's samples.
    ///
    /// # Panics
    /// Never: all histograms have the same bounds.
    #[expect(clippy::expect_used, reason = "all histograms have the same bounds")]
    pub fn merge(&mut self, other: &Self) {
        if other.moments.count > 0 {
            self.moments.merge(&other.moments);
            self.histogram.add(&other.histogram).expect("same bounds");
        }
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
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

/// All that a worker learns during one interval, or the sum of it over workers and intervals.
#[derive(Debug, Clone)]
pub struct Record {
    /// Outcomes over all scripts.
    pub counts: WindowCounts,
    /// Outcomes of started transactions by script.
    pub scripts: Vec<(WindowCounts, Moments)>,
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
            scripts: vec![(WindowCounts::default(), Moments::default()); scripts],
            response: Latency::new(),
            service: under_a_rate.then(Latency::new),
            lag: Moments::default(),
            statements: (0..statements).map(|_| (Latency::new(), 0)).collect(),
            errors: Errors::new(),
            in_doubt: 0,
            retried: 0,
            retries: 0,
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
        self.scripts
            .fill((WindowCounts::default(), Moments::default()));
        self.response.clear();
        self.service.iter_mut().for_each(Latency::clear);
        self.lag = Moments::default();
        for (latency, failed) in &mut self.statements {
            latency.clear();
            *failed = 0;
        }
        self.errors.clear();
        (self.in_doubt, self.retried, self.retries, self.late) = (0, 0, 0, 0);
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
        for (counts, _) in &mut self.scripts {
            counts.warmup.failed += counts.warmup.under_way();
            counts.measured.failed += counts.measured.under_way();
        }
    }

    /// Add another part.
    pub fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.0.merge(&theirs.0);
            mine.1.merge(&theirs.1);
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
        self.late += other.late;
        self.connect.merge(&other.connect);
        self.reconnects += other.reconnects;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.loop_lag.merge(&other.loop_lag);
        self.loop_events += other.loop_events;
    }
}

/// Median cost of recording one sample, in nanoseconds.
#[must_use]
pub fn cost_ns() -> f64 {
    const SAMPLES: u32 = 10_000;
    let mut latency = Latency::new();
    let mut costs: Vec<u64> = (0..101)
        .map(|round: u64| {
            let start = crate::clock::now_ns();
            for i in 0..u64::from(SAMPLES) {
                // Spread over a realistic range, so that the counters do not all share one cache line.
                latency.record(std::hint::black_box(50_000 + (i * 7_919 + round) % 400_000));
            }
            crate::clock::now_ns() - start
        })
        .collect();
    costs.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "a few milliseconds fit")]
    let median = costs[costs.len() / 2] as f64;
    median / f64::from(SAMPLES)
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

    fn latency(samples: &[u64]) -> Latency {
        let mut latency = Latency::new();
        samples.iter().for_each(|&ns| latency.record(ns));
        latency
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

        #[test]
        fn moments_agree_with_two_passes(samples in prop::collection::vec(0_u64..10_000_000_000, 1..200)) {
            let stats = latency(&samples).moments.stats();
            let n = samples.len() as f64;
            let mean = samples.iter().map(|&s| s as f64).sum::<f64>() / n;
            let variance = samples.iter().map(|&s| (s as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((stats.mean_ns.unwrap() - mean).abs() <= mean * 1e-12 + 1e-6);
            prop_assert!((stats.stddev_ns.unwrap() - variance.sqrt()).abs() <= mean * 1e-7 + 1.0);
        }

        #[test]
        fn merging_parts_equals_recording_the_whole(
            samples in prop::collection::vec(0_u64..4_000_000_000_000, 0..200), cut in 0_usize..200,
        ) {
            let cut = cut.min(samples.len());
            let whole = latency(&samples);
            let mut merged = latency(&samples[..cut]);
            merged.merge(&latency(&samples[cut..]));
            prop_assert_eq!(&merged.moments, &whole.moments);
            prop_assert_eq!(&merged.histogram, &whole.histogram);
        }

        #[test]
        fn quantiles_lie_within_three_digits_of_the_exact_ones(
            mut samples in prop::collection::vec(1_u64..1_000_000_000_000, 1..300), q in 0.0_f64..1.0,
        ) {
            let latency = latency(&samples);
            samples.sort_unstable();
            let rank = ((q * samples.len() as f64).ceil() as usize).clamp(1, samples.len());
            let exact = samples[rank - 1] as f64;
            let found = latency.histogram.value_at_quantile(q) as f64;
            prop_assert!((found - exact).abs() <= exact * 0.001 + 1.0, "{found} against {exact}");
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
    fn a_huge_mean_does_not_swallow_a_small_spread() {
        let mut moments = Moments::default();
        for ns in [3_000_000_000_000, 3_000_000_000_002] {
            moments.record(ns);
        }
        assert_eq!(moments.stats().stddev_ns, Some(1.0));
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
