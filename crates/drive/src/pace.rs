//! When transactions are to start: a pure function of how many have been scheduled, with no clock of its own.

use loadstone_gen::random::Prng;
use serde::{Deserialize, Serialize};

/// The kinds of pace. Rates are totals over all clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Pace {
    /// A client starts its next transaction as soon as the last one ended.
    Closed,
    /// Starts at equal distances.
    Fixed {
        /// Starts per second.
        rate_per_s: f64,
    },
    /// Starts with exponentially distributed distances (a Poisson process), as `pgbench --rate`.
    Poisson {
        /// Mean starts per second.
        rate_per_s: f64,
    },
}

impl Pace {
    /// Total rate, or `None` for a closed loop.
    #[must_use]
    pub fn rate_per_s(self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Fixed { rate_per_s } | Self::Poisson { rate_per_s } => Some(rate_per_s),
        }
    }
}

/// The intended starts of one of several workers that share a pace.
///
/// Fixed: worker `w` of `n` takes every n-th start of the whole schedule. Poisson: each worker runs its own
/// process at rate/n; their superposition is the Poisson process asked for.
#[derive(Debug)]
pub struct Schedule {
    pace: Pace,
    worker: u64,
    workers: u64,
    taken: u64,
    next_ns: u64,
    prng: Prng,
}

impl Schedule {
    /// A schedule for worker `worker` of `workers` (at least one), with offsets in nanoseconds from the run's start.
    #[must_use]
    pub fn new(pace: Pace, worker: u64, workers: u64, prng: Prng) -> Self {
        let mut schedule = Self {
            pace,
            worker,
            workers,
            taken: 0,
            next_ns: 0,
            prng,
        };
        schedule.advance();
        schedule
    }

    /// The next intended start, nanoseconds after the run's start; `None` in a closed loop.
    #[must_use]
    pub fn next_ns(&self) -> Option<u64> {
        match self.pace {
            Pace::Closed => None,
            _ => Some(self.next_ns),
        }
    }

    /// Take the next intended start, if it is due at `elapsed_ns`.
    pub fn take(&mut self, elapsed_ns: u64) -> Option<u64> {
        let due = self.next_ns().filter(|&start| start <= elapsed_ns)?;
        self.taken += 1;
        self.advance();
        Some(due)
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "times of a run fit 2^53 ns (104 days), and are never negative"
    )]
    fn advance(&mut self) {
        match self.pace {
            Pace::Closed => {}
            Pace::Fixed { rate_per_s } => {
                let position = self.taken * self.workers + self.worker;
                self.next_ns = (position as f64 * 1e9 / rate_per_s) as u64;
            }
            Pace::Poisson { rate_per_s } => {
                let mean_ns = 1e9 * self.workers as f64 / rate_per_s;
                // Inverse transform; 1 - u lies in (0, 1], so the logarithm is finite.
                let gap_ns = -(1.0 - self.prng.double()).ln() * mean_ns;
                self.next_ns = self.next_ns.saturating_add(gap_ns.round() as u64);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_precision_loss, reason = "figures of a test are small")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn starts(pace: Pace, worker: u64, workers: u64, until_ns: u64) -> Vec<u64> {
        let mut schedule = Schedule::new(pace, worker, workers, Prng::from_seed(7 + worker));
        std::iter::from_fn(|| schedule.take(until_ns)).collect()
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        let mut schedule = Schedule::new(Pace::Closed, 0, 1, Prng::from_seed(1));
        assert_eq!(schedule.next_ns(), None);
        assert_eq!(schedule.take(u64::MAX), None);
    }

    #[test]
    fn workers_share_a_fixed_rate_evenly() {
        let pace = Pace::Fixed { rate_per_s: 1000.0 };
        let mut all: Vec<u64> = (0..3)
            .flat_map(|w| starts(pace, w, 3, 999_999_999))
            .collect();
        all.sort_unstable();
        let expected: Vec<u64> = (0..1000).map(|i| i * 1_000_000).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_spread_of_an_exponential() {
        let all = starts(
            Pace::Poisson {
                rate_per_s: 10_000.0,
            },
            0,
            1,
            20_000_000_000,
        );
        let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e5).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
        // 200,000 gaps: the mean's standard error is 0.0022, the variance's about 0.0063.
        assert!((mean - 1.0).abs() < 0.012, "mean {mean}");
        assert!((variance - 1.0).abs() < 0.04, "variance {variance}");
    }

    proptest! {
        #[test]
        fn starts_never_decrease_and_never_exceed_the_rate(
            rate in 1.0_f64..100_000.0, worker in 0_u64..4, poisson: bool,
        ) {
            let pace = if poisson { Pace::Poisson { rate_per_s: rate } } else { Pace::Fixed { rate_per_s: rate } };
            let all = starts(pace, worker, 4, 500_000_000);
            prop_assert!(all.windows(2).all(|w| w[0] <= w[1]));
            if !poisson {
                prop_assert!(all.len() as f64 <= rate * 0.5 / 4.0 + 1.0);
            }
        }
    }
}
