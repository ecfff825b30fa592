//! Ends scripts that do not come back when they have to: threads that do not get ready, and runs that are to end.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use loadstone_lua::Script;

/// How long a script may compute when the run is to end.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a thread looks whether `init()` is over.
const LOOK: Duration = Duration::from_millis(100);

/// How far the run is, for threads that wait for that.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Course {
    #[default]
    Preparing,
    Started,
    Over,
}

#[derive(Debug, Default)]
pub(super) struct Watch {
    course: Mutex<Course>,
    changed: Condvar,
}

impl Watch {
    /// After this time, and until the run is over, interrupt what does not come back.
    pub(super) fn end_within(self: &Arc<Self>, script: &Arc<Script>, time: Duration) {
        let (watch, script) = (Arc::clone(self), Arc::clone(script));
        spawn(move || {
            if !watch.is_at_within(Course::Over, time) {
                watch.interrupt(&script);
            }
        });
    }

    /// From the end of `init()` on clients have this time to get ready: give up then, and interrupt what does not
    /// come back.
    pub(super) fn start_within(
        self: &Arc<Self>,
        script: &Arc<Script>,
        time: Duration,
        give_up: impl FnOnce() + Send + 'static,
    ) {
        let (watch, script) = (Arc::clone(self), Arc::clone(script));
        spawn(move || {
            while !script.is_initialized() {
                if watch.is_at_within(Course::Started, LOOK) {
                    return;
                }
            }
            if !watch.is_at_within(Course::Started, time) {
                give_up();
                watch.interrupt(&script);
            }
        });
    }

    /// The clients are ready, or it is known that they will not be.
    pub(super) fn started(&self) {
        self.go_to(Course::Started);
    }

    pub(super) fn over(&self) {
        self.go_to(Course::Over);
    }

    fn go_to(&self, course: Course) {
        *self.course.lock().unwrap_or_else(PoisonError::into_inner) = course;
        self.changed.notify_all();
    }

    fn interrupt(&self, script: &Script) {
        let mut before = script.turns();
        while !self.is_at_within(Course::Over, PATIENCE) {
            script.interrupt(&before);
            before = script.turns();
        }
    }

    fn is_at_within(&self, wanted: Course, time: Duration) -> bool {
        let course = self.course.lock().unwrap_or_else(PoisonError::into_inner);
        let (course, _) = (self.changed)
            .wait_timeout_while(course, time, |course| *course < wanted)
            .unwrap_or_else(PoisonError::into_inner);
        *course >= wanted
    }
}

/// Without a thread for it, a script goes on until it comes back by itself.
fn spawn(body: impl FnOnce() + Send + 'static) {
    let _ = thread::Builder::new()
        .name("lua-watch".to_owned())
        .spawn(body);
}
