//! Time limits: what counts as our own pause, and what has waited too long.

use std::time::Duration;

use super::client::{Client, Phase};
use super::{SWEEP_NS, Stage, Worker};
use crate::clock::now_ns;
use crate::error::DriveError;
use crate::io::{EVENTS_MAX, Poller, Slot};
use crate::protocol::{Failure, Protocol};
use crate::record::ErrorClass;

/// A time limit that pauses of ours put off.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Excuse {
    /// Up to when they have put it off; another value is another limit.
    until_ns: u64,
    /// What they have added in all.
    added_ns: u64,
}

impl Excuse {
    /// Put off the limit of `limit_ns` that ends at `until_ns`, after a pause that has just ended; returns its new
    /// end.
    ///
    /// What was left of it when the pause began is left after it, however long the pause was. All pauses together
    /// add as much as the limit itself and no more: one that never comes to listen would wait for ever.
    fn put_off(&mut self, until_ns: u64, limit_ns: u64, now: u64, paused_ns: u64) -> u64 {
        if self.until_ns != until_ns {
            self.added_ns = 0;
        }
        let from_ns = until_ns.max(now);
        let most_ns = from_ns.saturating_add(limit_ns.saturating_sub(self.added_ns));
        self.until_ns = until_ns.saturating_add(paused_ns).min(most_ns);
        self.added_ns = (self.added_ns).saturating_add(self.until_ns.saturating_sub(from_ns));
        self.until_ns
    }
}

