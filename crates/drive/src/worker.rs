//! One thread of the driver: an event loop over its clients.
//!
//! Each turn starts what is due, hands over all sends, waits once, and handles all events. The clock is read a
//! few times a turn, not once a transaction: a statement begins when its batch is handed over, and ends when the
//! wait that brought its answer returned. Both stamps err on the long side, by the batch's own handling at most.

mod connect;
mod transact;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use loadstone_wire::postgres::{Event as WireEvent, Message, TransactionStatus, WireError};

use crate::client::{Client, Exchange, Phase};
use crate::clock::{CpuTime, now_ns};
use crate::collector::{Finish, Outage, Report};
use crate::config::Config;
use crate::control::{Control, Go};
use crate::error::DriveError;
use crate::io::{Chunk, Event, Poller, Sending, Slot};
use crate::pace::Schedule;
use crate::program::{Failure, Program};
use crate::record::{ErrorClass, Record, WindowCounts};
use crate::timeline::Timeline;

/// How often waiting clients are looked over for timeouts, and the control for a request to stop.
const SWEEP_NS: u64 = 50_000_000;
/// Sends up to this size need no completion of their own: the kernel takes them at once, and the answer proves it.
const QUIET_BYTES_MAX: usize = 16 * 1024;

/// What a worker is given.
pub(crate) struct Assignment {
    pub(crate) number: usize,
    pub(crate) clients: Vec<Client>,
    pub(crate) schedule: Schedule,
    pub(crate) config: Arc<Config>,
    pub(crate) control: Arc<Control>,
    pub(crate) reports: Sender<Report>,
    /// Empty records to write into.
    pub(crate) blanks: Receiver<Box<Record>>,
}

pub(crate) struct Worker<P: Poller> {
    number: usize,
    config: Arc<Config>,
    control: Arc<Control>,
    poller: P,
    clients: Vec<Client>,
    schedule: Schedule,
    timeline: Timeline,
    /// Clients that can start a transaction, longest idle first.
    idle: VecDeque<Slot>,
    /// Clients with bytes to send.
    dirty: Vec<Slot>,
    timers: BinaryHeap<Reverse<(u64, Slot)>>,
    sweep_ns: u64,
    record: Box<Record>,
    interval: u64,
    totals: WindowCounts,
    active: u64,
    connected: usize,
    connecting: usize,
    /// Clients that wait for their turn to connect.
    waiting: VecDeque<Slot>,
    gone: usize,
    outage: Option<Outage>,
    outages: Vec<Outage>,
    started: bool,
    stopping: bool,
    drain_until_ns: u64,
    fatal: Option<DriveError>,
    cpu_at_measure: CpuTime,
    iterations: u64,
    reports: Sender<Report>,
    blanks: Receiver<Box<Record>>,
}

impl<P: Poller> Worker<P> {
    /// A worker ready to connect its clients.
    pub(crate) fn with_poller(assignment: Assignment, poller: P) -> Self {
        let Assignment {
            number,
            clients,
            schedule,
            config,
            control,
            reports,
            blanks,
        } = assignment;
        Self {
            number,
            poller,
            schedule,
            timeline: Timeline {
                start_ns: 0,
                measure_ns: 0,
                deadline_ns: None,
                interval_ns: config.interval_ns,
            },
            idle: VecDeque::with_capacity(clients.len()),
            dirty: Vec::with_capacity(clients.len()),
            timers: BinaryHeap::with_capacity(clients.len()),
            sweep_ns: 0,
            record: Box::new(config.blank_record()),
            interval: 0,
            totals: WindowCounts::default(),
            active: 0,
            connected: 0,
            connecting: 0,
            waiting: (0..u32::try_from(clients.len()).unwrap_or(u32::MAX)).collect(),
            gone: 0,
            outage: None,
            outages: Vec::new(),
            started: false,
            stopping: false,
            drain_until_ns: u64::MAX,
            fatal: None,
            cpu_at_measure: CpuTime::default(),
            iterations: 0,
            config,
            control,
            clients,
            reports,
            blanks,
        }
    }

    /// Connect, wait for the common start, drive, and report.
    pub(crate) fn run(mut self) {
        let connected = self.connect_all();
        match self.control.arrive(connected) {
            Go::Start(timeline) => {
                if let Err(error) = self.drive(timeline) {
                    self.fatal = Some(error);
                }
            }
            Go::GiveUp => {}
        }
        self.finish();
    }

