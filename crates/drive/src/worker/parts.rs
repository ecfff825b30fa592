//! What programs do around their transactions, and connections that they ask for by themselves.

use std::os::fd::AsRawFd as _;

use super::client::{Parked, Phase, Transaction};
use super::traffic::connection_failure;
use super::{Stage, Worker};
use crate::clock::now_ns;
use crate::error::DriveError;
use crate::io::{Poller, Slot};
use crate::protocol::{Failure, Protocol};
use crate::record::ErrorClass;
use crate::workload::Part;
use crate::workload::lua::LuaWork;

const NOT_BACK: &str = "the connection was lost, and there was no new one when the run ended";

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// Before the common start: each program's prologue.
    pub(super) fn begin_programs(&mut self) -> Result<(), DriveError> {
        self.idle.extend(self.waiting.drain(..));
        let now = now_ns();
        self.begin_parts(Part::Prologue, now);
        self.await_parts(now)
    }

    /// When no transaction begins any more: each program's epilogue, unless the run was interrupted.
    pub(super) fn end_programs(&mut self) -> Result<(), DriveError> {
        if !self.config.connects_late || self.stage == Stage::Stopping || self.control.stop_asked()
        {
            return Ok(());
        }
        let now = now_ns();
        self.drain_until_ns = now.saturating_add(self.config.timeout_ns);
        self.begin_parts(Part::Epilogue, now);
        self.await_parts(now)
    }

    fn begin_parts(&mut self, part: Part, now: u64) {
        self.idle.clear();
        for index in 0..self.clients.len() {
            if self.control.stop_asked() {
                return; // while the one before held up its thread, perhaps
            }
            let slot = u32::try_from(index).unwrap_or(u32::MAX);
            let client = &mut self.clients[slot as usize];
            if client.phase == Phase::Gone {
                continue;
            }
            if !client.program.begin_part(part) {
                self.idle.push_back(slot);
                continue;
            }
            client.transaction = Transaction {
                intended_ns: now,
                burn_in: true,
                tries: 1,
                active: true,
                ..Transaction::default()
            };
            self.active += 1;
            let begun = client.transaction.begun();
            self.record.book_start(&begun, self.measuring);
            self.advance(slot, now);
        }
    }

    fn await_parts(&mut self, mut now: u64) -> Result<(), DriveError> {
        while self.active > 0 {
            self.connect_waiting(now);
            now = self.turn(now)?;
            if let Some(error) = self.fatal.take() {
                return Err(error);
            }
            if self.control.stop_asked() {
                self.cut_off_parts(now);
            }
        }
        self.fatal.take().map_or(Ok(()), Err)
    }

    fn cut_off_parts(&mut self, now: u64) {
        for index in 0..self.clients.len() {
            if self.clients[index].transaction.active {
                let slot = u32::try_from(index).unwrap_or(u32::MAX);
                let failure = Failure::new(ErrorClass::Timeout, "interrupted");
                self.cut_off(slot, now, &failure);
            }
        }
    }

    /// Before the common start: clients still get ready after one that could not.
    pub(super) fn others_get_ready(&self) -> bool {
        let lua = self.config.work.lua();
        self.stage == Stage::Connecting
            && !self.config.awaits_go
            && lua.is_some_and(LuaWork::all_get_ready)
    }

    /// A failure before the common start: there will be none.
    pub(super) fn fail_before_start(&mut self, failure: &Failure) {
        let error = DriveError::bad_spec(failure.message.clone(), "");
        if self.others_get_ready() {
            self.control.fail(error);
        } else {
            self.fatal.get_or_insert(error);
        }
    }

    /// A program asks for a connection.
    pub(super) fn connect_for(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        client.connect_ns = now;
        client.phase = Phase::Vacant;
        self.waiting.push_back(slot);
    }

    /// A program gives its connection up.
    pub(super) fn disconnect_for(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        self.connected -= usize::from(client.session.is_some());
        client.was_connected = false; // the next one is no loss made good
        client.phase = Phase::Vacant;
        self.say_goodbye(slot);
    }

    /// A program wants its lost connection again: at once, then after pauses, as long as transactions may begin.
    pub(super) fn reconnect_for(&mut self, slot: Slot, now: u64) {
        let may_wait = self.may_begin(now);
        let client = &mut self.clients[slot as usize];
        if client.backoff_ns == 0 {
            client.backoff_ns = 1;
            self.connect_for(slot, now);
        } else if may_wait {
            self.back_off(slot, now);
        } else {
            let failure = Failure::new(ErrorClass::Connection, NOT_BACK);
            self.cut_off(slot, now, &failure);
        }
    }

    /// A program has lost its connection, and goes on.
    pub(super) fn go_on_without(&mut self, slot: Slot, now: u64, phase: Phase, failure: &Failure) {
        if self.stage != Stage::Connecting {
            self.note_loss(slot, now, failure);
        }
        match phase {
            Phase::Exchanging => self.advance(slot, now),
            Phase::Idle => self.idle.push_back(slot),
            phase => self.clients[slot as usize].phase = phase,
        }
    }

    /// A program goes on with another connection of its own, or is about to ask for one.
    pub(super) fn switch_for(&mut self, slot: Slot, to: u32, now: u64) {
        self.park(slot, to);
        let client = &mut self.clients[slot as usize];
        let Some(at) = client.parked.iter().position(|parked| parked.number == to) else {
            return;
        };
        let parked = client.parked.swap_remove(at);
        let opened = self.poller.open(slot, parked.socket.as_raw_fd());
        client.exchange.in_transaction = parked.in_transaction;
        (client.session, client.socket) = (Some(parked.session), Some(parked.socket));
        client.was_connected = true;
        client.phase = Phase::Idle;
        self.connected += 1;
        if let Err(error) = opened {
            self.lose(slot, now, connection_failure(&error));
        }
    }

    /// Put a client's connection aside, if it has one; the next has this number.
    fn park(&mut self, slot: Slot, next: u32) {
        let client = &mut self.clients[slot as usize];
        let number = std::mem::replace(&mut client.connection, next);
        if let (Some(session), Some(socket)) = (client.session.take(), client.socket.take()) {
            self.poller.park(slot, socket.as_raw_fd());
            client.parked.push(Parked {
                number,
                session,
                socket,
                in_transaction: client.exchange.in_transaction,
            });
            self.connected -= 1;
        }
        client.exchange.in_transaction = false;
        client.was_connected = false;
        client.phase = Phase::Vacant;
    }

    /// A client wants no more, and what it has begun is no transaction.
    pub(super) fn end_left(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        client.left = Some(0);
        let begun = client.transaction.begun();
        self.record.book_left(&begun, self.measuring);
        self.ended = true;
        self.release(slot);
        self.note_rest(now);
    }
}
