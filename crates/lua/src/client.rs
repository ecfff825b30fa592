//! One client: what it asks for, and with what it goes on.

use std::sync::Arc;

use crate::engine;
use crate::random::Stream;
use crate::result::{Bulk, Parameters, ResultRows};
use crate::script::Script;

/// What a client's script wants next. Texts and values are in the client: [`Client::sql`], [`Client::parameters`].
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Its next event: go on with [`Answer::Flag`], false when there is none.
    Next,
    /// Run the text; go on with the result.
    Query,
    /// The same, for an insert that was put together of many rows.
    BulkInsert {
        /// The script is about to make more rows: it may go on before the server has answered.
        has_more: bool,
    },
    /// The same, for a rollback that is in no figure.
    Rollback,
    /// Prepare the text under this number.
    Prepare(u32),
    /// Run what was prepared under this number, with the parameters.
    Execute(u32),
    /// Forget what was prepared.
    Close(u32),
    /// A connection: go on with true, or false where there is one in use.
    Connect,
    /// From here on the one of this number, which may be a new one.
    Switch(u32),
    /// Its end.
    Disconnect,
    /// A new one.
    Reconnect,
    /// Go on after so many seconds.
    Sleep(f64),
    /// Go on with whether `init()` is over.
    AwaitInit,
    /// Go on with whether all other clients have ended.
    AwaitDone,
    /// The event begins again after an error that may be ignored.
    Restart,
    /// No more events, and the one just begun counts for nothing.
    Leave,
    /// What was begun has ended, and there is no more.
    Last,
    /// The client has done all that it will do.
    Ended,
    /// The script has failed.
    Failed(Fault),
    /// The script did not come back, and was interrupted from outside.
    Interrupted,
}

/// With what a client goes on.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// Nothing that matters.
    Nothing,
    /// Yes or no.
    Flag(bool),
    /// No connection could be made: why, and the SQLSTATE of a server that has refused it.
    Refused(&'a str, &'a str),
    /// The statement is done: its rows are in [`Client::result`], or so many rows were changed.
    Done {
        /// Rows that were changed, where the statement has no result.
        affected: u64,
    },
    /// The statement has failed.
    Error {
        /// By the settings the event begins again.
        is_ignorable: bool,
        /// The server's own number, 0 where it has none.
        number: u32,
        /// SQLSTATE.
        state: &'a str,
        /// The server's words.
        message: &'a str,
        /// All that it said, of a statement that could not be prepared.
        report: &'a str,
        /// The connection is a new one: nothing is prepared on it.
        is_reconnected: bool,
    },
}

/// Why a script cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The script's function in which it happened; empty outside of any.
    pub function: String,
    /// What is wrong.
    pub message: String,
    /// Which function called which.
    pub traceback: String,
}

impl Fault {
    /// One outside of any function.
    pub fn plain(message: impl Into<String>) -> Self {
        Self {
            function: String::new(),
            message: message.into(),
            traceback: String::new(),
        }
    }
}

/// What a client is, as long as it does not run: plain memory, to be moved between threads until its first event.
#[derive(Debug)]
pub struct Client {
    pub(crate) script: Arc<Script>,
    pub(crate) number: usize,
    pub(crate) stream: Stream,
    pub(crate) sql: Vec<u8>,
    pub(crate) parameters: Parameters,
    pub(crate) bulk: Bulk,
    /// The rows of its last statement.
    pub result: ResultRows,
    pub(crate) counted: [u32; 5],
}

impl Client {
    /// A client that has not begun.
    #[must_use]
    pub fn new(script: &Arc<Script>, number: usize, stream: Stream) -> Self {
        Self {
            script: Arc::clone(script),
            number,
            stream,
            sql: Vec::new(),
            parameters: Parameters::default(),
            bulk: Bulk::default(),
            result: ResultRows::default(),
            counted: [0; 5],
        }
    }

    /// Let the script go on until it needs something. Always on the same thread.
    pub fn resume(&mut self, answer: Answer<'_>) -> Request {
        engine::resume(self, answer)
    }

    /// What the script has counted by itself since the last call: others, reads, writes, errors, reconnections.
    pub fn take_counted(&mut self) -> [u32; 5] {
        std::mem::take(&mut self.counted)
    }

    /// The text of the statement.
    #[must_use]
    pub fn sql(&self) -> &[u8] {
        &self.sql
    }

    /// Take the text of the statement away, in exchange for memory to be used again.
    pub fn replace_sql(&mut self, spare: &mut Vec<u8>) {
        std::mem::swap(&mut self.sql, spare);
    }

    /// The values of the statement.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}