    fn connect_all(&mut self) -> Result<(), DriveError> {
        if self.config.connect_per_transaction {
            // The first transactions pay for their connections like all others.
            self.idle.extend(self.waiting.drain(..));
            return Ok(());
        }
        let mut woke_ns = now_ns();
        while self.connected < self.clients.len() {
            self.connect_waiting(woke_ns);
            woke_ns = self.turn(woke_ns)?;
            if let Some(error) = self.fatal.take() {
                return Err(error);
            }
            if self.control.stop_asked() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn drive(&mut self, timeline: Timeline) -> Result<(), DriveError> {
        self.timeline = timeline;
        self.started = true;
        self.iterations = 0;
        self.record.loop_lag.clear();
        self.cpu_at_measure = CpuTime::of_this_thread();
        let mut now = now_ns();
        loop {
            self.roll(now);
            self.check_stop(now);
            self.connect_waiting(now);
            self.begin_due(now);
            if self.is_finished(now) {
                return Ok(());
            }
            now = self.turn(now)?;
        }
    }

    /// Hand over all sends, wait once, handle all events; returns the time of the wake-up.
    fn turn(&mut self, woke_ns: u64) -> Result<u64, DriveError> {
        self.flush();
        let before_ns = now_ns();
        self.record.loop_lag.record(before_ns - woke_ns);
        let timeout_ns = self.next_deadline(before_ns).saturating_sub(before_ns);
        self.poller
            .wait(timeout_ns)
            .map_err(|source| DriveError::System {
                what: format!("waiting for the network with {}", P::NAME),
                source,
                hint: String::new(),
            })?;
        let now = now_ns();
        self.iterations += 1;
        while let Some(event) = self.poller.next() {
            self.record.loop_events += 1;
            self.handle(event, now);
        }
        self.fire_timers(now);
        self.sweep(now);
        Ok(now)
    }

    fn next_deadline(&self, now: u64) -> u64 {
        let mut until = now + SWEEP_NS;
        if let Some(Reverse((timer, _))) = self.timers.peek() {
            until = until.min(*timer);
        }
        if self.started {
            until = until.min(self.timeline.end_ns(self.interval));
            if let Some(deadline) = self.timeline.deadline_ns.filter(|&d| d > now) {
                until = until.min(deadline);
            }
            if let Some(next) = self
                .schedule
                .next_ns()
                .filter(|_| !self.idle.is_empty() && !self.stopping)
            {
                until = until.min(self.timeline.start_ns + next);
            }
        }
        until
    }

    fn flush(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let sent_ns = now_ns();
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            if let Err(failure) = self.flush_client(slot, sent_ns) {
                self.lose(slot, sent_ns, failure);
            }
        }
        // `lose` may have marked others; they are flushed by the next turn.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    fn flush_client(&mut self, slot: Slot, sent_ns: u64) -> Result<(), Failure> {
        let client = &mut self.clients[slot as usize];
        let (Some(session), Some(socket)) = (&mut client.session, &client.socket) else {
            return Ok(());
        };
        if client.send_busy {
            return Ok(());
        }
        let pending = session.pending().map_err(|e| protocol_failure(&e))?;
        if pending.is_empty() {
            return Ok(());
        }
        client.sending.clear();
        client.sending.extend_from_slice(pending);
        session.consumed(client.sending.len());
        let awaits_answer = matches!(client.phase, Phase::Exchanging | Phase::RollingBack);
        if awaits_answer {
            client.exchange.sent_ns = sent_ns;
            if client.transaction.started_ns == 0 {
                client.transaction.started_ns = sent_ns;
            }
        }
        self.record.bytes_sent += client.sending.len() as u64;
        let quiet = awaits_answer && client.sending.len() <= QUIET_BYTES_MAX;
        let sent = self
            .poller
            .send(slot, socket.as_raw_fd(), &client.sending, quiet)
            .map_err(|e| connection_failure(&e))?;
        match sent {
            Sending::Done => {}
            Sending::Blocked(taken) => {
                client.sending.drain(..taken);
                client.send_busy = true;
            }
            Sending::Queued => (client.send_busy, client.send_quiet) = (true, quiet),
        }
        Ok(())
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Received(slot, chunk) => self.received(slot, chunk, now),
            Event::Sent(slot) => self.sent(slot),
            Event::Writable(slot) => self.writable(slot, now),
            Event::Closed(slot) => self.closed(slot, now),
            Event::Failed(slot, errno) => {
                self.lose(
                    slot,
                    now,
                    connection_failure(&io::Error::from_raw_os_error(errno)),
                );
            }
        }
    }

