//! Bytes out and in: what is sent, what arrives, and what each message of an answer means to its exchange.

use std::io;
use std::os::fd::AsRawFd;

use super::Worker;
use super::client::{Client, Exchange, Phase, SendState};
use crate::io::{Chunk, Event, Poller, Sending, Slot};
use crate::messages::{Kind, Line, Messages};
use crate::protocol::report::Report;
use crate::protocol::{Failure, Frontend as _, Message, Protocol, Session as _};
use crate::record::{ErrorClass, Record};
use crate::workload::{Place, Program};

/// Sends up to this size need no completion of their own: the kernel takes them at once, and the answer proves it.
const QUIET_BYTES_MAX: usize = 16 * 1024;

impl<P: Protocol, I: Poller> Worker<P, I> {
    pub(super) fn flush(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let sent_ns = crate::clock::now_ns();
        let mut at = 0;
        while let Some(&slot) = self.dirty.get(at) {
            at += 1;
            if let Err(failure) = self.flush_client(slot, sent_ns) {
                self.lose(slot, sent_ns, failure);
            }
        }
        self.dirty.clear();
    }

    /// Send until nothing is left to send, or the kernel takes no more for now.
    fn flush_client(&mut self, slot: Slot, sent_ns: u64) -> Result<(), Failure> {
        while self.send_some(slot, sent_ns)? {}
        Ok(())
    }

    /// Send what is there; true when it has been taken, and there may be more.
    fn send_some(&mut self, slot: Slot, sent_ns: u64) -> Result<bool, Failure> {
        let client = &mut self.clients[slot as usize];
        let (Some(session), Some(socket)) = (&mut client.session, &client.socket) else {
            return Ok(false);
        };
        if client.send != SendState::Free {
            return Ok(false);
        }
        if client.phase == Phase::Exchanging && session.pending()?.is_empty() {
            client.program.more(&mut session.frontend());
        }
        let pending = session.pending()?;
        if pending.is_empty() {
            return Ok(false);
        }
        if pending.len() > client.sending.capacity() {
            let larger = Vec::with_capacity(pending.len().next_power_of_two());
            self.poller
                .keep(std::mem::replace(&mut client.sending, larger));
        }
        client.sending.clear();
        client.sending.extend_from_slice(pending);
        session.consumed(client.sending.len());
        let awaits_answer = matches!(client.phase, Phase::Exchanging | Phase::RollingBack);
        if awaits_answer && client.exchange.sent_ns == 0 {
            client.exchange.sent_ns = sent_ns;
            if client.transaction.started_ns == 0 {
                client.transaction.started_ns = sent_ns;
            }
        }
        self.record.bytes_sent += client.sending.len() as u64;
        let quiet = awaits_answer && client.sending.len() <= QUIET_BYTES_MAX;
        let fd = socket.as_raw_fd();
        let sent = if quiet && self.dirty.len() == 1 {
            self.poller.send_alone(slot, fd, &client.sending)
        } else {
            self.poller.send(slot, fd, &client.sending, quiet)
        };
        let sent = sent.map_err(|e| connection_failure(&e))?;
        note_sending(client, sent, quiet);
        Ok(client.send == SendState::Free)
    }

