//! How a client reaches a database through somebody's library: by one blocking call a transaction.
//!
//! An implementation connects, sends, asks and can be interrupted. Pace, queue, steps, deadlines, digests and
//! records are the driver's, as for clients on the wire.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatchReader;

use crate::clock::now_ns;
use crate::data::TableBatch;

/// A query's answer. The driver reads it to its end inside the clock, and digests it outside.
pub type ArrowStream = Box<dyn RecordBatchReader + Send>;

/// Rows that go into the database together, in one transaction.
#[derive(Debug, Clone, Default)]
pub struct RowBatch {
    /// Counted from 0 over the load: names the batch in the engine's ledger.
    pub number: u64,
    /// Rows of `tables` together.
    pub rows: u64,
    /// New rows of the table of devices, which come first.
    pub tags: Vec<TableBatch>,
    /// Rows of the other tables.
    pub tables: Vec<TableBatch>,
}

/// What a library has said to a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Rows of `tables` that are committed; fewer or more than were given is an error.
    pub rows: u64,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryError {
    /// SQLSTATE, or the library's own word for the kind of error; it is counted under it.
    pub state: String,
    /// What the library says.
    pub message: String,
    /// The same transaction may succeed when it is tried again.
    pub is_retriable: bool,
    /// It is no trouble of the database, but of this process or its host: the drive ends.
    pub ends_drive: bool,
}

impl LibraryError {
    /// Trouble of the database.
    #[must_use]
    pub fn new(state: &str, message: &str) -> Self {
        Self {
            state: state.to_owned(),
            message: message.to_owned(),
            is_retriable: false,
            ends_drive: false,
        }
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LibraryError {}

/// The call that a client is in: the driver measures it, and interrupts it when it takes too long.
#[derive(Clone, Default)]
pub struct Call {
    times: Arc<CallTimes>,
    mark: Option<Arc<dyn Fn(u64) + Send + Sync>>,
}

/// Zero where there is none.
#[derive(Debug, Default)]
struct CallTimes {
    entered_ns: AtomicU64,
    left_ns: AtomicU64,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

impl Call {
    /// The same call, whose rows are marked.
    pub(crate) fn marked(&self, mark: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self {
            times: Arc::clone(&self.times),
            mark: Some(Arc::new(mark)),
        }
    }

    /// The library is entered now. The driver has said so when the method was called; an implementation that had to
    /// wait for something of ours first, as a lock, says it again: that wait is lag of the client, and no time of the
    /// database.
    pub fn enter(&self) {
        self.times.entered_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// The library has done all. The driver says so when the method has returned, and has read the answer; an
    /// implementation that continues with something of ours says it before.
    pub fn leave(&self) {
        self.times.left_ns.store(now_ns(), Ordering::Relaxed);
    }

    /// So many rows of a long transaction are in, and not committed.
    pub fn mark(&self, rows: u64) {
        if let Some(mark) = &self.mark {
            mark(rows);
        }
    }

    /// The transaction is a long one, whose rows are to be marked as they go in.
    #[must_use]
    pub fn has_marks(&self) -> bool {
        self.mark.is_some()
    }

    /// The driver begins it.
    pub(crate) fn begin(&self) {
        self.times.left_ns.store(0, Ordering::Relaxed);
        self.enter();
    }

    /// The driver ends it; returns when the library was entered and left, nanoseconds of the clock.
    pub(crate) fn end(&self) -> (u64, u64) {
        let left_ns = self.times.left_ns.load(Ordering::Relaxed);
        let ended_ns = if left_ns == 0 { now_ns() } else { left_ns };
        (self.times.entered_ns.swap(0, Ordering::Relaxed), ended_ns)
    }

    /// Since when the library is at work; none when it is not.
    pub(crate) fn entered_ns(&self) -> Option<u64> {
        let is_over = self.times.left_ns.load(Ordering::Relaxed) > 0;
        let entered_ns = self.times.entered_ns.load(Ordering::Relaxed);
        (entered_ns > 0 && !is_over).then_some(entered_ns)
    }
}

/// A database, as clients connect to it.
pub trait Library: Send + Sync {
    /// Open the connection of client `number`, counted from 0, before the drive's clock starts.
    ///
    /// # Errors
    /// [`LibraryError`]: no client begins.
    fn connect(&self, number: usize) -> Result<Box<dyn LibraryClient>, LibraryError>;

    /// Bring what is loaded to its resting place: the last part of a load, inside its clock.
    ///
    /// # Errors
    /// [`LibraryError`]: the load has failed.
    fn finish(&self) -> Result<(), LibraryError> {
        Ok(())
    }
}

/// One client's connection. It is called from one thread; dropping it closes it.
pub trait LibraryClient: Send {
    /// Put rows into the database in one transaction.
    ///
    /// # Errors
    /// [`LibraryError`]: nothing of the transaction is stored.
    fn send(&mut self, rows: &RowBatch, call: &Call) -> Result<Sent, LibraryError>;

    /// Run a query.
    ///
    /// # Errors
    /// [`LibraryError`]: the query is counted as failed.
    fn query(&mut self, sql: &str, call: &Call) -> Result<ArrowStream, LibraryError>;

    /// What ends this client's call early. (A handle of its own: the client itself is borrowed by the call.)
    fn interrupter(&self) -> Arc<dyn Interrupter>;

    /// How rows travel, as drive.json's `mode` names it.
    fn mode(&self) -> String {
        "arrow".to_owned()
    }
}

/// Ends a call of a client from another thread: for deadlines, the grace time, a stop.
pub trait Interrupter: Send + Sync {
    /// Make the call that the client is in fail; without one, do nothing.
    fn interrupt(&self);
}
