//! How a transaction is booked, whatever kind of client it has: a start in the window of its intended time, an outcome
//! in the window of the outcome.

use super::{Record, WindowCounts};

/// A transaction that was begun, as its record knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Begun {
    /// Number of its kind.
    pub script: usize,
    /// When it should have started.
    pub intended_ns: u64,
    /// That is in the measured window, and it is no burn-in.
    pub measured: bool,
    /// It is in no figure, and counted with the warm-up.
    pub burn_in: bool,
}

/// When a transaction really began and ended, nanoseconds of the clock.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The database was called.
    pub started_ns: u64,
    /// Its answer was whole.
    pub ended_ns: u64,
}

/// What decides how latencies count.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Transactions have intended starts.
    pub under_a_rate: bool,
    /// Slower ones are late.
    pub latency_limit_ns: Option<u64>,
}

/// What becomes of a start that never happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unstarted {
    /// It was over the latency limit before it could begin.
    Skipped,
    /// The drive ended first.
    Dropped,
}

impl WindowCounts {
    /// A start; one that comes when the window of its intended time is over is carried over.
    fn start(&mut self, measured: bool, measuring: bool) {
        self.of(measured).scheduled += 1;
        if measuring && !measured {
            self.carry(1);
        }
    }
}

impl Record {
    /// A transaction begins, in the measured window or before it.
    pub fn book_start(&mut self, begun: &Begun, measuring: bool) {
        let measuring = measuring && !begun.burn_in;
        self.counts.start(begun.measured, measuring);
        let script = &mut self.scripts[begun.script];
        script.counts.start(begun.measured, measuring);
    }

    /// A start that has come due and never happens belongs to the schedule of its time, and to the outcomes of this one.
    pub fn book_unstarted(&mut self, what: Unstarted, measured: bool, measuring: bool) {
        self.counts.start(measured, measuring);
        let counts = self.counts.of(measuring);
        match what {
            Unstarted::Skipped => counts.skipped += 1,
            Unstarted::Dropped => counts.dropped += 1,
        }
    }

    /// The warm-up is over, and this transaction is not: it ends in the measured window, and is counted there.
    pub fn carry_over(&mut self, begun: &Begun) {
        if !begun.burn_in {
            self.counts.carry(1);
            self.scripts[begun.script].counts.carry(1);
        }
    }

    /// A transaction was given up by its program as one that never began.
    pub fn book_left(&mut self, begun: &Begun, measuring: bool) {
        let measuring = measuring && !begun.burn_in;
        self.counts.of(measuring).dropped += 1;
        self.scripts[begun.script].counts.of(measuring).dropped += 1;
    }

    /// A transaction has ended in an error.
    pub fn book_failed(&mut self, begun: &Begun, measuring: bool) {
        let measuring = measuring && !begun.burn_in;
        self.counts.of(measuring).failed += 1;
        self.scripts[begun.script].counts.of(measuring).failed += 1;
    }

    /// A transaction has ended as it should; true when its latency is in the figures.
    pub fn book_done(
        &mut self,
        begun: &Begun,
        times: Times,
        measuring: bool,
        rules: Rules,
    ) -> bool {
        let counted = measuring && !begun.burn_in;
        self.counts.of(counted).done += 1;
        let script = &mut self.scripts[begun.script];
        script.counts.of(counted).done += 1;
        let service_ns = times.ended_ns.saturating_sub(times.started_ns);
        // In a closed loop nothing waits between intention and start.
        let response_ns = if rules.under_a_rate {
            times.ended_ns.saturating_sub(begun.intended_ns)
        } else {
            service_ns
        };
        let is_late = rules
            .latency_limit_ns
            .is_some_and(|limit| response_ns > limit);
        self.late += u64::from(is_late && begun.measured);
        // Latencies are left out of burn-in, and of a transaction that straddles the end of the warm-up.
        if begun.burn_in || begun.measured != measuring {
            return false;
        }
        script.service.record(service_ns);
        script.response.record(response_ns);
        self.response.record(response_ns);
        if let Some(service) = &mut self.service {
            service.record(service_ns);
            let lag_ns = times.started_ns.saturating_sub(begun.intended_ns);
            self.lag.record(lag_ns);
            if let Some(lag) = self.details.as_mut().and_then(|d| d.lag.as_mut()) {
                lag.record(lag_ns);
            }
        }
        true
    }
}
