//! How the supervisor and its workers meet: the common start, and the request to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::error::DriveError;
use crate::stall::StallWatch;
use crate::timeline::Timeline;

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
    go: Option<Go>,
}

/// Shared by the supervisor, its workers and the owner of the drive.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    /// Whether anything comes of the work.
    pub(crate) stall: StallWatch,
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

    /// A worker broke: if the common start is still to come, nobody waits for it.
    pub(crate) fn arrive_broken(&self, error: DriveError) {
        let mut barrier = self.lock();
        if barrier.go.is_none() {
            barrier.arrived += 1;
            barrier.failure.get_or_insert(error);
            self.changed.notify_all();
        }
    }

    /// Wait for all workers, then let them begin at the time that `timeline` sets; the first failure otherwise.
    ///
    /// Returns `None` when the run was stopped while it was connecting.
    pub(crate) fn start_together(
        &self,
        workers: usize,
        timeline: impl FnOnce() -> Timeline,
    ) -> Result<Option<Timeline>, DriveError> {
        let mut barrier = self.lock();
        while barrier.arrived < workers {
            barrier = self
                .changed
                .wait(barrier)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let failure = barrier.failure.take();
        let start = (failure.is_none() && !self.stop_asked()).then(timeline);
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
            control.start_together(3, timeline).unwrap(),
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
        let error = control.start_together(3, timeline).unwrap_err();
        assert!(error.to_string().starts_with("first"), "{error}");
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn a_stop_before_the_start_lets_nobody_begin() {
        let control = Arc::new(Control::default());
        let other = Arc::clone(&control);
        let waiting = thread::spawn(move || matches!(other.arrive(Ok(())), Go::GiveUp));
        control.stop();
        assert_eq!(control.start_together(1, timeline).unwrap(), None);
        assert!(waiting.join().unwrap());
        // A worker that breaks later has nobody to keep waiting.
        control.arrive_broken(trouble("late"));
    }
}
