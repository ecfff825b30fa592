//! Connections: made, lost, made again.

use std::cmp::Reverse;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use super::client::{Phase, SendState};
use super::traffic::connection_failure;
use super::{Stage, Worker};
use crate::collector::{Absence, Outage};
use crate::config::Config;
use crate::connector::Attempt;
use crate::error::DriveError;
use crate::io::{Poller, Slot};
use crate::protocol::{Failure, Frontend as _, Protocol, Session};
use crate::record::ErrorClass;
use crate::spec::OnError;

/// Connections that one worker makes at the same time: enough to keep a server busy forking, too few to
/// overflow its queue.
const CONNECTING_MAX: usize = 64;
const BACKOFF_FIRST_NS: u64 = 50_000_000;
/// So many outages of one worker are kept apart.
const OUTAGES_MAX: usize = 10_000;
/// Pause before a full listening queue is tried again.
const BUSY_NS: u64 = 5_000_000;

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// Begin as many connections as may be in flight at once.
    pub(super) fn connect_waiting(&mut self, now: u64) {
        self.connect_ask_ns = u64::MAX;
        while self.connecting < CONNECTING_MAX {
            let Some(&slot) = self.waiting.front() else {
                return;
            };
            let client = &self.clients[slot as usize];
            let wanted = self.stage != Stage::Stopping || client.transaction.active;
            let is_wanted = wanted && client.phase == Phase::Vacant;
            if is_wanted && let Err(ask_ns) = self.leave_to_connect(slot, now) {
                self.connect_ask_ns = ask_ns;
                return;
            }
            self.waiting.pop_front();
            if is_wanted {
                self.clients[slot as usize].may_connect = false;
                self.connect(slot, now);
            }
        }
    }

    fn connect(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        if client.connect_ns == 0 {
            client.connect_ns = now;
        }
        self.connecting += 1;
        client.phase = Phase::Connecting;
        client.until_ns = client.connect_ns + self.config.connect_timeout_ns;
        let socket = match (self.connector.in_turn(client.turn()).endpoint).connect() {
            Ok(Attempt::Started(socket)) => socket,
            Ok(Attempt::Busy) if now < client.until_ns => {
                self.connecting -= 1;
                client.phase = Phase::BackingOff;
                client.until_ns = now + BUSY_NS;
                return self.timers.push(Reverse((client.until_ns, slot)));
            }
            Ok(Attempt::Busy) => {
                let message = "the server's queue of connections stays full".to_owned();
                return self.lose(slot, now, Failure::new(ErrorClass::Connection, message));
            }
            Err(error) => return self.lose(slot, now, connection_failure(&error)),
        };
        let watched = self.poller.watch_connect(slot, socket.as_raw_fd());
        client.socket = Some(socket);
        if let Err(error) = watched {
            self.lose(slot, now, connection_failure(&error));
        }
    }

    /// The connection attempt has ended: well or not.
    pub(super) fn connected_socket(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let Some(socket) = &client.socket else { return };
        match socket.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => {
                return self.lose(slot, now, connection_failure(&error));
            }
        }
        let connector = self.connector.in_turn(client.turn());
        let fallback = client.fallback.as_deref();
        match fallback.unwrap_or(&connector.protocol).session() {
            Ok(session) => client.session = Some(session),
            Err(failure) => return self.lose(slot, now, failure),
        }
        client.phase = Phase::LoggingIn;
        if let Err(error) = self.poller.open(slot, socket.as_raw_fd()) {
            return self.lose(slot, now, connection_failure(&error));
        }
        self.dirty.push(slot);
    }

    /// Start-up and authentication are over, and the session is the right one: the client can work.
    pub(super) fn logged_in(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        self.connecting -= 1;
        self.connected += 1;
        self.record.connect.record(now - client.connect_ns);
        client.connect_ns = 0;
        client.backoff_ns = 0;
        if client.was_connected && !self.config.connect_per_transaction {
            self.record.reconnects += 1;
        }
        client.was_connected = true;
        (client.exchange.failure, client.exchange.farewell) = (None, None);
        client.program.reconnected();
        let active = client.transaction.active;
        self.note_return(slot, now);
        if active {
            self.advance(slot, now);
        } else {
            self.stand_by(slot, now);
        }
    }

    /// The server closed the connection.
    pub(super) fn closed(&mut self, slot: Slot, now: u64) {
        if let Some(session) = &mut self.clients[slot as usize].session {
            let failure = session.closed();
            self.session_failed(slot, now, failure);
        } else {
            let failure = Failure::new(ErrorClass::Connection, "the server closed the connection");
            self.lose(slot, now, failure);
        }
    }

    /// The bytes were not the protocol, or the server refused the log-in.
    pub(super) fn session_failed(&mut self, slot: Slot, now: u64, failure: Failure) {
        let client = &mut self.clients[slot as usize];
        let connector = self.connector.in_turn(client.turn());
        let retry = match (&client.session, &client.fallback, client.phase) {
            (Some(session), None, Phase::LoggingIn) => connector.protocol.second_try(session),
            _ => None,
        };
        if let Some(settings) = retry {
            client.fallback = Some(Arc::new(settings));
            client.phase = Phase::Vacant;
            self.connecting -= 1;
            self.close(slot);
            return self.waiting.push_front(slot);
        }
        self.lose(slot, now, failure);
    }

    /// A connection is gone, or could not be made. Ends what was in flight on it.
    pub(super) fn lose(&mut self, slot: Slot, now: u64, failure: Failure) {
        if failure.class == ErrorClass::Timeout {
            self.cancel(slot);
        }
        let Some(phase) = self.detach(slot) else {
            return;
        };
        // Why the server ends a session is the better message than that it did; so is why a transaction failed.
        let exchange = &mut self.clients[slot as usize].exchange;
        let said = exchange.farewell.take().or(exchange.failure.take());
        let failure = said.unwrap_or(failure);
        let place = exchange.place.take();
        if matches!(phase, Phase::Connecting | Phase::LoggingIn)
            && self.clients[slot as usize].program.refused(&failure)
        {
            return self.advance(slot, now);
        }
        if matches!(phase, Phase::Exchanging | Phase::Idle | Phase::Sleeping)
            && self.clients[slot as usize].program.lost(&failure)
        {
            return self.go_on_without(slot, now, phase, &failure);
        }
        if self.stage == Stage::Connecting {
            let turn = self.clients[slot as usize].turn();
            let address = self.connector.in_turn(turn).endpoint.text.clone();
            let hint = Config::connect_hint(&failure);
            self.fatal.get_or_insert(DriveError::Connect {
                address,
                message: failure.message,
                hint,
            });
            return;
        }
        if !self.config.reconnect {
            self.log_end(slot, &failure, place.as_deref());
        } else if self.clients[slot as usize].transaction.active {
            self.log_failed(slot, now, &failure); // its client goes on
        }
        self.note_loss(slot, now, &failure);
        self.end_lost(slot, now, phase, &failure);
        self.come_back(slot, now, &failure);
    }

    /// The run has to end: whatever this client does ends here.
    pub(super) fn cut_off(&mut self, slot: Slot, now: u64, failure: &Failure) {
        self.cancel(slot);
        let phase = self.detach(slot).unwrap_or(Phase::Vacant);
        self.end_lost(slot, now, phase, failure);
        self.leave(slot);
    }

    /// The script failed in the middle of its messages: what the server has of them must not be carried out.
    pub(super) fn drop_connection(&mut self, slot: Slot, now: u64, failure: &Failure) {
        self.cancel(slot);
        self.detach(slot);
        self.end_lost(slot, now, Phase::Vacant, failure);
        if self.config.on_error != OnError::Continue {
            self.log_end(slot, failure, None);
            return self.give_up(slot, now, failure);
        }
        let client = &mut self.clients[slot as usize];
        client.connect_ns = 0;
        self.waiting.push_back(slot);
    }

    /// Have the server give up what it does for a client whose connection is about to be closed.
    fn cancel(&self, slot: Slot) {
        let client = &self.clients[slot as usize];
        let awaited = matches!(client.phase, Phase::Exchanging | Phase::RollingBack);
        let key = client.session.as_ref().and_then(Session::cancel_key);
        if let (true, Some(key)) = (awaited, key) {
            // The other end is there as long as any worker is.
            let _ = self.cancels.send((client.turn(), key));
        }
    }

    /// Take the connection from a client; returns what it was doing with it, `None` when there was none.
    pub(super) fn detach(&mut self, slot: Slot) -> Option<Phase> {
        let client = &mut self.clients[slot as usize];
        let phase = client.phase;
        match phase {
            Phase::Gone | Phase::Vacant | Phase::BackingOff => return None,
            Phase::RampingUp if client.session.is_none() => return None,
            Phase::Connecting | Phase::LoggingIn => self.connecting -= 1,
            _ => self.connected -= 1,
        }
        client.phase = Phase::Vacant;
        if phase == Phase::Idle {
            self.idle.retain(|&idle| idle != slot);
        }
        self.close(slot);
        Some(phase)
    }

    /// End the transaction of a client that has no connection any more, if one was in flight.
    fn end_lost(&mut self, slot: Slot, now: u64, phase: Phase, failure: &Failure) {
        let client = &mut self.clients[slot as usize];
        client.exchange.statements.clear();
        let unanswered = phase == Phase::Exchanging && client.exchange.sent_ns > 0;
        let in_doubt = unanswered && client.program.may_be_stored();
        let original = client.rolled_back.take();
        if !client.transaction.active {
            return self.count(failure, now);
        }
        client.transaction.in_doubt = in_doubt;
        self.record.in_doubt += u64::from(in_doubt);
        if let Some(original) = original {
            // It had failed already, and was waiting for its ROLLBACK.
            self.count(failure, now);
            self.end_failed(slot, now, &original);
        } else {
            self.end_failed(slot, now, failure);
        }
    }

    /// Connect again after a pause, or leave for good.
    fn come_back(&mut self, slot: Slot, now: u64, failure: &Failure) {
        let client = &mut self.clients[slot as usize];
        if client.phase == Phase::Gone {
            return;
        }
        if self.config.reconnect && self.stage != Stage::Stopping {
            self.back_off(slot, now);
        } else {
            client.end = Some(Absence::new(now, failure));
            self.leave(slot);
        }
    }

    /// Connect again after a pause, which grows with each attempt.
    pub(super) fn back_off(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        client.phase = Phase::BackingOff;
        let longest_ns = self.config.reconnect_pause_ns.max(BACKOFF_FIRST_NS);
        client.backoff_ns = (client.backoff_ns * 2).clamp(BACKOFF_FIRST_NS, longest_ns);
        client.until_ns = now + client.backoff_ns;
        client.connect_ns = 0;
        self.timers.push(Reverse((client.until_ns, slot)));
    }

    /// This client ends after an error, and is not replaced.
    pub(super) fn give_up(&mut self, slot: Slot, now: u64, failure: &Failure) {
        if self.stage == Stage::Connecting {
            self.fail_before_start(failure);
        }
        let counts = self.may_begin(now);
        let client = &mut self.clients[slot as usize];
        let end = client.end.insert(Absence::new(now, failure));
        if counts {
            client.absence = Some(end.clone());
        }
        self.leave(slot);
    }

    /// This client does nothing more.
    pub(super) fn leave(&mut self, slot: Slot) {
        if self.config.connects_late {
            self.idle.retain(|&idle| idle != slot);
        }
        let client = &mut self.clients[slot as usize];
        if client.phase != Phase::Gone {
            client.phase = Phase::Gone;
            client.program.gone();
            self.end_parked(slot);
            self.gone += 1;
            let is_last = self.gone == self.clients.len();
            self.all_gone |=
                is_last && self.stage != Stage::Stopping && self.drain_until_ns == u64::MAX;
        }
    }

    pub(super) fn note_loss(&mut self, slot: Slot, now: u64, failure: &Failure) {
        if !self.may_begin(now) {
            return; // connections that end with the run are no outage
        }
        let client = &mut self.clients[slot as usize];
        client
            .absence
            .get_or_insert_with(|| Absence::new(now, failure));
        self.lost += usize::from(!client.lost);
        client.lost = true;
        if self.outage.is_none() && self.config.reconnect {
            self.log_outage(slot, failure);
        }
        let outage = self.outage.get_or_insert(Outage {
            start_ns: now,
            end_ns: None,
            clients: 0,
        });
        outage.clients = outage.clients.max(self.lost);
    }

    /// A server that comes and goes for days must not fill the memory: from some number on, the last one goes on.
    fn keep_outage(&mut self, outage: Outage) {
        let is_full = self.outages.len() >= OUTAGES_MAX;
        match self.outages.last_mut() {
            Some(last) if is_full => {
                last.end_ns = outage.end_ns;
                last.clients = last.clients.max(outage.clients);
            }
            _ => self.outages.push(outage),
        }
    }

    fn note_return(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        self.lost -= usize::from(client.lost);
        (client.lost, client.absence) = (false, None);
        self.note_rest(now);
        if self.lost == 0
            && let Some(mut outage) = self.outage.take()
        {
            outage.end_ns = Some(now);
            if self.config.reconnect {
                self.log_return(&outage);
            }
            self.keep_outage(outage);
        }
    }

    /// Give the connection up; its slot is free for another.
    pub(super) fn close(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        client.session = None;
        client.checked = None;
        let sending = std::mem::take(&mut client.sending);
        let sending = if client.send == SendState::Free {
            Vec::new()
        } else {
            sending
        };
        client.send = SendState::Free;
        client.exchange.answers = 0;
        client.exchange.in_transaction = false;
        if let Some(socket) = client.socket.take() {
            self.poller.close(slot, socket.as_raw_fd(), sending);
        }
    }

    /// End in order what other connections a client has.
    pub(super) fn end_parked(&mut self, slot: Slot) {
        for mut parked in self.clients[slot as usize].parked.drain(..) {
            parked.session.frontend().terminate();
            if let Ok(bytes) = parked.session.pending() {
                // Best effort, as for the one in use.
                let _ = parked.socket.send_with_flags(bytes, libc::MSG_NOSIGNAL);
            }
        }
    }

    /// End a connection in order, as far as it can still be done without waiting.
    pub(super) fn say_goodbye(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        if let (Some(session), Some(socket), SendState::Free) =
            (&mut client.session, &client.socket, client.send)
        {
            session.frontend().terminate();
            if let Ok(bytes) = session.pending() {
                // Best effort: the server notices the closed socket just as well.
                let _ = socket.send_with_flags(bytes, libc::MSG_NOSIGNAL);
            }
        }
        self.close(slot);
    }
}
