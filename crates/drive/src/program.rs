//! A program is what one client does: a state machine that yields operations and is resumed with their results.
//!
//! The driver knows programs only through this trait; pgbench's scripts are the first kind.

pub(crate) mod script;

use loadstone_wire::postgres::{Frontend, Message};

use crate::record::ErrorClass;

/// What a program wants next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Messages were appended: send them and resume after so many `ReadyForQuery`.
    Exchange {
        /// `ReadyForQuery` messages to await.
        answers: u32,
    },
    /// Resume after this time.
    Sleep {
        /// Nanoseconds.
        ns: u64,
    },
    /// The transaction has ended as it should.
    Done,
    /// The transaction cannot go on.
    Failed(Failure),
}

/// Why a transaction failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    /// How to mend it, where the protocol knows.
    pub(crate) hint: &'static str,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            hint: "",
        }
    }

    pub(crate) fn script(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Script, message)
    }
}

/// One client's behaviour.
pub(crate) trait Program {
    /// Choose the next transaction and return the number of its script.
    fn begin(&mut self) -> usize;

    /// Go back to the start of the transaction, with the same random choices.
    fn retry(&mut self);

    /// Run until something must be awaited. Appends messages to `frontend` and, for each statement in them,
    /// its number to `statements`.
    fn resume(&mut self, frontend: &mut Frontend<'_>, statements: &mut Vec<u32>) -> Step;

    /// One message of the answer.
    fn message(&mut self, message: &Message<'_>);

    /// The answer is complete: `failed` when the server reported an error.
    fn answered(&mut self, failed: bool) -> Result<(), Failure>;

    /// The connection is a new one: nothing is prepared on it.
    fn reconnected(&mut self);
}
