//! Clients that begin one after the other, and connections that wait for leave.

use std::cmp::Reverse;

use super::client::Phase;
use super::{Stage, Worker};
use crate::io::{Poller, Slot};
use crate::protocol::Protocol;

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// The clients whose time in the ramp-up has not come do not begin yet.
    pub(super) fn begin_ramp(&mut self, now: u64) {
        if self.config.ramp_up_ns > 0 {
            for slot in std::mem::take(&mut self.idle) {
                self.stand_by(slot, now);
            }
        }
    }

    /// A client without a transaction may begin one: now, or when its time in the ramp-up has come.
    pub(super) fn stand_by(&mut self, slot: Slot, now: u64) {
        let begin_ns = match self.stage {
            Stage::Connecting => 0, // the common start is still to come
            _ => self.begin_ns(slot),
        };
        let client = &mut self.clients[slot as usize];
        if now < begin_ns {
            client.phase = Phase::RampingUp;
            client.until_ns = begin_ns;
            self.timers.push(Reverse((begin_ns, slot)));
            return;
        }
        client.phase = match client.session {
            Some(_) => Phase::Idle,
            None => Phase::Vacant,
        };
        self.idle.push_back(slot);
    }

    /// When a client begins its first transaction at the earliest.
    fn begin_ns(&self, slot: Slot) -> u64 {
        let number = u128::from(self.clients[slot as usize].number);
        let share =
            number * u128::from(self.config.ramp_up_ns) / self.config.clients.max(1) as u128;
        (self.timeline.start_ns).saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
    }

    /// Leave for a client to begin a connection, if it needs one.
    ///
    /// # Errors
    /// When to ask again.
    pub(super) fn leave_to_connect(&mut self, slot: Slot, now: u64) -> Result<(), u64> {
        let client = &mut self.clients[slot as usize];
        if let (Some(pace), None, false) = (
            &self.config.connect_pace,
            &client.session,
            client.may_connect,
        ) {
            pace.take(now)?;
            client.may_connect = true;
        }
        Ok(())
    }
}