    fn sent(&mut self, slot: Slot) {
        let client = &mut self.clients[slot as usize];
        client.send_busy = false;
        self.dirty.push(slot);
    }

    fn writable(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        if client.phase == Phase::Connecting {
            return self.connected_socket(slot, now);
        }
        let Some(socket) = &client.socket else { return };
        match self
            .poller
            .send(slot, socket.as_raw_fd(), &client.sending, false)
        {
            Ok(Sending::Blocked(taken)) => drop(client.sending.drain(..taken)),
            Ok(_) => {
                client.sending.clear();
                self.sent(slot);
            }
            Err(error) => self.lose(slot, now, connection_failure(&error)),
        }
    }

    fn received(&mut self, slot: Slot, chunk: Chunk, now: u64) {
        let client = &mut self.clients[slot as usize];
        let Some(session) = &mut client.session else {
            return self.poller.release(chunk);
        };
        let (program, exchange, record) =
            (&mut client.program, &mut client.exchange, &mut *self.record);
        record.bytes_received += chunk.len as u64;
        let (mut ready, mut copy_in) = (false, false);
        let result = session.receive(self.poller.bytes(chunk), &mut |event| match event {
            WireEvent::Ready => ready = true,
            WireEvent::Message(message) => {
                copy_in |= matches!(message, Message::CopyIn);
                answer(&message, program.as_mut(), exchange, record, now);
            }
        });
        self.poller.release(chunk);
        match result {
            Err(error) => self.wire_error(slot, now, &error),
            Ok(()) if ready => self.logged_in(slot, now),
            Ok(()) if copy_in => self.refuse_copy(slot),
            Ok(()) => self.after_receive(slot, now),
        }
    }

