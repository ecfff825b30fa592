//! When transactions are to start: a pure function of how many have been scheduled, with no clock of its own.

pub(crate) mod profile;

use loadstone_gen::random::Prng;
use serde::{Deserialize, Serialize};

pub use self::profile::Piece;
use self::profile::Profile;
use crate::share::Share;

/// The kinds of pace. Rates are totals over all clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// A Poisson process whose rate ramps or steps, from the begin of the measured window on. In a warm-up its first
    /// rate is kept, after the last piece its last.
    Varying {
        /// One after the other.
        pieces: Vec<Piece>,
    },
}

impl Pace {
    /// Total rate, the highest of one that varies; `None` for a closed loop.
    #[must_use]
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Closed => None,
            Self::Fixed { rate_per_s } | Self::Poisson { rate_per_s } => Some(*rate_per_s),
            Self::Varying { pieces } => Some(
                (pieces.iter().flat_map(|p| [p.from_per_s, p.to_per_s])).fold(0.0_f64, f64::max),
            ),
        }
    }

    /// The same with a warm-up of so many seconds before it.
    #[must_use]
    pub(crate) fn after(&self, warmup_s: f64) -> Self {
        match self {
            Self::Varying { pieces } if warmup_s > 0.0 => {
                let first_per_s = pieces.first().map_or(0.0, |first| first.from_per_s);
                let warmup = Piece {
                    from_per_s: first_per_s,
                    to_per_s: first_per_s,
                    length_s: warmup_s,
                };
                Self::Varying {
                    pieces: std::iter::once(warmup)
                        .chain(pieces.iter().copied())
                        .collect(),
                }
            }
            other => other.clone(),
        }
    }
}

/// When one of several workers' next start comes.
#[derive(Debug)]
enum Arrivals {
    Closed,
    Fixed {
        rate_per_s: f64,
    },
    Poisson {
        rate_per_s: f64,
    },
    /// A Poisson process of one start a second, its time stretched so that the rate is as asked: exact, however the
    /// rate changes between two starts.
    Varying {
        profile: Profile,
        /// Where in that process the next start is.
        expected: f64,
    },
}

impl From<Pace> for Arrivals {
    fn from(pace: Pace) -> Self {
        match pace {
            Pace::Closed => Self::Closed,
            Pace::Fixed { rate_per_s } => Self::Fixed { rate_per_s },
            Pace::Poisson { rate_per_s } => Self::Poisson { rate_per_s },
            Pace::Varying { pieces } => Self::Varying {
                profile: Profile::new(pieces),
                expected: 0.0,
            },
        }
    }
}

