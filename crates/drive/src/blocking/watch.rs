//! The thread that watches over the clients: intervals, time limits, the request to stop, and the end.

use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use super::floor::Floor;
use crate::client::library::Library;
use crate::clock::now_ns;
use crate::record::booking::Unstarted;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

pub(super) struct Watch {
    floor: Arc<Floor>,
    library: Arc<dyn Library>,
    threads: Vec<JoinHandle<()>>,
    /// When calls in flight are ended, after a request to stop.
    cut_off_ns: u64,
}

impl Watch {
    pub(super) fn new(
        floor: Arc<Floor>,
        library: Arc<dyn Library>,
        threads: Vec<JoinHandle<()>>,
    ) -> Self {
        Self {
            floor,
            library,
            threads,
            cut_off_ns: u64::MAX,
        }
    }

    pub(super) fn run(mut self) {
        while !self.floor.await_threads(LOOK) {
            let now = now_ns();
            self.floor.roll(now);
            self.close(now);
            self.cut_off(now);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.close(now_ns());
        self.drop_unstarted();
        self.finish_load();
        self.floor.finish(now_ns());
    }

    /// Note that nothing begins any more.
    fn close(&mut self, now: u64) {
        let stops = self.floor.control.stop_asked();
        if stops && self.cut_off_ns == u64::MAX {
            self.cut_off_ns = now + self.floor.config.grace_ns;
        }
        if stops || now >= self.floor.closed_ns() {
            self.floor.close(now);
        }
    }

    /// End calls that take too long.
    fn cut_off(&self, now: u64) {
        let before_ns = if now >= self.cut_off_ns {
            u64::MAX
        } else {
            now.saturating_sub(self.floor.config.timeout_ns)
        };
        for slot in &self.floor.slots {
            slot.interrupt(before_ns);
        }
    }

    /// Starts that were due and never came to pass are counted, not forgotten.
    fn drop_unstarted(&self) {
        let floor = &self.floor;
        let fixed = floor.config.transactions_per_client.is_some();
        let closed_ns = floor.closed_ns();
        if fixed || floor.ended.load(Ordering::Relaxed) || closed_ns > now_ns() {
            return;
        }
        let elapsed_ns = closed_ns.saturating_sub(1 + floor.timeline.start_ns);
        let mut schedule = floor
            .schedule
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while let Some(offset_ns) = schedule.take(elapsed_ns) {
            floor.book_unstarted(0, floor.timeline.start_ns + offset_ns, Unstarted::Dropped);
        }
    }

    /// Have the library bring a whole load to its resting place: that is part of its time.
    fn finish_load(&self) {
        let floor = &self.floor;
        let Some(load) = floor.config.work.load() else {
            return;
        };
        if floor.control.stop_asked() || !floor.is_sound() || load.failure().is_some() {
            return;
        }
        let begun_ns = now_ns();
        let finished = self.library.finish();
        load.finished(
            now_ns() - begun_ns,
            finished.err().map(|error| error.message),
        );
    }
}
