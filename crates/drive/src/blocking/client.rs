//! One client's thread: what is next, when it is due, the call, and the booking.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::BROKEN;
use super::floor::Floor;
use crate::client::library::{LibraryClient, LibraryError};
use crate::clock::{self, now_ns};
use crate::protocol::Failure;
use crate::record::ErrorClass;
use crate::record::booking::{Begun, Times, Unstarted};
use crate::spec::OnError;
use crate::workload::blocking::BlockingProgram;
use crate::workload::{End, Readiness};

/// A request to stop is seen after so long at the latest.
const LOOK_NS: u64 = 50_000_000;

pub(super) struct BlockingClient {
    place: usize,
    floor: Arc<Floor>,
    library: Box<dyn LibraryClient>,
    program: Box<dyn BlockingProgram>,
    /// Transactions that it may still start.
    left: Option<u64>,
}

impl BlockingClient {
    pub(super) fn new(
        place: usize,
        floor: Arc<Floor>,
        library: Box<dyn LibraryClient>,
        program: Box<dyn BlockingProgram>,
        left: Option<u64>,
    ) -> Self {
        Self {
            place,
            floor,
            library,
            program,
            left,
        }
    }

    /// Work to the end, and close the connection.
    pub(super) fn run(mut self) {
        clock::wait_exactly();
        let floor = Arc::clone(&self.floor);
        let ran = catch_unwind(AssertUnwindSafe(move || {
            if self.sleep_until(self.floor.timeline.start_ns) {
                while self.turn() {}
            }
            drop(self);
        }));
        if ran.is_err() {
            floor.break_off(BROKEN.to_owned(), true);
        }
        floor.thread_ends();
    }

    /// One transaction; false when there is no other.
    fn turn(&mut self) -> bool {
        if self.left == Some(0) || !self.await_work() {
            return false;
        }
        self.await_start()
            .is_some_and(|intended_ns| self.transact(intended_ns))
    }

    /// Wait until there is something to do; false when there is nothing any more.
    fn await_work(&mut self) -> bool {
        loop {
            let now = now_ns();
            if !self.floor.is_open(now) {
                return false;
            }
            match self.program.ready(now) {
                Readiness::Ready => return true,
                Readiness::NotYet => self.program.wait(Duration::from_nanos(LOOK_NS)),
                Readiness::At { ns } => {
                    let until_ns = ns.min(self.floor.closed_ns());
                    self.sleep_until(until_ns);
                }
                Readiness::Ended => {
                    self.floor.ended.store(true, Ordering::Relaxed);
                    return false;
                }
            }
        }
    }

    /// Wait until the next transaction is due; its intended start, none when none is any more.
    fn await_start(&mut self) -> Option<u64> {
        if !self.floor.config.under_a_rate {
            return Some(now_ns());
        }
        loop {
            let intended_ns = self.next_start()?;
            self.sleep_until(intended_ns);
            let now = now_ns();
            if !self.floor.is_open(now) {
                if intended_ns < self.floor.closed_ns().min(now) {
                    self.unstarted(intended_ns, Unstarted::Dropped);
                }
                return None;
            }
            let limit_ns = self.floor.config.latency_limit_ns.unwrap_or(u64::MAX);
            if now.saturating_sub(intended_ns) <= limit_ns {
                return Some(intended_ns);
            }
            self.unstarted(intended_ns, Unstarted::Skipped);
            if let Some(left) = &mut self.left {
                *left -= 1;
            }
            if self.left == Some(0) {
                return None;
            }
        }
    }

    /// The next start of the schedule is this client's; none behind the deadline.
    fn next_start(&self) -> Option<u64> {
        let mut schedule = self
            .floor
            .schedule
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let start_ns = self.floor.timeline.start_ns;
        let intended_ns = start_ns.saturating_add(schedule.next_ns()?);
        if intended_ns >= self.floor.closed_ns() {
            return None;
        }
        schedule
            .take(u64::MAX)
            .map(|offset_ns| start_ns + offset_ns)
    }