/// The intended starts of one of several workers that share a pace.
///
/// Fixed: worker `w` of `n` takes every n-th start of the whole schedule. Poisson: each worker runs its own
/// process at rate/n; their superposition is the Poisson process asked for, also where the rate changes.
///
/// Of several hosts each draws the same schedules and takes the starts k with k mod hosts = its number. Together
/// they make the starts of one host, without a word between them.
#[derive(Debug)]
pub struct Schedule {
    arrivals: Arrivals,
    share: Share,
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
        Self::shared(pace, worker, workers, Share::WHOLE, prng)
    }

    /// The part of that schedule that belongs to one of several hosts.
    #[must_use]
    pub fn shared(pace: Pace, worker: u64, workers: u64, share: Share, prng: Prng) -> Self {
        let mut schedule = Self {
            arrivals: pace.into(),
            share,
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
        match self.arrivals {
            Arrivals::Closed => None,
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
        let Share { number, of } = self.share;
        // The first start of this host, or the next one: those between them are other hosts'.
        let draws = if self.taken == 0 { number + 1 } else { of };
        match &mut self.arrivals {
            Arrivals::Closed => {}
            Arrivals::Fixed { rate_per_s } => {
                let position = (self.taken * self.workers + self.worker) * of + number;
                self.next_ns = (position as f64 * 1e9 / *rate_per_s) as u64;
            }
            Arrivals::Poisson { rate_per_s } => {
                let mean_ns = 1e9 * self.workers as f64 / *rate_per_s;
                for _ in 0..draws {
                    let gap_ns = exponential(&mut self.prng) * mean_ns;
                    self.next_ns = self.next_ns.saturating_add(gap_ns.round() as u64);
                }
            }
            Arrivals::Varying { profile, expected } => {
                for _ in 0..draws {
                    *expected += exponential(&mut self.prng) * self.workers as f64;
                }
                self.next_ns = (profile.time_of(*expected) * 1e9).round() as u64;
            }
        }
    }
}

/// A draw from the exponential distribution with mean 1.
fn exponential(prng: &mut Prng) -> f64 {
    // Inverse transform; 1 - u is in (0, 1], so the logarithm is finite.
    -(1.0 - prng.double()).ln()
}

#[cfg(test)]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "figures of a test are small, and those compared are not computed"
)]
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
            .flat_map(|w| starts(pace.clone(), w, 3, 999_999_999))
            .collect();
        all.sort_unstable();
        let expected: Vec<u64> = (0..1000).map(|i| i * 1_000_000).collect();
        assert_eq!(all, expected);
    }

    proptest! {
        #[test]
        fn hosts_together_make_the_starts_of_one(of in 1_u64..9, kind in 0..3, workers in 1_u64..3) {
            let piece = Piece { from_per_s: 3_000.0, to_per_s: 500.0, length_s: 0.2 };
            let pace = [
                Pace::Fixed { rate_per_s: 1_700.0 },
                Pace::Poisson { rate_per_s: 1_700.0 },
                Pace::Varying { pieces: vec![piece] },
            ][kind as usize].clone();
            let of_host = |number: u64, of: u64| {
                let share = Share { number, of };
                let workers = (0..workers).flat_map(|worker| {
                    let prng = Prng::from_seed(7 + worker);
                    let mut schedule = Schedule::shared(pace.clone(), worker, workers, share, prng);
                    std::iter::from_fn(move || schedule.take(300_000_000)).collect::<Vec<_>>()
                });
                workers.collect::<Vec<_>>()
            };
            let mut one = of_host(0, 1);
            let mut all: Vec<u64> = (0..of).flat_map(|number| of_host(number, of)).collect();
            one.sort_unstable();
            all.sort_unstable();
            prop_assert!(one.len() > 100);
            prop_assert_eq!(all, one);
        }
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

    #[test]
    fn a_varying_rate_starts_as_many_as_its_integral_says_in_every_span_and_over_all_workers() {
        let piece = |from_per_s, to_per_s| Piece {
            from_per_s,
            to_per_s,
            length_s: 10.0,
        };
        let pace = Pace::Varying {
            pieces: vec![
                piece(100.0, 5_000.0),
                piece(500.0, 500.0),
                piece(3_000.0, 0.0),
                piece(0.5, 0.5),
                piece(4_000.0, 4_000.0),
            ],
        };
        let workers = 3;
        let all: Vec<u64> = (0..workers)
            .flat_map(|w| starts(pace.clone(), w, workers, 60_000_000_000))
            .collect();
        // Spans of 5 s: the second half of a ramp has more than the first.
        let expected = [
            6_625.0, 18_875.0, 2_500.0, 2_500.0, 11_250.0, 3_750.0, 2.5, 2.5, 20_000.0, 20_000.0,
            20_000.0, 20_000.0,
        ];
        for (span, expected) in expected.into_iter().enumerate() {
            let within = |&&ns: &&u64| ns / 5_000_000_000 == span as u64;
            let found = all.iter().filter(within).count() as f64;
            // A Poisson count: five standard deviations.
            let off = (found - expected).abs();
            assert!(
                off <= 5.0 * expected.sqrt(),
                "{found}, not {expected}, in span {span}"
            );
        }
    }

    #[test]
    fn a_rate_that_varies_by_nothing_is_a_poisson_process_of_that_rate() {
        let piece = Piece {
            from_per_s: 250.0,
            to_per_s: 250.0,
            length_s: 3.0,
        };
        let pieces = vec![piece, piece];
        let varying = starts(Pace::Varying { pieces }, 1, 2, 10_000_000_000);
        let plain = starts(Pace::Poisson { rate_per_s: 250.0 }, 1, 2, 10_000_000_000);
        assert_eq!(varying.len(), plain.len());
        // The same draws; each gap of the plain one is rounded to a nanosecond.
        assert!(
            varying
                .iter()
                .zip(&plain)
                .all(|(a, b)| a.abs_diff(*b) <= plain.len() as u64)
        );
    }

    #[test]
    fn a_warm_up_keeps_the_first_rate() {
        let piece = Piece {
            from_per_s: 2.0,
            to_per_s: 8.0,
            length_s: 3.0,
        };
        let pace = Pace::Varying {
            pieces: vec![piece],
        };
        let Pace::Varying { pieces } = pace.after(4.0) else {
            unreachable!()
        };
        assert_eq!(pieces[0].from_per_s, 2.0);
        assert_eq!(pieces[0].to_per_s, 2.0);
        assert_eq!((pieces[0].length_s, pieces[1]), (4.0, piece));
        assert_eq!(pace.after(0.0), pace);
        assert_eq!(pace.rate_per_s(), Some(8.0));
    }

    #[test]
    fn rates_below_one_a_second_have_gaps_of_seconds_or_days() {
        for (rate_per_s, days) in [(0.25, 1.0), (1e-5, 3_000.0)] {
            let until_ns = (days * 86_400e9) as u64;
            let expected = rate_per_s * days * 86_400.0;
            let fixed = starts(Pace::Fixed { rate_per_s }, 0, 1, until_ns - 1);
            assert!(
                (fixed.len() as f64 - expected).abs() <= 1.0,
                "{}",
                fixed.len()
            );
            let poisson = starts(Pace::Poisson { rate_per_s }, 0, 1, until_ns).len() as f64;
            assert!(
                (poisson - expected).abs() <= 5.0 * expected.sqrt(),
                "{poisson}"
            );
        }
        let hardly = Schedule::new(
            Pace::Poisson { rate_per_s: 1e-300 },
            0,
            1,
            Prng::from_seed(1),
        );
        assert_eq!(hardly.next_ns(), Some(u64::MAX));
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
