//! Workloads. A program is what one client does: a state machine that yields operations and is resumed with their
//! results. The worker knows programs only through this trait.

pub(crate) mod blocking;
mod labels;
pub(crate) mod load;
pub(crate) mod lua;
pub(crate) mod queries;
pub(crate) mod script;
pub(crate) mod work;

use std::sync::Arc;

use loadstone_gen::random::Prng;
use serde::Serialize;

pub(crate) use self::labels::{Labels, ScriptLabel, StatementLabel};
use crate::messages::Line;
use crate::protocol::{Failure, Message, Protocol};
use crate::record::Operations;
use crate::waker::Waker;

/// What a program wants next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Messages were appended: send them and resume after so many [`Message::Answered`].
    Exchange {
        /// How many to await.
        answers: u32,
    },
    /// Resume after this time.
    Sleep {
        /// Nanoseconds.
        ns: u64,
    },
    /// Resume in the next turn: others come first, and a request to stop is seen.
    Yield,
    /// Connect, then resume.
    Connect,
    /// End the connection, and go on without it.
    Disconnect,
    /// Connect again, and resume when there is a connection, or none could be made this time.
    Reconnect,
    /// Put the connection aside, and go on with the one of this number, or without one where it is new.
    Switch {
        /// The client's own number for it; the first has 0.
        to: u32,
    },
    /// The client wants no more transactions, and this one counts as one that never began.
    Leave,
    /// The transaction has ended as it should.
    Done,
    /// The transaction cannot go on.
    Failed(Failure),
    /// The run has to end, and with it the transaction and its client.
    CutOff,
}

/// What a client may do around its transactions, in no figure of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Before the common start.
    Prologue,
    /// When no more transactions begin.
    Epilogue,
}

/// Whether a client's next transaction can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readiness {
    /// It can.
    Ready,
    /// Not yet: what it needs is still being made. The program wakes the worker when that has changed.
    NotYet,
    /// Not before this time.
    At {
        /// Nanoseconds of the clock.
        ns: u64,
    },
    /// Never again: there is no more work for this client.
    Ended,
}

/// What a transaction brought, besides having ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct LoadCount {
    /// Rows stored.
    pub(crate) rows: u64,
    /// Values of fields in them.
    pub(crate) metrics: u64,
}

/// What is drawn for each client, whatever its work.
pub(crate) struct ClientSeeds {
    /// Number of the client.
    pub(crate) client: usize,
    /// Its random choices.
    pub(crate) stream: Prng,
    /// Its choices among scripts.
    pub(crate) chooser: Prng,
    /// pgbench's variable.
    pub(crate) default_seed: i64,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End<'a> {
    /// As it should.
    Done {
        /// Its first bytes were passed on.
        sent_ns: u64,
        /// The answer was complete.
        acked_ns: u64,
    },
    /// In an error, after all tries.
    Failed {
        /// Which.
        failure: &'a Failure,
        /// It was sent, and the connection lost before the answer: nobody knows whether it was carried out.
        in_doubt: bool,
    },
}

/// Where an error of the server belongs, and all that the server said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the statement, as [`Program::resume`] gave it.
    pub(crate) statement: Option<u32>,
    /// Number of the result among those of one message.
    pub(crate) result: u32,
    pub(crate) report: String,
}

/// One client's behaviour, over any protocol.
pub(crate) trait Program<P: Protocol> {
    /// The client runs on a worker that this wakes from its wait.
    fn attach(&mut self, _waker: &Arc<Waker>) {}

    /// Asked before a transaction is scheduled, as often as it takes; its intended start under a rate stays what
    /// it was.
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        Readiness::Ready
    }

    /// All that was appended has been sent: append more of the same exchange, if there is more; long ones go in
    /// pieces, so that the server works on the first while the others are copied.
    fn more(&mut self, _frontend: &mut P::Frontend<'_>) {}

    /// [`Program::more`] had nothing yet, and the waker tells when there is something.
    fn awaits_more(&self) -> bool {
        false
    }

    /// What was sent and is not answered may have been carried out for good.
    fn may_be_stored(&self) -> bool {
        true
    }

    /// The client has lost its connection for good.
    fn gone(&mut self) {}

    /// The transaction has ended; told once for each [`Program::begin`].
    fn ended(&mut self, _end: &End<'_>) -> LoadCount {
        LoadCount::default()
    }

    /// Hand over the commands that were run since the last call and need no server, with the nanoseconds that
    /// each took; none where nobody asked for them.
    fn take_times(&mut self, _book: &mut dyn FnMut(u32, u64)) {}

    /// Begin a part that comes before or after all transactions, as if it were one; false when there is none.
    fn begin_part(&mut self, _part: Part) -> bool {
        false
    }

    /// Errors of statements and transactions that stay open are its own affair: it is resumed after both.
    fn minds_itself(&self) -> bool {
        false
    }

    /// The connection that it asked for could not be made: true when it goes on without.
    fn refused(&mut self, _failure: &Failure) -> bool {
        false
    }

    /// Its connection was lost: true when it goes on, and asks for another one where it needs that.
    fn lost(&mut self, _failure: &Failure) -> bool {
        false
    }

    /// The statement that it has sent takes data, which follow it.
    fn sends_data(&self) -> bool {
        false
    }

    /// Run without a connection until one is needed.
    fn resume_unconnected(&mut self) -> Step {
        Step::Connect
    }

    /// Hand over what its statements did since the last call.
    fn take_operations(&mut self, _into: &mut Operations) {}

    /// Choose the next transaction and return the number of its script.
    fn begin(&mut self) -> usize;

    /// The transaction just begun belongs to the figures, as long as it begins after the warm-up.
    fn is_measured(&self) -> bool {
        true
    }

    /// Go back to the start of the transaction, with the same random choices.
    fn retry(&mut self);

    /// Run until something must be awaited. Appends messages to `frontend` and, for each statement in them,
    /// its number to `statements`.
    fn resume(&mut self, frontend: &mut P::Frontend<'_>, statements: &mut Vec<u32>) -> Step;

    /// One message of the answer.
    fn message(&mut self, message: &Message<'_, P>);

    /// The answer is complete: `failed` when the server reported an error.
    fn answered(&mut self, failed: bool) -> Result<(), Failure>;

    /// The SQL that was sent last, in which the server names the place of an error.
    fn sent(&self) -> &[u8] {
        b""
    }

    /// What is told of a failure: one that ends the client, or one after which it goes on.
    fn words(&mut self, _failure: &Failure, _place: Option<&Place>, _ends: bool) -> Vec<Line> {
        Vec::new()
    }

    /// The connection is a new one: nothing is prepared on it.
    fn reconnected(&mut self);
}
