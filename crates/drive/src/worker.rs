//! One thread of the driver: an event loop over its clients.
//!
//! Each turn starts what is due, hands over all sends, waits once, and handles all events. The clock is read a
//! few times a turn, not once a transaction: a statement begins when its batch is handed over, and ends when the
//! wait that brought its answer returned. Both stamps err on the long side, by the batch's own handling at most.

pub(crate) mod client;
mod connect;
mod intervals;
mod limits;
mod messages;
mod parts;
mod punctual;
mod ramp;
mod session;
mod traffic;
mod transact;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use self::client::{Client, Phase};
use self::limits::Excuse;
use self::punctual::Punctuality;
use crate::cancel::Cancel;
use crate::clock::{CpuTime, now_ns};
use crate::collector::{Finish, Outage, Pauses, Report};
use crate::config::Config;
use crate::connector::Connector;
use crate::control::{Control, Go};
use crate::error::DriveError;
use crate::io::{Poller, Slot};
use crate::journal::Logbook;
use crate::pace::Schedule;
use crate::protocol::{Failure, Protocol};
use crate::record::{ErrorClass, Record, WindowCounts};
use crate::timeline::Timeline;
use crate::waker::Waker;

/// How long a client may go on to sleep, or to await a shell command, when no transaction begins any more: that is
/// no answer of a server, for which the time limit may be anything.
const ASLEEP_DRAIN_NS: u64 = 60_000_000_000;
/// How often waiting clients are looked over for timeouts, and the control for a request to stop.
const SWEEP_NS: u64 = 50_000_000;

/// What a worker is given.
pub(crate) struct Assignment<P: Protocol> {
    pub(crate) number: usize,
    pub(crate) clients: Vec<Client<P>>,
    pub(crate) schedule: Schedule,
    pub(crate) config: Arc<Config>,
    pub(crate) connector: Arc<Connector<P>>,
    pub(crate) control: Arc<Control>,
    pub(crate) reports: Sender<Report>,
    /// Takes what the server is to give up.
    pub(crate) cancels: Sender<Cancel<P>>,
    /// Empty records to write into.
    pub(crate) record_pool: Receiver<Box<Record>>,
    pub(crate) log: Option<Logbook>,
}

/// How far a worker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Before the common start.
    Connecting,
    Driving,
    /// No transaction is to start any more, though the time is not over.
    Stopping,
}

