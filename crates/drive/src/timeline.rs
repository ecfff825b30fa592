//! Where warm-up, measured window and intervals are on the clock.

use crate::clock::ns;

/// The times of one drive, all on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units stand last in names")]
pub(crate) struct Timeline {
    /// All clients are connected and begin.
    pub(crate) start_ns: u64,
    /// The warm-up ends.
    pub(crate) measure_ns: u64,
    /// No transaction starts from here on; `None` when their number is fixed.
    pub(crate) deadline_ns: Option<u64>,
    /// Length of an interval.
    pub(crate) interval_ns: u64,
}

impl Timeline {
    /// Before the start is known.
    pub(crate) fn unknown(interval_ns: u64) -> Self {
        Self {
            start_ns: 0,
            measure_ns: 0,
            deadline_ns: None,
            interval_ns,
        }
    }

    /// The times of a drive that starts at `start_ns`; seconds of warm-up, of the measured window, of an interval.
    pub(crate) fn new(
        start_ns: u64,
        warmup_s: f64,
        duration_s: Option<f64>,
        interval_ns: u64,
    ) -> Self {
        let measure_ns = start_ns + ns(warmup_s);
        Self {
            start_ns,
            measure_ns,
            deadline_ns: duration_s.map(|s| measure_ns.saturating_add(ns(s))),
            interval_ns,
        }
    }

    /// Number of intervals of the warm-up.
    pub(crate) fn warmup_intervals(&self) -> u64 {
        (self.measure_ns - self.start_ns).div_ceil(self.interval_ns)
    }

    /// Interval `index` belongs to the warm-up.
    pub(crate) fn is_warmup(&self, index: u64) -> bool {
        index < self.warmup_intervals()
    }

    /// Begin of interval `index`.
    pub(crate) fn begin_ns(&self, index: u64) -> u64 {
        let warmup = self.warmup_intervals();
        if index < warmup {
            self.start_ns + index * self.interval_ns
        } else {
            self.measure_ns + (index - warmup) * self.interval_ns
        }
    }

    /// End of interval `index`: the begin of the next; the warm-up's last interval is cut short.
    pub(crate) fn end_ns(&self, index: u64) -> u64 {
        self.begin_ns(index + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn intervals_follow_each_other_and_none_spans_the_end_of_the_warm_up(
            warmup in 0_u64..5_000, interval in 1_u64..2_000, index in 0_u64..50,
        ) {
            let timeline = Timeline {
                start_ns: 10_000, measure_ns: 10_000 + warmup, deadline_ns: None, interval_ns: interval,
            };
            prop_assert_eq!(timeline.begin_ns(0), 10_000);
            prop_assert!(timeline.begin_ns(index) < timeline.end_ns(index));
            prop_assert!(timeline.end_ns(index) - timeline.begin_ns(index) <= interval);
            if timeline.is_warmup(index) {
                prop_assert!(timeline.end_ns(index) <= timeline.measure_ns);
            } else {
                prop_assert!(timeline.begin_ns(index) >= timeline.measure_ns);
            }
        }
    }
}
