//! How the supervisor and its workers meet: the common start, and the request to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::now_ns;
use crate::error::DriveError;
use crate::stall::StallWatch;
use crate::timeline::Timeline;

/// How often one who waits for a time looks whether it is still to be waited for.
const LOOK: Duration = Duration::from_millis(20);

/// The supervisor's word after all workers have connected, or not.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Go {
    /// Begin together.
    Start(Timeline),
    /// Somebody could not connect, or the run was stopped.
    GiveUp,
}

#[derive(Debug, Default)]
struct StartBarrier {
    arrived: usize,
    failure: Option<DriveError>,
    /// All have arrived, and the owner's word is awaited.
    ready: bool,
    /// The time at which the owner lets them begin.
    go_at_ns: Option<u64>,
    go: Option<Go>,
}

/// Shared by the supervisor, its workers and the owner of the drive.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    /// Whether anything comes of the work.
    pub(crate) stall: StallWatch,
    /// When the last worker did begin, where the owner sets the time.
    began_ns: AtomicU64,
    barrier: Mutex<StartBarrier>,
    changed: Condvar,
}

impl Control {
    /// Ask all workers to end early.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// A worker has connected its clients, or failed to; returns when all have.
    pub(crate) fn arrive(&self, result: Result<(), DriveError>) -> Go {
        let mut barrier = self.lock();
        barrier.arrived += 1;
        if let Err(error) = result {
            barrier.failure.get_or_insert(error);
            self.stop(); // the others need not go on connecting
        }
        self.changed.notify_all();
        loop {
            if let Some(go) = barrier.go {
                return go;
            }
            barrier = self
                .changed
                .wait(barrier)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// There will be no start, but others may still get ready for it.
    pub(crate) fn fail(&self, error: DriveError) {
        self.lock().failure.get_or_insert(error);
    }

    /// A worker broke: if the common start is still to come, nobody waits for it.
    pub(crate) fn arrive_broken(&self, error: DriveError) {
        let mut barrier = self.lock();
        if barrier.go.is_none() {
            barrier.arrived += 1;
            barrier.failure.get_or_insert(error);
            self.changed.notify_all();
        }
    }

    /// The start is not awaited any longer: workers that are not ready stop.
    pub(crate) fn give_up(&self, error: DriveError) {
        self.fail(error);
        self.stop();
    }

    /// The owner lets the drive begin at this time.
    pub(crate) fn go(&self, at_ns: u64) {
        self.lock().go_at_ns = Some(at_ns);
        self.changed.notify_all();
    }

    /// All workers have arrived: only the owner's word is awaited, or was.
    pub(crate) fn is_ready(&self) -> bool {
        self.lock().ready
    }

    /// When the last worker began; nothing before that, and where the owner sets no time.
    pub(crate) fn began_ns(&self) -> Option<u64> {
        Some(self.began_ns.load(Ordering::Relaxed)).filter(|&ns| ns > 0)
    }

    /// A worker waits for the time that the owner has set.
    pub(crate) fn begin_at(&self, start_ns: u64) {
        let mut now = now_ns();
        while now < start_ns && !self.stop_asked() {
            thread::park_timeout(LOOK.min(Duration::from_nanos(start_ns - now)));
            now = now_ns();
        }
        self.began_ns.fetch_max(now, Ordering::Relaxed);
    }

    /// Wait for all workers, then let them begin at the time that `timeline` sets; the first failure otherwise.
    /// It is told the time that the owner has set, where that is to be awaited.
    ///
    /// Returns `None` when the run was stopped while it was connecting.
    pub(crate) fn start_together(
        &self,
        workers: usize,
        awaits_go: bool,
        timeline: impl FnOnce(Option<u64>) -> Timeline,
    ) -> Result<Option<Timeline>, DriveError> {
        let mut barrier = self.lock();
        while barrier.arrived < workers {
            barrier = self
                .changed
                .wait(barrier)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let failure = barrier.failure.take();
        barrier.ready = failure.is_none();
        while awaits_go && barrier.ready && barrier.go_at_ns.is_none() && !self.stop_asked() {
            // A request to stop wakes nobody.
            let waited = self.changed.wait_timeout(barrier, LOOK);
            barrier = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let go_at_ns = barrier.go_at_ns;
        let start = (failure.is_none() && !self.stop_asked()).then(|| timeline(go_at_ns));
        barrier.go = Some(start.map_or(Go::GiveUp, Go::Start));
        self.changed.notify_all();
        failure.map_or(Ok(start), Err)
    }

    fn lock(&self) -> MutexGuard<'_, StartBarrier> {
        self.barrier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    fn trouble(what: &str) -> DriveError {
        DriveError::System {
            what: what.to_owned(),
            source: std::io::Error::other("no"),
            hint: String::new(),
        }
    }

    fn timeline() -> Timeline {
        Timeline {
            start_ns: 1,
            measure_ns: 1,
            deadline_ns: None,
            interval_ns: 1,
        }
    }

    #[test]
    fn all_begin_when_all_have_arrived() {
        let control = Arc::new(Control::default());
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let control = Arc::clone(&control);
                thread::spawn(move || matches!(control.arrive(Ok(())), Go::Start(_)))
            })
            .collect();
        assert_eq!(
            control.start_together(3, false, |_| timeline()).unwrap(),
            Some(timeline())
        );
        assert!(workers.into_iter().all(|worker| worker.join().unwrap()));
    }

    #[test]
    fn one_failure_stops_all_and_the_first_is_told() {
        let control = Arc::new(Control::default());
        let other = Arc::clone(&control);
        let waiting = thread::spawn(move || matches!(other.arrive(Ok(())), Go::GiveUp));
        control.arrive_broken(trouble("first"));
        control.arrive_broken(trouble("second"));
        let error = control
            .start_together(3, false, |_| timeline())
            .unwrap_err();
        assert!(error.to_string().starts_with("first"), "{error}");
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn the_owner_s_time_is_awaited_and_kept_or_the_stop() {
        let control = Arc::new(Control::default());
        let other = Arc::clone(&control);
        let waiting = thread::spawn(move || match other.arrive(Ok(())) {
            Go::Start(timeline) => {
                other.begin_at(timeline.start_ns);
                now_ns()
            }
            Go::GiveUp => 0,
        });
        let supervisor = Arc::clone(&control);
        let met = thread::spawn(move || {
            let at = |go_at_ns: Option<u64>| Timeline {
                start_ns: go_at_ns.unwrap(),
                ..timeline()
            };
            supervisor.start_together(1, true, at)
        });
        while !control.is_ready() {
            thread::yield_now();
        }
        let at_ns = now_ns() + 50_000_000;
        control.go(at_ns);
        assert_eq!(met.join().unwrap().unwrap().unwrap().start_ns, at_ns);
        assert!(waiting.join().unwrap() >= at_ns);
        assert!(control.began_ns().unwrap() >= at_ns);
        let stopped = Control::default();
        stopped.stop();
        stopped.begin_at(u64::MAX);
        assert_eq!(
            stopped.start_together(0, true, |_| timeline()).unwrap(),
            None
        );
    }

    #[test]
    fn a_stop_before_the_start_lets_nobody_begin() {
        let control = Arc::new(Control::default());
        let other = Arc::clone(&control);
        let waiting = thread::spawn(move || matches!(other.arrive(Ok(())), Go::GiveUp));
        control.stop();
        assert_eq!(
            control.start_together(1, false, |_| timeline()).unwrap(),
            None
        );
        assert!(waiting.join().unwrap());
        // A worker that breaks later has nobody to keep waiting.
        control.arrive_broken(trouble("late"));
    }
}
