//! A limit to the rate at which connections are begun, which all workers share.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::ns;

/// A wake-up that comes late may catch up on so much, so that the rate is kept; never on a longer pause.
const CATCH_UP_NS: u64 = 10_000_000;

/// Connections at equal distances.
#[derive(Debug)]
pub(crate) struct ConnectPace {
    gap_ns: u64,
    /// The next connection is not begun before.
    next_ns: AtomicU64,
}

impl ConnectPace {
    /// So many connections a second at most.
    pub(crate) fn new(rate_per_s: f64) -> Self {
        Self {
            gap_ns: ns(1.0 / rate_per_s).max(1),
            next_ns: AtomicU64::new(0),
        }
    }

    /// Take leave to begin a connection now.
    ///
    /// # Errors
    /// When to ask again.
    pub(crate) fn take(&self, now: u64) -> Result<(), u64> {
        let after = |next_ns: u64| {
            let from_ns = next_ns.max(now.saturating_sub(CATCH_UP_NS));
            (next_ns <= now).then(|| from_ns.saturating_add(self.gap_ns))
        };
        (self.next_ns)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, after)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    proptest! {
        #[test]
        fn no_span_has_more_than_its_share_and_a_hurried_asker_gets_the_whole_rate(
            rate in 1_u32..2_000, pauses in prop::collection::vec(1_u64..40_000_000, 50..300),
        ) {
            let pace = ConnectPace::new(f64::from(rate));
            let (mut now, mut taken) = (SECOND, Vec::new());
            for pause_ns in pauses {
                while pace.take(now).is_ok() {
                    taken.push(now);
                }
                now += pause_ns;
            }
            let gap_ns = SECOND / u64::from(rate);
            for (first, &from) in taken.iter().enumerate() {
                let within = taken[first..].iter().filter(|&&at| at < from + SECOND / 10).count() as u64;
                prop_assert!(within <= (SECOND / 10 + CATCH_UP_NS) / gap_ns + 2, "{within} in 0.1 s");
            }
            // Who asks again when told loses nothing.
            let begin = now + SECOND;
            let mut at = begin;
            for _ in 0..100 {
                while let Err(again) = pace.take(at) {
                    at = again + 1_000; // woken a little late
                }
            }
            prop_assert!(at - begin <= 99 * gap_ns + 2_000, "{} for 99 gaps of {gap_ns}", at - begin);
        }
    }

    #[test]
    fn rates_below_one_a_second_have_gaps_of_seconds() {
        let pace = ConnectPace::new(0.25);
        assert_eq!(pace.take(SECOND), Ok(()));
        assert_eq!(pace.take(2 * SECOND), Err(5 * SECOND - CATCH_UP_NS));
        assert_eq!(pace.take(5 * SECOND), Ok(()));
        assert_eq!(ConnectPace::new(1e-300).take(SECOND), Ok(()));
    }
}
