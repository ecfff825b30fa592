//! What the clients' threads and their watch share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::shard::Shard;
use crate::client::library::{Call, Interrupter};
use crate::clock::now_ns;
use crate::collector::{Absence, Finish};
use crate::config::Config;
use crate::control::Control;
use crate::pace::Schedule;
use crate::protocol::Failure;
use crate::record::booking::{Begun, Times, Unstarted};
use crate::record::{Latency, count_error};
use crate::timeline::Timeline;
use crate::workload::LoadCount;
use crate::workload::blocking::IO;

/// A client's call, as the watch sees it.
pub(super) struct Slot {
    pub(super) call: Call,
    interrupter: Arc<dyn Interrupter>,
    /// Held while it is interrupted: no other call of the client begins meanwhile.
    interrupting: Mutex<()>,
}

impl Slot {
    pub(super) fn new(interrupter: Arc<dyn Interrupter>) -> Self {
        Self {
            call: Call::default(),
            interrupter,
            interrupting: Mutex::new(()),
        }
    }

    /// End the call that was entered before a time.
    pub(super) fn interrupt(&self, before_ns: u64) {
        let _guard = self.lock();
        if self
            .call
            .entered_ns()
            .is_some_and(|entered_ns| entered_ns < before_ns)
        {
            self.interrupter.interrupt();
        }
    }