    fn unstarted(&self, intended_ns: u64, what: Unstarted) {
        // A drive of so many transactions each has none that its end could come before.
        let fixed = self.floor.config.transactions_per_client.is_some();
        if what == Unstarted::Skipped || !fixed {
            self.floor.book_unstarted(self.place, intended_ns, what);
        }
    }

    /// Carry out a transaction; false when the client takes no part any more.
    fn transact(&mut self, intended_ns: u64) -> bool {
        let script = self.program.begin();
        let burn_in = !self.program.is_measured();
        let begun = Begun {
            script,
            intended_ns,
            measured: intended_ns >= self.floor.timeline.measure_ns && !burn_in,
            burn_in,
        };
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        self.floor.begin(self.place, begun);
        let (times, outcome) = self.try_all(&begun);
        match outcome {
            Ok(()) => {
                let gain = self.program.ended(&End::Done {
                    sent_ns: times.started_ns,
                    acked_ns: times.ended_ns,
                });
                self.floor.book_done(self.place, &begun, times, gain);
                true
            }
            Err(failure) => self.fail(&begun, times, &failure),
        }
    }

    /// Try as often as is allowed where trying again may mend it.
    fn try_all(&mut self, begun: &Begun) -> (Times, Result<(), Failure>) {
        let mut tries = 1;
        let mut started_ns = None;
        loop {
            let (times, outcome) = self.try_once();
            let times = Times {
                started_ns: *started_ns.get_or_insert(times.started_ns),
                ..times
            };
            let again = outcome.as_ref().is_err_and(|failure| failure.is_retriable)
                && tries < self.floor.config.tries_max
                && self.floor.is_open(times.ended_ns);
            if !again {
                return (times, outcome);
            }
            self.floor.book_retry(self.place, begun, tries == 1);
            tries += 1;
        }
    }

    fn try_once(&mut self) -> (Times, Result<(), Failure>) {
        let slot = &self.floor.slots[self.place];
        slot.call.begin();
        let called = self.program.call(&mut *self.library, &slot.call);
        let (started_ns, ended_ns) = slot.end();
        let times = Times {
            started_ns,
            ended_ns,
        };
        let outcome = match called {
            Ok(()) => self.program.answered(),
            Err(error) => Err(self.failure(&error, times)),
        };
        (times, outcome)
    }

    fn failure(&self, error: &LibraryError, times: Times) -> Failure {
        if error.ends_drive {
            self.floor.break_off(error.message.clone(), false);
            return Failure::new(ErrorClass::Internal, error.message.clone());
        }
        let timeout_ns = self.floor.config.timeout_ns;
        if times.ended_ns.saturating_sub(times.started_ns) >= timeout_ns {
            let limit_s = Duration::from_nanos(timeout_ns).as_secs_f64();
            let words = format!("no answer within {limit_s} s");
            return Failure::new(ErrorClass::Timeout, words);
        }
        Failure {
            is_retriable: error.is_retriable,
            ..Failure::new(ErrorClass::of_library(&error.state), error.message.clone())
        }
    }

    fn fail(&mut self, begun: &Begun, times: Times, failure: &Failure) -> bool {
        self.program.ended(&End::Failed {
            failure,
            in_doubt: false,
        });
        self.floor
            .book_failed(self.place, begun, times.ended_ns, failure);
        let aborts = self.floor.config.on_error == OnError::AbortClient;
        if aborts && !failure.is_retriable {
            self.program.gone();
            self.floor.leave(self.place, times.ended_ns, failure);
            return false;
        }
        true
    }

    /// Sleep; false when the drive is to stop before.
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread of its own that blocks in calls has no event loop"
    )]
    fn sleep_until(&self, until_ns: u64) -> bool {
        loop {
            let left_ns = until_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                return true;
            }
            if self.floor.control.stop_asked() {
                return false;
            }
            thread::sleep(Duration::from_nanos(left_ns.min(LOOK_NS)));
        }
    }
}
