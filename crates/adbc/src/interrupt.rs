//! Ending a call from another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

use adbc_core::CancelHandle;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    Interrupted,
}

/// Ends the call that a connection is in. A library forgets a cancellation that comes between two steps of a call, so
/// it is remembered here until the call is over.
pub struct Interrupt {
    cancel: Box<dyn CancelHandle>,
    state: Mutex<State>,
}

impl Interrupt {
    pub(crate) fn new(cancel: Box<dyn CancelHandle>) -> Self {
        Self {
            cancel,
            state: Mutex::new(State::Idle),
        }
    }

    /// Make the call fail that the connection is in; without one, do nothing. A call that is in the library's hands
    /// just then may miss it: do it again until the call has ended.
    pub fn interrupt(&self) {
        // Held while the library is told: it must not be the next call that is cancelled.
        let mut state = self.state();
        if *state != State::Idle {
            *state = State::Interrupted;
            // What cannot be cancelled ends by itself.
            let _ = self.cancel.try_cancel();
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    use adbc_core::error::Result;

    use super::*;

    struct Counting(Arc<AtomicUsize>);

    impl CancelHandle for Counting {
        fn try_cancel(&self) -> Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn only_a_call_is_interrupted_and_the_next_one_is_not() {
        let told = Arc::new(AtomicUsize::new(0));
        let interrupt = Interrupt::new(Box::new(Counting(Arc::clone(&told))));
        interrupt.interrupt();
        assert_eq!(told.load(Ordering::Relaxed), 0);
        let running = interrupt.begin();
        assert!(!interrupt.asked());
        interrupt.interrupt();
        interrupt.interrupt();
        assert_eq!((told.load(Ordering::Relaxed), interrupt.asked()), (2, true));
        drop(running);
        let _next = interrupt.begin();
        assert!(!interrupt.asked());
    }
}
