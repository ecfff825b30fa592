//! Time limits: what counts as our own pause, and what has waited too long.

use std::time::Duration;

use super::client::{Client, Phase};
use super::{SWEEP_NS, Stage, Worker};
use crate::clock::now_ns;
use crate::error::DriveError;
use crate::io::{EVENTS_MAX, Poller, Slot};
use crate::protocol::{Failure, Protocol};
use crate::record::ErrorClass;

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
        self.excuse(busy_ns);
    }

    /// While we were paused nobody listened: no server is to blame for an answer that we did not take.
    pub(super) fn excuse(&mut self, paused_ns: u64) {
        if paused_ns < PAUSE_NS {
            return;
        }
        for client in self.clients.iter_mut().filter(|client| client.waits()) {
            client.until_ns = client.until_ns.saturating_add(paused_ns);
        }
        self.drain_until_ns = self.drain_until_ns.saturating_add(paused_ns);
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
