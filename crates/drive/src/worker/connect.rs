//! Connections: made, lost, made again.

use std::cmp::Reverse;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use loadstone_wire::postgres::{Session, WireError};

use super::{Worker, connection_failure, protocol_failure};
use crate::client::Phase;
use crate::collector::Outage;
use crate::endpoint::Attempt;
use crate::error::DriveError;
use crate::io::{Poller, Slot};
use crate::program::Failure;
use crate::record::ErrorClass;

/// Connections that one worker makes at the same time: enough to keep a server busy forking, too few to
/// overflow its queue.
const CONNECTING_MAX: usize = 64;
const BACKOFF_FIRST_NS: u64 = 50_000_000;
const BACKOFF_MAX_NS: u64 = 2_000_000_000;
/// Pause before a full listening queue is tried again.
const BUSY_NS: u64 = 5_000_000;

impl<P: Poller> Worker<P> {
    /// Begin as many connections as may be under way at once.
    pub(super) fn connect_waiting(&mut self, now: u64) {
        while self.connecting < CONNECTING_MAX {
            let Some(slot) = self.waiting.pop_front() else {
                return;
            };
            self.connect(slot, now);
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
        let socket = match self.config.endpoint.connect() {
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
        let settings = client.fallback.as_ref().unwrap_or(&self.config.settings);
        match Session::new(Arc::clone(settings), self.config.tls.clone()) {
            Ok(session) => client.session = Some(session),
            Err(error) => return self.lose(slot, now, protocol_failure(&error)),
        }
        client.phase = Phase::LoggingIn;
        if let Err(error) = self.poller.open(slot, socket.as_raw_fd()) {
            return self.lose(slot, now, connection_failure(&error));
        }
        self.dirty.push(slot);
    }

    /// Start-up and authentication are over: the client can work.
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
        client.exchange.in_transaction = false;
        client.program.reconnected();
        let active = client.transaction.active;
        if self.connected + self.gone == self.clients.len()
            && let Some(mut outage) = self.outage.take()
        {
            outage.end_ns = Some(now);
            self.outages.push(outage);
        }
        if active {
            self.advance(slot, now);
        } else {
            self.clients[slot as usize].phase = Phase::Idle;
            self.idle.push_back(slot);
        }
    }

    /// The server closed the connection.
    pub(super) fn closed(&mut self, slot: Slot, now: u64) {
        if let Some(session) = &mut self.clients[slot as usize].session {
            let error = session.closed();
            self.wire_error(slot, now, &error);
        } else {
            let failure = Failure::new(ErrorClass::Connection, "the server closed the connection");
            self.lose(slot, now, failure);
        }
    }

    /// The bytes were not the protocol, or the server refused the log-in.
    pub(super) fn wire_error(&mut self, slot: Slot, now: u64, error: &WireError) {
        let client = &mut self.clients[slot as usize];
        let retry = match (&client.session, &client.fallback, client.phase) {
            (Some(session), None, Phase::LoggingIn) => session.retry_settings(),
            _ => None,
        };
        if let Some(settings) = retry {
            client.fallback = Some(Arc::new(settings));
            client.phase = Phase::Vacant;
            self.connecting -= 1;
            self.close(slot);
            return self.waiting.push_front(slot);
        }
        self.lose(slot, now, protocol_failure(error));
    }

    /// A connection is gone, or could not be made. Ends what was under way on it.
    pub(super) fn lose(&mut self, slot: Slot, now: u64, failure: Failure) {
        let client = &mut self.clients[slot as usize];
        let phase = client.phase;
        match phase {
            Phase::Gone | Phase::Vacant | Phase::BackingOff => return,
            Phase::Connecting | Phase::LoggingIn => self.connecting -= 1,
            _ => self.connected -= 1,
        }
        if phase == Phase::Idle {
            self.idle.retain(|&idle| idle != slot);
        }
        let client = &mut self.clients[slot as usize];
        // The server says why it ends a session (FATAL) before it closes: that is the better message.
        let failure = client.exchange.failure.take().unwrap_or(failure);
        let in_doubt = phase == Phase::Exchanging && client.exchange.sent_ns > 0;
        self.close(slot);
        if !self.started {
            let address = self.config.endpoint.text.clone();
            let hint = self.config.connect_hint(&failure);
            self.fatal = Some(DriveError::Connect {
                address,
                message: failure.message,
                hint,
            });
            self.clients[slot as usize].phase = Phase::Vacant;
            return;
        }
        self.note_outage(now);
        self.clients[slot as usize].phase = Phase::Vacant;
        if self.clients[slot as usize].transaction.active {
            self.record.in_doubt += u64::from(in_doubt);
            self.end_failed(slot, now, failure);
        } else {
            self.count(&failure, now);
        }
        self.come_back(slot, now);
    }

    /// Connect again after a pause, or leave for good.
    fn come_back(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        if client.phase == Phase::Gone {
            return;
        }
        if self.config.reconnect && !self.stopping {
            client.phase = Phase::BackingOff;
            client.backoff_ns = (client.backoff_ns * 2).clamp(BACKOFF_FIRST_NS, BACKOFF_MAX_NS);
            client.until_ns = now + client.backoff_ns;
            client.connect_ns = 0;
            self.timers.push(Reverse((client.until_ns, slot)));
        } else {
            self.leave(slot);
        }
    }

    /// This client does nothing more.
    pub(super) fn leave(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        if client.phase != Phase::Gone {
            client.phase = Phase::Gone;
            self.gone += 1;
        }
    }

    fn note_outage(&mut self, now: u64) {
        if self.stopping {
            return; // connections that end with the run are no outage
        }
        let outage = self.outage.get_or_insert(Outage {
            start_ns: now,
            end_ns: None,
            clients: 0,
        });
        outage.clients = outage.clients.max(self.clients.len() - self.connected);
    }

    /// Give the connection up; its slot is free for another.
    pub(super) fn close(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        client.session = None;
        let sending = std::mem::take(&mut client.sending);
        let sending = if client.send_busy {
            sending
        } else {
            Vec::new()
        };
        (client.send_busy, client.send_quiet) = (false, false);
        client.exchange.answers = 0;
        if let Some(socket) = client.socket.take() {
            self.poller.close(slot, socket.as_raw_fd(), sending);
        }
    }

    /// End a connection in order, as far as it can still be done without waiting.
    pub(super) fn say_goodbye(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        if let (Some(session), Some(socket), false) =
            (&mut client.session, &client.socket, client.send_busy)
        {
            session.frontend().terminate();
            if let Ok(bytes) = session.pending() {
                // Best effort: the server notices the closed socket just as well.
                let _ = socket.send(bytes);
            }
        }
        self.close(slot);
    }
}
