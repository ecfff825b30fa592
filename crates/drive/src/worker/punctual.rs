//! Wake-ups for the starts of a rate: a kernel's timer wakes us some tens of microseconds late, so we ask for it that
//! much earlier, and poll for what is left.

/// Nobody asks for more: what comes later than this has lost its CPU to others.
const AHEAD_MAX_NS: u64 = 100_000;
const STEP_NS: u64 = 1_000;
/// Polling may take one part in so many of the time.
const POLLING_SHARE: u64 = 10;

/// How late wake-ups come as a rule, and the time spent polling to make up for it.
#[derive(Debug, Default)]
#[expect(clippy::struct_field_names, reason = "units stand last in names")]
pub(super) struct Punctuality {
    /// About the median of how late wake-ups come.
    late_ns: u64,
    polled_ns: u64,
    since_ns: u64,
}

impl Punctuality {
    /// For a drive that begins now.
    pub(super) fn new(now: u64) -> Self {
        Self {
            since_ns: now,
            ..Self::default()
        }
    }

    /// How long to wait in the kernel for a start that is due in `left_ns`; 0: look for events and come back.
    pub(super) fn timeout_ns(&self, now: u64, left_ns: u64) -> u64 {
        if self.polled_ns > now.saturating_sub(self.since_ns) / POLLING_SHARE {
            return left_ns;
        }
        left_ns.saturating_sub(self.late_ns)
    }

    /// A wait has ended that was to end after `timeout_ns` at the latest.
    pub(super) fn woke(&mut self, before_ns: u64, timeout_ns: u64, now: u64) {
        let waited_ns = now.saturating_sub(before_ns);
        if timeout_ns == 0 {
            self.polled_ns += waited_ns;
        } else if waited_ns > timeout_ns + self.late_ns {
            self.late_ns = (self.late_ns + STEP_NS).min(AHEAD_MAX_NS);
        } else if waited_ns >= timeout_ns {
            self.late_ns = self.late_ns.saturating_sub(STEP_NS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Wait for starts every `gap_ns` with wake-ups that are late by turns; returns how late each start was.
    fn lags(gap_ns: u64, late_ns: &[u64]) -> (Vec<u64>, Punctuality) {
        let mut now = 1_000_000_000;
        let mut punctual = Punctuality::new(now);
        let (mut due, mut lags) = (now, Vec::new());
        for late_ns in late_ns.iter().cycle().take(5_000) {
            due += gap_ns;
            while now < due {
                let timeout_ns = punctual.timeout_ns(now, due - now);
                let before = now;
                now += if timeout_ns == 0 {
                    700
                } else {
                    timeout_ns + late_ns
                };
                punctual.woke(before, timeout_ns, now);
            }
            lags.push(now - due);
        }
        (lags.split_off(1_000), punctual)
    }

    fn median(mut lags: Vec<u64>) -> u64 {
        lags.sort_unstable();
        lags[lags.len() / 2]
    }

    #[test]
    fn starts_are_on_time_although_wake_ups_are_not() {
        let late = [52_000, 61_000, 55_000, 90_000, 57_000];
        let (lags, punctual) = lags(1_000_000, &late);
        assert!(median(lags) < 5_000);
        assert!((50_000..65_000).contains(&punctual.late_ns), "{punctual:?}");
    }

    proptest! {
        #[test]
        fn polling_is_bounded_whatever_happens(gap_ns in 1_000_u64..3_000_000, late in prop::collection::vec(0_u64..1_000_000, 1..9)) {
            let (lags, punctual) = lags(gap_ns, &late);
            let elapsed_ns = gap_ns * 5_000 + lags.last().unwrap();
            prop_assert!(punctual.late_ns <= AHEAD_MAX_NS);
            prop_assert!(punctual.polled_ns <= elapsed_ns / POLLING_SHARE + AHEAD_MAX_NS, "{punctual:?}");
        }

        #[test]
        fn no_wait_is_longer_than_asked(late_ns in 0_u64..AHEAD_MAX_NS, polled_ns in 0_u64..1_000, now in 0_u64..10_000, left_ns: u64) {
            let punctual = Punctuality { late_ns, polled_ns, since_ns: 0 };
            prop_assert!(punctual.timeout_ns(now, left_ns) <= left_ns);
        }
    }
}
