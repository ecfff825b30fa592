//! One kind of latency: exact moments and a distribution of three significant digits.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Latencies above one hour are recorded as one hour.
const MAX_LATENCY_NS: u64 = 3_600_000_000_000;

/// Count, mean, standard deviation and extremes, kept in exact integers so that merging loses nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

    /// In the place of one that is never recorded: a command that is no statement, of which a script may have many.
    ///
    /// # Panics
    /// Never: as [`Latency::new`].
    #[must_use]
    #[expect(clippy::expect_used, reason = "constant bounds")]
    pub fn unused() -> Self {
        let histogram = Histogram::new_with_bounds(1, 2, 0).expect("constant bounds are valid");
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
            if self.histogram.high() < other.histogram.high() {
                *self = other.clone(); // it was one of those that are never recorded, and is empty
                return;
            }
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
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures of a test are small"
)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latency(samples: &[u64]) -> Latency {
        let mut latency = Latency::new();
        for &ns in samples {
            latency.record(ns);
        }
        latency
    }

    proptest! {
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
    fn one_that_held_no_place_for_samples_takes_others() {
        let mut unused = Latency::unused();
        unused.merge(&latency(&[5, 7]));
        unused.merge(&latency(&[9]));
        assert_eq!(unused.moments, latency(&[5, 7, 9]).moments);
        assert_eq!(unused.histogram, latency(&[5, 7, 9]).histogram);
    }

    #[test]
    fn a_huge_mean_does_not_swallow_a_small_spread() {
        let mut moments = Moments::default();
        for ns in [3_000_000_000_000, 3_000_000_000_002] {
            moments.record(ns);
        }
        assert_eq!(moments.stats().stddev_ns, Some(1.0));
    }
}
