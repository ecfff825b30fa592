//! What one client of a library does.

use std::time::Duration;

use crate::client::library::{Call, LibraryClient, LibraryError};
use crate::protocol::Failure;
use crate::workload::{End, LoadCount, Readiness};

/// What drive.json calls the way to the database.
pub(crate) const IO: &str = "driver";

/// One client's behaviour: as [`crate::workload::Program`], with one call in the place of messages.
pub(crate) trait BlockingProgram: Send {
    /// Asked before a transaction is scheduled, as often as it takes.
    fn ready(&mut self, now_ns: u64) -> Readiness;

    /// What was not ready may be now, or so much time has passed.
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread of its own that blocks in calls has no event loop"
    )]
    fn wait(&mut self, most: Duration) {
        std::thread::sleep(most);
    }

    /// Choose the next transaction and return the number of its kind.
    fn begin(&mut self) -> usize;

    /// The transaction just begun belongs to the figures, as long as it begins after the warm-up.
    fn is_measured(&self) -> bool {
        true
    }

    /// The transaction itself: what passes until this returns is its time.
    fn call(&mut self, client: &mut dyn LibraryClient, call: &Call) -> Result<(), LibraryError>;

    /// Outside the clock: whether the answer is as it should be.
    fn answered(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// The transaction has ended; told once for each [`BlockingProgram::begin`].
    fn ended(&mut self, end: &End<'_>) -> LoadCount;

    /// The client takes no part any more.
    fn gone(&mut self) {}
}
