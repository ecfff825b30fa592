//! How long the built-in server takes for an answer: times from distributions that are known exactly, so that
//! what a client measures can be compared with the truth.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use loadstone_gen::random::Prng;
use serde::Deserialize;

use crate::clock;

/// 2^64 divided by the golden ratio: multiples of it, modulo 2^64, lie evenly (Weyl's sequence).
const EVEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// 2^-52.
const EVEN_PART: f64 = f64::EPSILON;

/// How long an answer takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceSpec {
    /// The distribution of the times.
    pub time: TimeSpec,
    /// So many queries are worked on at once and the others wait in one queue; without it, all are.
    #[serde(default)]
    pub workers: Option<usize>,
    /// When the server stands still.
    #[serde(default)]
    pub stall: Option<StallSpec>,
    /// With `workers`, where the random times begin.
    #[serde(default)]
    pub seed: u64,
}

/// A distribution of service times; all in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TimeSpec {
    Constant {
        ms: f64,
    },
    Exponential {
        mean_ms: f64,
    },
    /// `slow_share` of the answers, 0 to 1, take `slow_ms`.
    Bimodal {
        fast_ms: f64,
        slow_ms: f64,
        slow_share: f64,
    },
    /// P(T > t) = (`least_ms` / t) ^ `shape`.
    Pareto {
        least_ms: f64,
        shape: f64,
    },
}

/// The server stands still for the first `for_s` seconds of every `every_s`, counted from its first query, but
/// not in the first such time.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names say it")]
pub struct StallSpec {
    pub every_s: f64,
    pub for_s: f64,
}

impl TimeSpec {
    /// The time that a share `u` of all answers, 0 to 1, stays below; milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, u: f64) -> f64 {
        match *self {
            Self::Constant { ms } => ms,
            Self::Exponential { mean_ms } => -mean_ms * (-u).ln_1p(),
            Self::Bimodal {
                fast_ms,
                slow_ms,
                slow_share,
            } => {
                if u < 1.0 - slow_share {
                    fast_ms
                } else {
                    slow_ms
                }
            }
            Self::Pareto { least_ms, shape } => least_ms * (1.0 - u).powf(-1.0 / shape),
        }
    }

    fn is_usable(&self) -> bool {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        match *self {
            Self::Constant { ms } => positive(ms),
            Self::Exponential { mean_ms } => positive(mean_ms),
            Self::Bimodal {
                fast_ms,
                slow_ms,
                slow_share,
            } => positive(fast_ms) && positive(slow_ms) && (0.0..=1.0).contains(&slow_share),
            Self::Pareto { least_ms, shape } => positive(least_ms) && positive(shape),
        }
    }
}

impl ServiceSpec {
    /// What is wrong with it, if anything.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        if !self.time.is_usable() {
            return Some("a service time is a positive number, and a share is from 0 to 1");
        }
        if self.workers == Some(0) {
            return Some("a server has at least one worker");
        }
        self.stall
            .filter(|s| !(s.for_s > 0.0 && s.for_s < s.every_s && s.every_s.is_finite()))
            .map(|_| "a stall is shorter than the time between two")
    }
}

/// The server's clock for answers.
pub(super) struct Service {
    time: TimeSpec,
    /// When each worker is free, nanoseconds; empty when all queries are worked on at once.
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Every time and length of the stall, nanoseconds.
    stall_ns: Option<(u64, u64)>,
    begin_ns: Option<u64>,
    place: u64,
    random: Option<Prng>,
}

impl Service {
    pub(super) fn new(spec: &ServiceSpec) -> Self {
        Self {
            time: spec.time,
            free_ns: vec![Reverse(0); spec.workers.unwrap_or(0)].into(),
            stall_ns: spec
                .stall
                .map(|s| (clock::ns(s.every_s), clock::ns(s.for_s))),
            begin_ns: None,
            place: 0,
            // How long a queue grows depends on the order of the times, so there they are independent.
            random: spec.workers.map(|_| Prng::from_seed(spec.seed)),
        }
    }