    fn after_receive(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        match client.phase {
            Phase::Exchanging | Phase::RollingBack if client.exchange.answers == 0 => {
                if client.send_quiet {
                    (client.send_busy, client.send_quiet) = (false, false);
                }
                self.answered(slot, now);
            }
            Phase::LoggingIn => self.dirty.push(slot),
            _ => {}
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(&Reverse((until_ns, slot))) = self.timers.peek() {
            if until_ns > now {
                return;
            }
            self.timers.pop();
            let client = &mut self.clients[slot as usize];
            if client.until_ns != until_ns {
                continue; // an older timer of a client that has gone on since
            }
            match client.phase {
                Phase::Sleeping => self.advance(slot, now),
                Phase::BackingOff => {
                    client.phase = Phase::Vacant;
                    self.waiting.push_back(slot);
                }
                _ => {}
            }
        }
    }

    /// Close what has waited too long.
    fn sweep(&mut self, now: u64) {
        if now < self.sweep_ns {
            return;
        }
        self.sweep_ns = now + SWEEP_NS;
        for index in 0..self.clients.len() {
            let client = &self.clients[index];
            let waits = matches!(
                client.phase,
                Phase::Connecting | Phase::LoggingIn | Phase::Exchanging | Phase::RollingBack
            );
            if waits && (now >= client.until_ns || now >= self.drain_until_ns) {
                let slot = u32::try_from(index).unwrap_or(u32::MAX);
                let message = if now >= client.until_ns {
                    format!(
                        "no answer within {} s",
                        self.config.timeout_ns_of(client.phase) as f64 / 1e9
                    )
                } else {
                    "cut off: no answer before the run had to end".to_owned()
                };
                self.lose(slot, now, Failure::new(ErrorClass::Timeout, message));
            }
        }
    }

    fn check_stop(&mut self, now: u64) {
        if !self.stopping && (self.control.stop_asked() || self.gone == self.clients.len()) {
            self.stopping = true;
            let earlier = self
                .timeline
                .deadline_ns
                .map_or(now, |deadline| deadline.min(now));
            self.timeline.deadline_ns = Some(earlier);
            self.drain_until_ns = now + self.config.grace_ns;
        } else if let Some(deadline) = self.timeline.deadline_ns
            && self.drain_until_ns == u64::MAX
            && now >= deadline
        {
            self.drain_until_ns = deadline + self.config.timeout_ns;
        }
    }

    fn is_finished(&self, now: u64) -> bool {
        if self.active > 0 {
            return false;
        }
        match self.timeline.deadline_ns {
            Some(deadline) => now >= deadline,
            None => self
                .clients
                .iter()
                .all(|c| c.phase == Phase::Gone || !c.has_left()),
        }
    }

    /// Hand over the records of the intervals that have ended.
    fn roll(&mut self, now: u64) {
        while now >= self.timeline.end_ns(self.interval) {
            self.hand_over(self.timeline.end_ns(self.interval));
            self.interval += 1;
            if self.timeline.begin_ns(self.interval) == self.timeline.measure_ns {
                self.cpu_at_measure = CpuTime::of_this_thread();
            }
        }
    }

    fn hand_over(&mut self, end_ns: u64) {
        self.totals.merge(&self.record.counts);
        assert_eq!(
            self.totals.under_way(),
            self.active,
            "counting equation against the clients under way"
        );
        let blank = self
            .blanks
            .try_recv()
            .unwrap_or_else(|_| Box::new(self.config.blank_record()));
        let full = std::mem::replace(&mut self.record, blank);
        // The collector outlives the workers; without it nobody wants the record.
        let _ = self.reports.send(Report::Interval {
            worker: self.number,
            index: self.interval,
            end_ns,
            connected: self.connected,
            record: full,
        });
    }

    fn finish(mut self) {
        let end_ns = now_ns();
        if self.started {
            self.roll(end_ns);
            self.hand_over(end_ns);
        }
        for slot in 0..self.clients.len() {
            self.say_goodbye(u32::try_from(slot).unwrap_or(u32::MAX));
        }
        self.outages.extend(self.outage.take());
        let _ = self.reports.send(Report::Finished(
            self.number,
            Finish {
                io: P::NAME,
                cpu: CpuTime::of_this_thread().since(self.cpu_at_measure),
                iterations: self.iterations,
                outages: self.outages,
                all_gone: self.started && self.gone == self.clients.len(),
                error: self.fatal.map(|e| e.to_string()),
            },
        ));
    }
}

/// One message of an answer, booked in the exchange.
fn answer(
    message: &Message<'_>,
    program: &mut dyn Program,
    exchange: &mut Exchange,
    record: &mut Record,
    now: u64,
) {
    program.message(message);
    match message {
        Message::CommandComplete(_) | Message::EmptyQuery => {
            // A lone statement ends with its ReadyForQuery; in a pipeline each ends with its own completion.
            if exchange.statements.len() > 1
                && let Some(&statement) = exchange.statements.get(exchange.ended)
            {
                exchange.ended += 1;
                record.statements[statement as usize]
                    .0
                    .record(now.saturating_sub(exchange.sent_ns));
            }
        }
        Message::Error(error) => {
            let failed = exchange
                .statements
                .get(exchange.ended.min(exchange.statements.len().max(1) - 1));
            if exchange.failure.is_none() {
                if let Some(&statement) = failed {
                    record.statements[statement as usize].1 += 1;
                }
                let message = String::from_utf8_lossy(error.message());
                exchange.failure =
                    Some(Failure::new(ErrorClass::Server(error.sqlstate()), message));
            }
            // What follows up to the next synchronisation is skipped by the server.
            exchange.ended = usize::MAX;
        }
        Message::ReadyForQuery(status) => {
            exchange.answers = exchange.answers.saturating_sub(1);
            exchange.in_transaction = *status != TransactionStatus::Idle;
        }
        Message::CopyIn | Message::CopyOut => {
            exchange.failure.get_or_insert_with(|| {
                Failure::script("COPY from or to the client is not possible in a script")
            });
        }
        _ => {}
    }
}

fn connection_failure(error: &io::Error) -> Failure {
    Failure::new(ErrorClass::Connection, error.to_string())
}

fn protocol_failure(error: &WireError) -> Failure {
    let class = match (error.server_error(), error) {
        (Some(refusal), _) => ErrorClass::Server(refusal.sqlstate),
        (None, WireError::Closed { .. }) => ErrorClass::Connection,
        _ => ErrorClass::Protocol,
    };
    Failure {
        class,
        message: error.to_string(),
        hint: error.hint(),
    }
}
