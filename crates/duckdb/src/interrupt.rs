//! Ending a call from another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

use loadstone_drive::library::Interrupter;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Interrupted,
    Closed,
}

/// Ends the call that a connection is in. DuckDB forgets an interruption that comes between two statements of a call,
/// so it is remembered here until the call is over.
pub struct Interrupt {
    tell: Box<dyn Fn() + Send + Sync>,
    state: Mutex<State>,
}

impl Interrupt {
    pub(crate) fn new(tell: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            tell: Box::new(tell),
            state: Mutex::new(State::Idle),
        }
    }

    /// Make the call fail that the connection is in; without one, do nothing. A statement that begins just then may
    /// miss it: do it again until the call has ended.
    pub fn interrupt(&self) {
        // Held while the library is told: it must not be the next call that is ended, nor a closed connection's.
        let mut state = self.state();
        if matches!(*state, State::Running | State::Interrupted) {
            *state = State::Interrupted;
            (self.tell)();
        }
    }

    /// Say that a call begins; it ends when the guard is dropped.
    pub(crate) fn begin(&self) -> Running<'_> {
        *self.state() = State::Running;
        Running(self)
    }

    /// Whether the call is to end.
    pub(crate) fn asked(&self) -> bool {
        *self.state() == State::Interrupted
    }

    /// The library is not told any more.
    pub(crate) fn close(&self) {
        *self.state() = State::Closed;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interrupter for Interrupt {
    fn interrupt(&self) {
        Self::interrupt(self);
    }
}

pub(crate) struct Running<'a>(&'a Interrupt);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.state() = State::Idle;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn only_a_call_is_interrupted_and_the_next_one_is_not() {
        let told = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&told);
        let interrupt = Interrupt::new(move || {
            counting.fetch_add(1, Ordering::Relaxed);
        });
        interrupt.interrupt();
        assert_eq!(told.load(Ordering::Relaxed), 0);
        let running = interrupt.begin();
        assert!(!interrupt.asked());
        interrupt.interrupt();
        interrupt.interrupt();
        assert_eq!((told.load(Ordering::Relaxed), interrupt.asked()), (2, true));
        drop(running);
        drop(interrupt.begin());
        assert!(!interrupt.asked());
        interrupt.close();
        interrupt.interrupt();
        assert_eq!(told.load(Ordering::Relaxed), 2);
    }
}