pub(crate) struct Worker<P: Protocol, I: Poller> {
    number: usize,
    config: Arc<Config>,
    connector: Arc<Connector<P>>,
    control: Arc<Control>,
    poller: I,
    clients: Vec<Client<P>>,
    schedule: Schedule,
    timeline: Timeline,
    /// Clients that can start a transaction, longest idle first.
    idle: VecDeque<Slot>,
    /// Clients with bytes to send.
    dirty: Vec<Slot>,
    timers: BinaryHeap<Reverse<(u64, Slot)>>,
    sweep_ns: u64,
    punctuality: Punctuality,
    /// When the last wait should have ended at the latest.
    wake_due_ns: u64,
    pauses: Pauses,
    record: Box<Record>,
    interval: u64,
    totals: WindowCounts,
    /// The measured window has begun.
    measuring: bool,
    /// Idle clients that have said, when last asked, that they cannot begin yet.
    starved: usize,
    /// When to ask them again, unless they wake us before.
    ask_ns: u64,
    /// Some client's work has come to its end.
    ended: bool,
    /// What readers see of the waker, beside the connections.
    waker_slot: Slot,
    woken: Option<UnixStream>,
    /// Transactions in flight.
    active: u64,
    connected: usize,
    connecting: usize,
    /// Clients that wait for their turn to connect.
    waiting: VecDeque<Slot>,
    /// When the first of them may connect, where the rate of connecting is limited.
    connect_ask_ns: u64,
    gone: usize,
    /// Clients whose connection was lost and that have no new one.
    lost: usize,
    /// When there was nothing more to do, the last time.
    rest_ns: u64,
    /// Every client left before the end.
    all_gone: bool,
    outage: Option<Outage>,
    outages: Vec<Outage>,
    stage: Stage,
    drain_until_ns: u64,
    drain_excuse: Excuse,
    /// The same for clients that sleep.
    asleep_until_ns: u64,
    fatal: Option<DriveError>,
    cpu_at_measure: CpuTime,
    iterations: u64,
    reports: Sender<Report>,
    cancels: Sender<Cancel<P>>,
    record_pool: Receiver<Box<Record>>,
    log: Option<Logbook>,
}

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// A worker ready to connect its clients.
    pub(crate) fn with_poller(assignment: Assignment<P>, poller: I) -> Self {
        let clients = assignment.clients.len();
        let waker_slot = u32::try_from(clients).unwrap_or(u32::MAX);
        Self {
            number: assignment.number,
            poller,
            starved: 0,
            ask_ns: u64::MAX,
            ended: false,
            waker_slot,
            woken: None,
            schedule: assignment.schedule,
            timeline: Timeline::unknown(assignment.config.interval_ns),
            idle: VecDeque::with_capacity(clients),
            dirty: Vec::with_capacity(clients),
            timers: BinaryHeap::with_capacity(clients),
            sweep_ns: 0,
            punctuality: Punctuality::default(),
            wake_due_ns: u64::MAX,
            pauses: Pauses::default(),
            record: Box::new(assignment.config.blank_record()),
            interval: 0,
            totals: WindowCounts::default(),
            measuring: false,
            active: 0,
            connected: 0,
            connecting: 0,
            connect_ask_ns: u64::MAX,
            waiting: (0..waker_slot).collect(),
            gone: 0,
            lost: 0,
            rest_ns: 0,
            all_gone: false,
            outage: None,
            outages: Vec::new(),
            stage: Stage::Connecting,
            drain_until_ns: u64::MAX,
            drain_excuse: Excuse::default(),
            asleep_until_ns: u64::MAX,
            fatal: None,
            cpu_at_measure: CpuTime::default(),
            iterations: 0,
            config: assignment.config,
            connector: assignment.connector,
            control: assignment.control,
            clients: assignment.clients,
            reports: assignment.reports,
            cancels: assignment.cancels,
            record_pool: assignment.record_pool,
            log: assignment.log,
        }
    }

    /// Connect, wait for the common start, drive, and report.
    pub(crate) fn run(mut self) {
        let connected = self.watch_waker().and_then(|()| self.connect_all());
        match self.control.arrive(connected) {
            Go::Start(timeline) => {
                if self.config.awaits_go {
                    self.control.begin_at(timeline.start_ns);
                }
                if let Err(error) = self.drive(timeline).and_then(|()| self.end_programs()) {
                    self.end_all(&error);
                    self.fatal = Some(error);
                }
            }
            Go::GiveUp => {}
        }
        self.finish();
    }

    /// Let programs that wait for other threads wake this one.
    fn watch_waker(&mut self) -> Result<(), DriveError> {
        if !self.config.work.waits() {
            return Ok(());
        }
        let failed = |source| DriveError::System {
            what: "creating a pair of sockets".to_owned(),
            source,
            hint: "raise the limit of open files: ulimit -n".to_owned(),
        };
        let (waker, woken) = Waker::pair().map_err(failed)?;
        self.poller
            .open(self.waker_slot, woken.as_raw_fd())
            .map_err(failed)?;
        self.woken = Some(woken);
        let waker = Arc::new(waker);
        for client in &mut self.clients {
            client.program.attach(&waker);
        }
        Ok(())
    }

    fn connect_all(&mut self) -> Result<(), DriveError> {
        if self.config.connects_late {
            return self.begin_programs();
        }
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
        self.stage = Stage::Driving;
        self.iterations = 0;
        self.record.loop_lag.clear();
        self.wake_due_ns = u64::MAX;
        self.begin_interval();
        let mut now = now_ns();
        self.punctuality = Punctuality::new(now);
        self.begin_ramp(now);
        self.roll(now);
        loop {
            self.check_stop(now);
            self.connect_waiting(now);
            self.begin_due(now);
            if self.is_finished(now) {
                return Ok(());
            }
            now = self.turn(now)?;
            if let Some(error) = self.fatal.take() {
                return Err(error);
            }
        }
    }

    /// Hand over all sends, wait once, handle all events; returns the time of the wake-up.
    fn turn(&mut self, woke_ns: u64) -> Result<u64, DriveError> {
        self.flush();
        let before_ns = now_ns();
        self.note_lag(woke_ns, before_ns);
        self.wake_due_ns = self.next_deadline(before_ns).max(before_ns);
        let now = self.wait_punctually(before_ns, self.wake_due_ns - before_ns)?;
        self.excuse(now, now.saturating_sub(self.wake_due_ns));
        self.iterations += 1;
        if self.stage != Stage::Connecting {
            // What has arrived has ended now, and not in an interval that is over.
            self.roll(now);
        }
        self.handle_all(now);
        self.fire_timers(now);
        if now >= self.sweep_ns {
            self.read_before_judging(now)?;
            self.sweep(now);
        }
        Ok(now)
    }

    /// Wait for events, a timer or the next start, which is to be on time; returns when that ended.
    fn wait_punctually(&mut self, before_ns: u64, left_ns: u64) -> Result<u64, DriveError> {
        let is_start = self.config.under_a_rate
            && self
                .schedule
                .next_ns()
                .map(|ns| self.timeline.start_ns.saturating_add(ns))
                == Some(self.wake_due_ns);
        if !is_start {
            self.wait(before_ns, left_ns)?;
            return Ok(now_ns());
        }
        let timeout_ns = self.punctuality.timeout_ns(before_ns, left_ns);
        self.wait(before_ns, timeout_ns)?;
        let now = now_ns();
        self.punctuality.woke(before_ns, timeout_ns, now);
        Ok(now)
    }

    fn wait(&mut self, now: u64, timeout_ns: u64) -> Result<(), DriveError> {
        self.poller
            .wait(now, timeout_ns)
            .map_err(|source| DriveError::System {
                what: format!("waiting for the network with {}", I::NAME),
                source,
                hint: String::new(),
            })
    }

    /// Handle what the last wait brought; true when there was anything.
    fn handle_all(&mut self, now: u64) -> bool {
        let mut events = 0;
        while let Some(event) = self.poller.next() {
            events += 1;
            self.handle(event, now);
        }
        self.record.loop_events += events;
        events > 0
    }

    fn next_deadline(&self, now: u64) -> u64 {
        let mut until = (now + SWEEP_NS).min(self.connect_ask_ns.max(now));
        if let Some(Reverse((timer, _))) = self.timers.peek() {
            until = until.min(*timer);
        }
        if self.stage != Stage::Connecting {
            until = until.min(self.timeline.end_ns(self.interval));
            if let Some(deadline) = self.timeline.deadline_ns.filter(|&d| d > now) {
                until = until.min(deadline);
            }
            if !self.idle.is_empty() && self.may_begin(now) {
                until = until.min(self.ask_ns.max(now));
            }
            if self.idle.len() > self.starved && self.may_begin(now) {
                // In a closed loop only transactions that needed no answer leave a client idle here.
                let next_ns = self.schedule.next_ns().unwrap_or(0);
                until = until.min(self.timeline.start_ns.saturating_add(next_ns));
            }
        }
        until
    }

    /// Transactions may still be started.
    fn may_begin(&self, now: u64) -> bool {
        self.stage != Stage::Stopping && self.timeline.deadline_ns.is_none_or(|end| now < end)
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
                Phase::RampingUp => self.stand_by(slot, now),
                Phase::BackingOff => {
                    client.phase = Phase::Vacant;
                    self.waiting.push_back(slot);
                }
                _ => {}
            }
        }
    }

    /// The loop cannot go on: everything in flight has failed.
    fn end_all(&mut self, error: &DriveError) {
        let now = now_ns();
        self.stage = Stage::Stopping;
        for index in 0..self.clients.len() {
            if self.clients[index].transaction.active {
                let slot = u32::try_from(index).unwrap_or(u32::MAX);
                let failure = Failure::new(ErrorClass::Internal, error.to_string());
                self.cut_off(slot, now, &failure);
            }
        }
    }

    fn check_stop(&mut self, now: u64) {
        let open = self.may_begin(now);
        if self.stage != Stage::Stopping && (self.all_gone || self.control.stop_asked()) {
            self.stage = Stage::Stopping;
            let deadline_ns = self.timeline.deadline_ns.unwrap_or(now);
            self.timeline.deadline_ns = Some(deadline_ns.min(now));
            self.drain_until_ns = self.drain_until_ns.min(now + self.config.grace_ns);
            self.close_window(now);
        } else if !open && self.drain_until_ns == u64::MAX {
            self.drain_until_ns = now.saturating_add(self.config.drain_ns);
            self.asleep_until_ns = now + ASLEEP_DRAIN_NS;
            self.close_window(now);
        }
    }

    /// Nothing begins any more.
    fn close_window(&mut self, now: u64) {
        let end_ns = self.timeline.deadline_ns.unwrap_or(now).min(now);
        let waits = self.active > 0 || self.clients.iter().any(|c| c.absence.is_some());
        self.control.stall.close(end_ns, waits);
    }

    fn is_finished(&self, now: u64) -> bool {
        if self.active > 0 {
            return false;
        }
        let is_over = |client: &Client<P>| client.phase == Phase::Gone || !client.has_left();
        match self.timeline.deadline_ns {
            Some(deadline) => now >= deadline || (self.ended && self.clients.iter().all(is_over)),
            None => self.clients.iter().all(is_over),
        }
    }

    fn finish(mut self) {
        let end_ns = now_ns();
        if self.stage != Stage::Connecting {
            self.roll(end_ns);
            self.hand_over(end_ns);
        }
        self.log = None; // its file ends
        for slot in 0..self.clients.len() {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            self.say_goodbye(slot);
            self.end_parked(slot);
        }
        self.outages.extend(self.outage.take());
        let ends = (self.clients.iter())
            .filter_map(|c| c.end.clone().or_else(|| c.absence.clone()))
            .collect();
        let _ = self.reports.send(Report::Finished(
            self.number,
            Finish {
                io: I::NAME.into(),
                cpu: CpuTime::of_this_thread().since(self.cpu_at_measure),
                iterations: self.iterations,
                outages: self.outages,
                ends,
                absences: self.clients.into_iter().filter_map(|c| c.absence).collect(),
                pauses: self.pauses,
                all_gone: self.all_gone,
                error: self.fatal.map(|e| e.to_string()),
                broken: false,
            },
        ));
    }
}
