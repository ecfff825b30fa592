//! The one clock of a run: `CLOCK_MONOTONIC` in nanoseconds, the clock that Python's `time.monotonic_ns` reads too.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of the machine's monotonic clock.
#[must_use]
pub fn now_ns() -> u64 {
    // The monotonic clock exists on every Linux; a failure would mean a broken kernel interface.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| {
        u64::try_from(t.tv_sec()).unwrap_or(0) * 1_000_000_000
            + u64::try_from(t.tv_nsec()).unwrap_or(0)
    })
}

/// Nanoseconds since 1970, of the clock that may be set.
#[must_use]
pub(crate) fn epoch_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| {
        u64::try_from(t.tv_sec()).unwrap_or(0) * 1_000_000_000
            + u64::try_from(t.tv_nsec()).unwrap_or(0)
    })
}

/// Waits of the calling thread end when they should, not up to 50 µs later: a rate depends on it.
pub(crate) fn wait_exactly() {
    // Where the kernel refuses, waits are a little longer.
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// CPU time of the calling thread so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CpuTime {
    /// Time in user mode, nanoseconds.
    pub user_ns: u64,
    /// Time in the kernel, nanoseconds.
    pub system_ns: u64,
}

impl CpuTime {
    /// CPU time of the calling thread; zero where the kernel does not say.
    #[must_use]
    pub fn of_this_thread() -> Self {
        getrusage(UsageWho::RUSAGE_THREAD).map_or_else(
            |_| Self::default(),
            |usage| Self {
                user_ns: timeval_ns(usage.user_time()),
                system_ns: timeval_ns(usage.system_time()),
            },
        )
    }

    /// Time since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
        }
    }

    /// Sum with another thread's time.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
        }
    }
}

fn timeval_ns(time: nix::sys::time::TimeVal) -> u64 {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    seconds * 1_000_000_000 + micros * 1_000
}

/// Median cost of one reading of the clock, in nanoseconds.
#[must_use]
pub fn cost_ns() -> f64 {
    const READINGS: u32 = 1_000;
    let mut costs: Vec<u64> = (0..101)
        .map(|_| {
            let start = now_ns();
            for _ in 0..READINGS {
                std::hint::black_box(now_ns());
            }
            now_ns() - start
        })
        .collect();
    costs.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "a few microseconds fit")]
    let median = costs[costs.len() / 2] as f64;
    median / f64::from(READINGS)
}

/// Seconds to nanoseconds; the specification has been checked to be finite and not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is what an absurdly long time should do"
)]
pub(crate) fn ns(seconds: f64) -> u64 {
    // Ten years are for ever, and never overflow the clock when added to it.
    (seconds.min(3.2e8) * 1e9).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_never_goes_back() {
        let mut last = now_ns();
        for _ in 0..10_000 {
            let now = now_ns();
            assert!(now >= last && now > 0);
            last = now;
        }
    }

    #[test]
    fn work_costs_cpu_time() {
        let before = CpuTime::of_this_thread();
        let start = now_ns();
        while now_ns() - start < 30_000_000 {}
        let spent = CpuTime::of_this_thread().since(before);
        assert!(spent.user_ns + spent.system_ns > 1_000_000, "{spent:?}");
    }
}