    /// The client's call is over; returns when the library was entered and left.
    pub(super) fn end(&self) -> (u64, u64) {
        let times = self.call.end();
        drop(self.lock());
        times
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.interrupting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Floor {
    pub(super) config: Arc<Config>,
    pub(super) control: Arc<Control>,
    pub(super) timeline: Timeline,
    pub(super) schedule: Mutex<Schedule>,
    shards: Vec<Mutex<Shard>>,
    pub(super) slots: Vec<Slot>,
    /// No transaction begins from here on.
    closed_ns: AtomicU64,
    /// Some client's work has come to its end.
    pub(super) ended: AtomicBool,
    active: AtomicU64,
    /// When there was nothing more to do, the last time.
    rest_ns: AtomicU64,
    gone: AtomicUsize,
    absences: Mutex<Vec<Absence>>,
    /// Why the drive cannot go on, and whether that is a bug of ours.
    trouble: Mutex<Option<(String, bool)>>,
    running: Mutex<usize>,
    changed: Condvar,
}

impl Floor {
    pub(super) fn new(
        config: Arc<Config>,
        control: Arc<Control>,
        timeline: Timeline,
        schedule: Schedule,
        shards: Vec<Mutex<Shard>>,
        slots: Vec<Slot>,
    ) -> Self {
        Self {
            closed_ns: AtomicU64::new(timeline.deadline_ns.unwrap_or(u64::MAX)),
            running: Mutex::new(slots.len()),
            config,
            control,
            timeline,
            schedule: Mutex::new(schedule),
            shards,
            slots,
            ended: AtomicBool::new(false),
            active: AtomicU64::new(0),
            rest_ns: AtomicU64::new(0),
            gone: AtomicUsize::new(0),
            absences: Mutex::default(),
            trouble: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// From when on no transaction begins.
    pub(super) fn closed_ns(&self) -> u64 {
        self.closed_ns.load(Ordering::Relaxed)
    }

    /// Transactions may still begin.
    pub(super) fn is_open(&self, now: u64) -> bool {
        !self.control.stop_asked() && now < self.closed_ns()
    }

    /// Nothing begins any more.
    pub(super) fn close(&self, now: u64) {
        self.closed_ns.fetch_min(now, Ordering::Relaxed);
        let waits = self.active.load(Ordering::Relaxed) > 0;
        self.control.stall.close(self.closed_ns(), waits);
    }

    fn shard(&self, place: usize) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[place % self.shards.len()];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// End the intervals that are over.
    pub(super) fn roll(&self, now: u64) {
        for place in 0..self.shards.len() {
            self.shard(place).roll(now);
        }
    }

    pub(super) fn begin(&self, place: usize, begun: Begun) {
        let mut shard = self.shard(place);
        shard.roll(now_ns());
        shard.begin(place, begun);
        if self.active.fetch_add(1, Ordering::Relaxed) == 0 {
            let rest_ns = self.rest_ns.load(Ordering::Relaxed);
            self.control.stall.wake(rest_ns, begun.intended_ns);
        }
    }

    /// A start that has come due and never happens.
    pub(super) fn book_unstarted(&self, place: usize, intended_ns: u64, what: Unstarted) {
        let mut shard = self.shard(place);
        shard.roll(now_ns());
        let (measured, measuring) = (intended_ns >= self.timeline.measure_ns, shard.measuring);
        shard.record.book_unstarted(what, measured, measuring);
    }

    pub(super) fn book_done(&self, place: usize, begun: &Begun, times: Times, gain: LoadCount) {
        self.control
            .stall
            .done(times.ended_ns, self.timeline.measure_ns);
        let mut shard = self.shard(place);
        shard.roll(now_ns());
        let rules = self.config.rules();
        let measuring = shard.measuring;
        let record = &mut *shard.record;
        record.rows += gain.rows;
        record.metrics += gain.metrics;
        if record.book_done(begun, times, measuring, rules) {
            let service_ns = times.ended_ns.saturating_sub(times.started_ns);
            let statement: &mut (Latency, u64) = &mut record.statements[begun.script];
            statement.0.record(service_ns);
        }
        shard.end(place);
        drop(shard);
        self.rest(times.ended_ns);
    }

    pub(super) fn book_failed(
        &self,
        place: usize,
        begun: &Begun,
        ended_ns: u64,
        failure: &Failure,
    ) {
        let mut shard = self.shard(place);
        shard.roll(now_ns());
        let measuring = shard.measuring;
        let record = &mut *shard.record;
        record.book_failed(begun, measuring);
        record.statements[begun.script].1 += 1;
        count_error(&mut record.errors, failure.class, ended_ns, || {
            failure.message.clone()
        });
        shard.end(place);
        drop(shard);
        self.rest(ended_ns);
    }

    /// A transaction is tried again.
    pub(super) fn book_retry(&self, place: usize, begun: &Begun, is_first: bool) {
        if begun.measured {
            let mut shard = self.shard(place);
            shard.record.retries += 1;
            shard.record.retried += u64::from(is_first);
        }
    }

    fn rest(&self, now: u64) {
        if self.active.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.rest_ns.store(now, Ordering::Relaxed);
        }
    }

    /// A client gives up after an error.
    pub(super) fn leave(&self, place: usize, now: u64, failure: &Failure) {
        self.gone.fetch_add(1, Ordering::Relaxed);
        self.shard(place).lost();
        let mut absences = self.absences.lock().unwrap_or_else(PoisonError::into_inner);
        absences.push(Absence::new(now, failure));
    }

    /// The drive cannot go on.
    pub(super) fn break_off(&self, why: String, broken: bool) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert((why, broken));
        drop(trouble);
        self.control.stop();
    }

    /// It goes on.
    pub(super) fn is_sound(&self) -> bool {
        self.trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
    }

    /// A client's thread is about to end.
    pub(super) fn thread_ends(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.changed.notify_all();
    }

    /// Wait for the end of all clients' threads; false when there are some after so long.
    pub(super) fn await_threads(&self, most: Duration) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(running, most, |running| *running > 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 == 0
    }

    /// The last records and words of all.
    pub(super) fn finish(&self, now: u64) {
        let mut last = self.last_word();
        for place in 0..self.shards.len() {
            let next = Finish {
                io: IO.into(),
                all_gone: last.all_gone,
                ..Finish::default()
            };
            self.shard(place)
                .finish(now, std::mem::replace(&mut last, next));
        }
    }

    /// The last words of a drive whose records are not whole.
    pub(super) fn report_all(&self) {
        let mut last = self.last_word();
        for place in 0..self.shards.len() {
            self.shard(place).report(std::mem::take(&mut last));
        }
    }

    fn all_gone(&self) -> bool {
        let gone = self.gone.load(Ordering::Relaxed);
        gone > 0 && gone == self.slots.len()
    }

    fn last_word(&self) -> Finish {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let (error, broken) = trouble
            .take()
            .map_or((None, false), |(why, broken)| (Some(why), broken));
        let mut absences = self.absences.lock().unwrap_or_else(PoisonError::into_inner);
        Finish {
            io: IO.into(),
            absences: std::mem::take(&mut *absences),
            all_gone: self.all_gone(),
            error,
            broken,
            ..Finish::default()
        }
    }
}