    pub(super) fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Received(slot, chunk) if slot == self.waker_slot => {
                self.poller.release(chunk);
                self.send_more();
            }
            Event::Received(slot, chunk) => self.received(slot, chunk, now),
            Event::Sent(slot, taken) => self.sent(slot, taken, now),
            Event::Writable(slot) => self.writable(slot, now),
            Event::Closed(slot) => self.closed(slot, now),
            Event::Failed(slot, errno) => {
                let failure = connection_failure(&io::Error::from_raw_os_error(errno));
                self.lose(slot, now, failure);
            }
        }
    }

    /// Some other thread may have made what clients are to send in the midst of an exchange.
    fn send_more(&mut self) {
        for (slot, client) in (0..).zip(&self.clients) {
            if client.phase == Phase::Exchanging && client.program.awaits_more() {
                self.dirty.push(slot);
            }
        }
    }

    fn sent(&mut self, slot: Slot, taken: usize, now: u64) {
        let client = &mut self.clients[slot as usize];
        if taken < client.sending.len() {
            client.sending.drain(..taken);
            return self.send_rest(slot, now);
        }
        client.send = SendState::Free;
        self.dirty.push(slot);
    }

    fn writable(&mut self, slot: Slot, now: u64) {
        if self.clients[slot as usize].phase == Phase::Connecting {
            self.connected_socket(slot, now);
        } else {
            self.send_rest(slot, now);
        }
    }

    /// Go on with a send of which a part has been taken.
    fn send_rest(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let Some(socket) = &client.socket else { return };
        let sent = self
            .poller
            .send(slot, socket.as_raw_fd(), &client.sending, false);
        match sent {
            Ok(sent) => {
                note_sending(client, sent, false);
                if sent == Sending::Done {
                    self.dirty.push(slot);
                }
            }
            Err(error) => self.lose(slot, now, connection_failure(&error)),
        }
    }

    fn received(&mut self, slot: Slot, chunk: Chunk, now: u64) {
        let client = &mut self.clients[slot as usize];
        let Some(session) = &mut client.session else {
            return self.poller.release(chunk);
        };
        let (program, exchange) = (&mut client.program, &mut client.exchange);
        let checked = &mut client.checked;
        let record = &mut *self.record;
        record.bytes_received += chunk.len as u64;
        // Statements of a transaction that straddles the end of the warm-up belong to neither side.
        let counted = client.transaction.measured == self.measuring;
        let is_load = self.config.is_load || program.sends_data();
        let messages = self.config.messages.as_deref();
        let (mut ready, mut copy_in) = (false, false);
        let result = session.receive(self.poller.bytes(chunk), &mut |message| match message {
            Message::LoggedIn => ready = true,
            message => {
                if let Some(checked) = checked {
                    return checked.message(&message);
                }
                copy_in |= !is_load && matches!(message, Message::DataWanted);
                program.message(&message);
                if let Some(messages) = messages {
                    overhear(messages, &message, exchange, &**program);
                }
                answer(&message, exchange, record, now, counted, is_load);
            }
        });
        self.poller.release(chunk);
        match result {
            Err(failure) => self.session_failed(slot, now, failure),
            Ok(()) if ready => self.check_session(slot, now),
            Ok(()) if checked.is_some() => self.session_checked(slot, now),
            Ok(()) if copy_in => self.refuse_copy(slot, now),
            Ok(()) => self.after_receive(slot, now),
        }
    }

    fn after_receive(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        match client.phase {
            Phase::Exchanging | Phase::RollingBack if client.exchange.answers == 0 => {
                end_quiet_send(client);
                self.answered(slot, now);
            }
            Phase::LoggingIn => self.dirty.push(slot),
            Phase::Exchanging | Phase::RollingBack => self.send_on(slot),
            _ => {}
        }
        if let Some(failure) = self.clients[slot as usize].exchange.farewell.take() {
            self.lose(slot, now, failure);
        }
    }

    /// A protocol may say its next message only after the answer to the last.
    fn send_on(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        if has_more(client) {
            end_quiet_send(client);
            self.dirty.push(slot);
        }
    }

    /// The server awaits data for a COPY that a script cannot give.
    fn refuse_copy(&mut self, slot: Slot, now: u64) {
        let extended = self.config.work.is_extended();
        let client = &mut self.clients[slot as usize];
        if client.exchange.statements.len() > 1 || client.exchange.answers > 1 {
            // What follows in the pipeline is no data: the server would lose track, as libpq knows.
            return self.drop_connection(slot, now, &copy_failure());
        }
        let Some(session) = &mut client.session else {
            return;
        };
        let reason = "COPY is not possible in a script";
        // A constant reason can always be encoded.
        let _ = session.frontend().refuse_data(reason, extended);
        end_quiet_send(client);
        self.dirty.push(slot);
    }
}

