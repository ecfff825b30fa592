//! The longest time in which no transaction was done although one was wanted, over all workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Shorter gaps are not looked at: workers share these fields, and must not fight over them.
const RESOLUTION_NS: u64 = 1_000_000;

/// One such time, within the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "units stand last in names")]
pub(crate) struct Stall {
    pub(crate) start_ns: u64,
    /// A transaction was done; `None` when none was any more.
    pub(crate) end_ns: Option<u64>,
    /// Up to its end or the window's, whichever came first.
    pub(crate) length_ns: u64,
}

impl Stall {
    /// The time in which none of several hosts did anything, as far as their longest stalls say.
    pub(crate) fn of_all(mut stalls: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let first = stalls.next()??;
        stalls.try_fold(first, |stall, other| stall.overlap(other?))
    }

    fn overlap(self, other: Self) -> Option<Self> {
        let start_ns = self.start_ns.max(other.start_ns);
        let until_ns = (self.start_ns + self.length_ns).min(other.start_ns + other.length_ns);
        (until_ns > start_ns).then(|| Self {
            start_ns,
            end_ns: self.end_ns.into_iter().chain(other.end_ns).min(),
            length_ns: until_ns - start_ns,
        })
    }

    /// Move its times by so many nanoseconds.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        self.start_ns = self.start_ns.saturating_add_signed(by_ns);
        self.end_ns = self.end_ns.map(|ns| ns.saturating_add_signed(by_ns));
    }
}

/// Watches for the longest stall.
#[derive(Debug)]
pub(crate) struct StallWatch {
    /// The latest transaction was done, or the latest pause without any work ended.
    last_ns: AtomicU64,
    /// Transactions may begin until then.
    closed_ns: AtomicU64,
    /// Work was waiting at that time.
    waited: AtomicBool,
    longest_ns: AtomicU64,
    longest: Mutex<Option<Stall>>,
}

impl Default for StallWatch {
    fn default() -> Self {
        Self {
            last_ns: AtomicU64::new(0),
            closed_ns: AtomicU64::new(u64::MAX),
            waited: AtomicBool::new(false),
            longest_ns: AtomicU64::new(0),
            longest: Mutex::new(None),
        }
    }
}

impl StallWatch {
    /// Work begins after a time without any, since `rest_ns`: that is no stall.
    pub(crate) fn wake(&self, rest_ns: u64, at_ns: u64) {
        if at_ns >= rest_ns + RESOLUTION_NS {
            self.last_ns.fetch_max(at_ns, Ordering::Relaxed);
        }
    }

    /// A transaction was done; the measured window begins at `measure_ns`.
    pub(crate) fn done(&self, now: u64, measure_ns: u64) {
        if now < self.last_ns.load(Ordering::Relaxed) + RESOLUTION_NS {
            return;
        }
        let last_ns = self.last_ns.fetch_max(now, Ordering::Relaxed);
        if now > last_ns {
            self.consider(last_ns.max(measure_ns), now, Some(now));
        }
    }

    /// No transaction begins from here on; `waits` when some worker still had work.
    pub(crate) fn close(&self, at_ns: u64, waits: bool) {
        self.closed_ns.fetch_min(at_ns, Ordering::Relaxed);
        self.waited.fetch_or(waits, Ordering::Relaxed);
    }

    /// The longest stall of a drive that has ended.
    pub(crate) fn longest(&self, measure_ns: u64) -> Option<Stall> {
        if self.waited.load(Ordering::Relaxed) {
            let last_ns = self.last_ns.load(Ordering::Relaxed);
            self.consider(last_ns.max(measure_ns), u64::MAX, None);
        }
        *self.longest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn consider(&self, start_ns: u64, until_ns: u64, end_ns: Option<u64>) {
        let until_ns = until_ns.min(self.closed_ns.load(Ordering::Relaxed));
        let length_ns = until_ns.saturating_sub(start_ns);
        if length_ns <= self.longest_ns.fetch_max(length_ns, Ordering::Relaxed) {
            return;
        }
        let mut longest = self.longest.lock().unwrap_or_else(PoisonError::into_inner);
        if longest.is_none_or(|known| known.length_ns < length_ns) {
            *longest = Some(Stall {
                start_ns,
                end_ns,
                length_ns,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_longest_gap_between_two_ends_is_the_stall() {
        let watch = StallWatch::default();
        for at in [10, 15, 16, 40, 45] {
            watch.done(at * MS, 12 * MS);
        }
        watch.close(50 * MS, true);
        let stall = watch.longest(12 * MS).unwrap();
        assert_eq!((stall.start_ns, stall.end_ns), (16 * MS, Some(40 * MS)));
        assert_eq!(stall.length_ns, 24 * MS);
    }

    #[test]
    fn hosts_stall_together_while_all_of_them_do() {
        let stall = |start: u64, end: Option<u64>, length: u64| {
            Some(Stall {
                start_ns: start * MS,
                end_ns: end.map(|end| end * MS),
                length_ns: length * MS,
            })
        };
        let of_all = |stalls: &[Option<Stall>]| Stall::of_all(stalls.iter().copied());
        assert_eq!(of_all(&[stall(3, Some(9), 6)]), stall(3, Some(9), 6));
        assert_eq!(
            of_all(&[stall(3, Some(9), 6), stall(5, None, 20)]),
            stall(5, Some(9), 4)
        );
        assert_eq!(of_all(&[stall(3, Some(9), 6), stall(9, None, 20)]), None);
        assert_eq!(of_all(&[stall(3, Some(9), 6), None]), None);
    }

    #[test]
    fn a_time_without_work_is_no_stall() {
        let watch = StallWatch::default();
        watch.done(10 * MS, 0);
        watch.wake(10 * MS, 60 * MS);
        watch.done(65 * MS, 0);
        watch.close(100 * MS, false);
        assert_eq!(
            watch.longest(0).unwrap().length_ns,
            10 * MS,
            "up to the first end"
        );
    }

    #[test]
    fn a_failure_and_the_next_try_are_no_rest() {
        let watch = StallWatch::default();
        watch.done(10 * MS, 0);
        watch.wake(60 * MS, 60 * MS);
        watch.close(90 * MS, true);
        assert_eq!(watch.longest(0).unwrap().length_ns, 80 * MS);
    }

    #[test]
    fn one_that_nothing_ends_has_no_end_and_is_counted_up_to_the_window_s() {
        let watch = StallWatch::default();
        watch.done(10 * MS, 0);
        watch.close(90 * MS, true);
        let stall = watch.longest(0).unwrap();
        assert_eq!((stall.start_ns, stall.end_ns), (10 * MS, None));
        assert_eq!(stall.length_ns, 80 * MS);
    }

    #[test]
    fn one_that_ends_in_the_drain_counts_up_to_the_window_s_end() {
        let watch = StallWatch::default();
        watch.done(10 * MS, 0);
        watch.close(90 * MS, true);
        watch.done(200 * MS, 0);
        let stall = watch.longest(0).unwrap();
        assert_eq!((stall.end_ns, stall.length_ns), (Some(200 * MS), 80 * MS));
    }

    #[test]
    fn the_warm_up_s_part_is_not_counted() {
        let watch = StallWatch::default();
        watch.done(10 * MS, 50 * MS);
        watch.done(60 * MS, 50 * MS);
        watch.close(100 * MS, false);
        let stall = watch.longest(50 * MS).unwrap();
        assert_eq!((stall.start_ns, stall.length_ns), (50 * MS, 10 * MS));
    }
}