    /// When the answer to a query that arrived at `now` may leave, nanoseconds.
    pub(super) fn leaves_ns(&mut self, now: u64) -> u64 {
        let share = self.share();
        let takes = clock::ns(self.time.quantile_ms(share) / 1e3);
        let begin_ns = *self.begin_ns.get_or_insert(now);
        let Some(Reverse(free)) = self.free_ns.pop() else {
            return self.after_stall(begin_ns, now.saturating_add(takes));
        };
        let leaves = self.after_stall(begin_ns, now.max(free).saturating_add(takes));
        self.free_ns.push(Reverse(leaves));
        leaves
    }

    fn after_stall(&self, begin_ns: u64, leaves: u64) -> u64 {
        let Some((every, length)) = self.stall_ns else {
            return leaves;
        };
        let (round, within) = ((leaves - begin_ns) / every, (leaves - begin_ns) % every);
        if round > 0 && within < length {
            leaves + (length - within)
        } else {
            leaves
        }
    }

    /// Where in the distribution the next time lies, 0 to 1 and neither of them.
    fn share(&mut self) -> f64 {
        self.place = self.place.wrapping_add(EVEN_STEP);
        let bits = self.random.as_mut().map_or(self.place, Prng::next_u64);
        #[expect(clippy::cast_precision_loss, reason = "52 bits and a half fit exactly")]
        let top = (bits >> 12) as f64;
        (top + 0.5) * EVEN_PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(time: TimeSpec) -> ServiceSpec {
        ServiceSpec {
            time,
            workers: None,
            stall: None,
            seed: 1,
        }
    }

    #[test]
    fn the_times_of_a_run_have_the_percentiles_of_their_distribution() {
        let kinds = [
            TimeSpec::Constant { ms: 20.0 },
            TimeSpec::Exponential { mean_ms: 50.0 },
            TimeSpec::Bimodal {
                fast_ms: 20.0,
                slow_ms: 200.0,
                slow_share: 0.1,
            },
            TimeSpec::Pareto {
                least_ms: 20.0,
                shape: 2.0,
            },
        ];
        for time in kinds {
            let mut service = Service::new(&spec(time));
            let mut times: Vec<u64> = (0..20_000).map(|_| service.leaves_ns(0)).collect();
            times.sort_unstable();
            for (u, place) in [
                (0.5, 10_000),
                (0.85, 17_000),
                (0.95, 19_000),
                (0.99, 19_800),
            ] {
                let truth = time.quantile_ms(u) * 1e6;
                #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
                let found = times[place] as f64;
                assert!(
                    (found / truth - 1.0).abs() < 0.003,
                    "{time:?} {u}: {found} {truth}"
                );
            }
        }
    }

    #[test]
    fn queries_beyond_the_workers_wait_in_one_queue() {
        let mut queue = spec(TimeSpec::Constant { ms: 1.0 });
        queue.workers = Some(2);
        let mut service = Service::new(&queue);
        let leave: Vec<u64> = (0..5).map(|_| service.leaves_ns(0) / 1_000_000).collect();
        assert_eq!(leave, [1, 1, 2, 2, 3]);
        assert_eq!(service.leaves_ns(10_000_000), 11_000_000);
    }

    #[test]
    fn an_answer_that_falls_into_a_stall_leaves_at_its_end() {
        let mut stalling = spec(TimeSpec::Constant { ms: 1.0 });
        stalling.stall = Some(StallSpec {
            every_s: 10.0,
            for_s: 1.0,
        });
        let mut service = Service::new(&stalling);
        let mut at = |seconds: f64| service.leaves_ns(5 + clock::ns(seconds)) - 5;
        assert_eq!(at(0.0), 1_000_000);
        assert_eq!(at(9.5), 9_501_000_000);
        assert_eq!(at(9.9995), 11_000_000_000);
        assert_eq!(at(10.7), 11_000_000_000);
        assert_eq!(at(11.0), 11_001_000_000);
        assert_eq!(at(20.2), 21_000_000_000);
    }

    #[test]
    fn a_service_that_cannot_be_is_refused() {
        let mut bad = spec(TimeSpec::Constant { ms: -1.0 });
        assert!(bad.trouble().is_some());
        bad.time = TimeSpec::Constant { ms: 1.0 };
        assert!(bad.trouble().is_none());
        bad.workers = Some(0);
        assert!(bad.trouble().is_some());
        bad.workers = None;
        bad.stall = Some(StallSpec {
            every_s: 1.0,
            for_s: 1.0,
        });
        assert!(bad.trouble().is_some());
    }
}