fn note_sending<P: Protocol>(client: &mut Client<P>, sent: Sending, quiet: bool) {
    match sent {
        Sending::Done => client.send = SendState::Free,
        Sending::Blocked(taken) => {
            client.sending.drain(..taken);
            client.send = SendState::Busy;
        }
        Sending::Queued if quiet => client.send = SendState::Quiet,
        Sending::Queued => client.send = SendState::Busy,
    }
}

/// The session has something to send; so it has, too, when it cannot say what, and fails at that.
fn has_more<P: Protocol>(client: &mut Client<P>) -> bool {
    let session = client.session.as_mut();
    session.is_some_and(|session| !matches!(session.pending(), Ok([])))
}

/// The server has answered: it has read what was sent.
fn end_quiet_send<P: Protocol>(client: &mut Client<P>) {
    if client.send == SendState::Quiet {
        client.send = SendState::Free;
    }
}

/// What is told of a message, now or when its transaction has failed.
fn overhear<P: Protocol>(
    messages: &Messages,
    message: &Message<'_, P>,
    exchange: &mut Exchange,
    program: &(dyn Program<P> + Send),
) {
    match message {
        Message::Notice(notice) => {
            // As libpq: where it comes from is told of errors only.
            let notice = Report {
                context: None,
                ..*notice
            };
            messages.push(Line::new(Kind::Server, notice.text(program.sent())));
        }
        Message::Done(_) => exchange.results += 1,
        Message::Error(error) if exchange.failure.is_none() => {
            let last = exchange.statements.len().saturating_sub(1);
            exchange.place = Some(Box::new(Place {
                statement: exchange.statements.get(exchange.ended.min(last)).copied(),
                // Without an open exchange, it is the answer to what is sent next.
                result: if exchange.answers > 0 {
                    exchange.results
                } else {
                    0
                },
                report: error.report.text(program.sent()),
            }));
        }
        _ => {}
    }
}

/// One message of an answer, booked in the exchange.
fn answer<P: Protocol>(
    message: &Message<'_, P>,
    exchange: &mut Exchange,
    record: &mut Record,
    now: u64,
    counted: bool,
    is_load: bool,
) {
    match message {
        Message::Done(_) => {
            // A lone statement ends with its answer; in a pipeline each ends with its own completion.
            if exchange.statements.len() > 1
                && let Some(&statement) = exchange.statements.get(exchange.ended)
            {
                exchange.ended += 1;
                if counted {
                    // Of a batch, what is known is when each part ended: it began when the one before it did.
                    let begun_ns = if is_load && exchange.ended > 1 {
                        exchange.ended_ns
                    } else {
                        exchange.sent_ns
                    };
                    let latency_ns = now.saturating_sub(begun_ns);
                    record.statements[statement as usize].0.record(latency_ns);
                }
                exchange.ended_ns = now;
            }
        }
        Message::Error(error) => {
            let words = String::from_utf8_lossy(error.message);
            let failure = Failure::server::<P>(error.state, words);
            if error.is_fatal {
                exchange.farewell = Some(failure);
            } else if exchange.answers > 0 && exchange.failure.is_none() {
                let last = exchange.statements.len().saturating_sub(1);
                if let Some(&statement) = exchange.statements.get(exchange.ended.min(last)) {
                    record.statements[statement as usize].1 += 1;
                }
                exchange.failure = Some(failure);
            }
            // What follows up to the next synchronisation is skipped by the server.
            exchange.ended = usize::MAX;
        }
        Message::Answered { in_transaction } => {
            exchange.answers = exchange.answers.saturating_sub(1);
            exchange.in_transaction = *in_transaction;
        }
        Message::DataWanted if is_load => {}
        Message::DataWanted | Message::DataOffered => {
            exchange.failure.get_or_insert_with(copy_failure);
        }
        _ => {}
    }
}

fn copy_failure() -> Failure {
    Failure::script("COPY is not supported in a script")
}

pub(super) fn connection_failure(error: &io::Error) -> Failure {
    Failure::new(ErrorClass::Connection, error.to_string())
}