/// A worker that handles nothing for so long was paused: stopped, without CPU, or busy with one thing.
const PAUSE_NS: u64 = 50_000_000;
/// A wait that ends so much later than asked is late by more than the kernel's usual wake-up.
const LATE_WAKE_NS: u64 = 1_000_000;
const INTERRUPTED: &str = "interrupted: it had not ended when the run had to end";

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// Book the time that the loop was busy, from the moment at which it should have woken.
    pub(super) fn note_lag(&mut self, woke_ns: u64, before_ns: u64) {
        let late_ns = woke_ns.saturating_sub(self.wake_due_ns);
        let busy_ns = before_ns - woke_ns;
        let lag_ns = busy_ns + if late_ns >= LATE_WAKE_NS { late_ns } else { 0 };
        self.record.loop_lag.record(lag_ns);
        if lag_ns >= PAUSE_NS && self.measuring {
            self.pauses.note(before_ns - lag_ns, lag_ns);
        }
        self.excuse(before_ns, busy_ns);
    }

    /// While we were paused nobody listened: no server is to blame for an answer that we did not take.
    pub(super) fn excuse(&mut self, now: u64, paused_ns: u64) {
        if paused_ns < PAUSE_NS {
            return;
        }
        for index in 0..self.clients.len() {
            let limit_ns = self.timeout_ns_of(self.clients[index].phase);
            let client = &mut self.clients[index];
            if client.waits() {
                client.until_ns =
                    (client.excuse).put_off(client.until_ns, limit_ns, now, paused_ns);
            }
        }
        let limit_ns = match self.stage {
            Stage::Stopping => self.config.grace_ns,
            _ => self.config.drain_ns,
        };
        self.drain_until_ns =
            (self.drain_excuse).put_off(self.drain_until_ns, limit_ns, now, paused_ns);
    }

    /// An answer that lies in the socket has arrived: take all of them before a time limit is judged.
    pub(super) fn read_before_judging(&mut self, now: u64) -> Result<(), DriveError> {
        for _ in 0..=self.clients.len().div_ceil(EVENTS_MAX) {
            if !self.clients.iter().any(|client| client.is_overdue(now)) {
                return Ok(());
            }
            self.wait(now, 0)?;
            if !self.handle_all(now_ns()) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// End what has waited too long.
    pub(super) fn sweep(&mut self, now: u64) {
        self.sweep_ns = now + SWEEP_NS;
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            let slot = u32::try_from(index).unwrap_or(u32::MAX);
            if client.is_overdue(now) {
                let limit = Duration::from_nanos(self.timeout_ns_of(client.phase));
                let message = format!("no answer within {} s", limit.as_secs_f64());
                self.lose(slot, now, Failure::new(ErrorClass::Timeout, message));
            } else if client.transaction.active && now >= self.drained_by(client) {
                self.cut_off(slot, now, &Failure::new(ErrorClass::Timeout, INTERRUPTED));
            }
        }
    }

    /// A program has held up its thread until somebody interrupted it: the end of the run has gone by unnoticed.
    pub(super) fn cut_off_late(&mut self, slot: Slot) {
        let now = now_ns();
        if self.stage != Stage::Connecting {
            self.check_stop(now);
            self.drain_until_ns = 0; // all others are as late, and our own pause excuses none of them
        }
        self.cut_off(slot, now, &Failure::new(ErrorClass::Timeout, INTERRUPTED));
    }

    /// The time limit that applies in a phase.
    fn timeout_ns_of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Connecting | Phase::LoggingIn => self.config.connect_timeout_ns,
            _ => self.config.timeout_ns,
        }
    }

    /// When what this client does is cut off, once nothing begins any more.
    fn drained_by(&self, client: &Client<P>) -> u64 {
        if client.phase == Phase::Sleeping {
            self.drain_until_ns.min(self.asleep_until_ns)
        } else {
            self.drain_until_ns
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT_NS: u64 = 2_000_000_000;

    #[test]
    fn one_pause_leaves_what_was_left_however_long_it_was() {
        for hours in [0, 1, 24] {
            let (begun_ns, paused_ns) = (5_000_000_000, 60_000_000 + hours * 3_600_000_000_000);
            let until_ns = begun_ns + LIMIT_NS;
            let paused_at_ns = begun_ns + 500_000_000;
            let now = paused_at_ns + paused_ns;
            let put_off = Excuse::default().put_off(until_ns, LIMIT_NS, now, paused_ns);
            assert_eq!(put_off - now, until_ns - paused_at_ns);
        }
    }

    #[test]
    fn a_limit_that_is_not_set_or_over_stays_so() {
        assert_eq!(
            Excuse::default().put_off(u64::MAX, LIMIT_NS, 1, 1_000),
            u64::MAX
        );
        let over_ns = Excuse::default().put_off(0, LIMIT_NS, 9_000_000_000, 1_000);
        assert_eq!(over_ns, 1_000);
    }

    #[test]
    fn another_limit_is_excused_anew() {
        let mut excuse = Excuse::default();
        let mut until_ns = LIMIT_NS;
        for _ in 0..100 {
            until_ns = excuse.put_off(until_ns, LIMIT_NS, 0, LIMIT_NS);
        }
        assert_eq!(until_ns, 2 * LIMIT_NS);
        let next_ns = 100 * LIMIT_NS;
        assert_eq!(excuse.put_off(next_ns, LIMIT_NS, 0, 7), next_ns + 7);
    }

    proptest! {
        /// Every turn of the loop is a pause: the limit ends all the same.
        #[test]
        fn pauses_without_end_end(pauses in proptest::collection::vec(PAUSE_NS..10 * LIMIT_NS, 1..50)) {
            let mut excuse = Excuse::default();
            let (mut now, mut until_ns, mut listened_ns) = (0_u64, LIMIT_NS, 0_u64);
            for paused_ns in pauses.iter().cycle().take(2_000) {
                if now >= until_ns {
                    break;
                }
                now += paused_ns;
                until_ns = excuse.put_off(until_ns, LIMIT_NS, now, *paused_ns);
                now += 1_000_000;
                listened_ns += 1_000_000;
            }
            prop_assert!(now >= until_ns);
            prop_assert!(listened_ns <= LIMIT_NS);
        }
    }
}
