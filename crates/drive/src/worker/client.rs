//! One client: its connection, its program and the transaction in flight.

use std::sync::Arc;

use socket2::Socket;

use super::limits::Excuse;
use crate::collector::Absence;
use crate::protocol::{Failure, Protocol};
use crate::record::booking::Begun;
use crate::workload::{Place, Program};

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Without a connection, and nothing is running.
    Vacant,
    /// Waiting before it connects (again).
    BackingOff,
    /// The connection is being made.
    Connecting,
    /// Start-up and authentication.
    LoggingIn,
    /// Connected, with nothing to do.
    Idle,
    /// Waiting for an answer.
    Exchanging,
    /// Waiting for the answer to ROLLBACK after a failure.
    RollingBack,
    /// Its time in the ramp-up has not come.
    RampingUp,
    /// In `\sleep`.
    Sleeping,
    /// Has ended for good.
    Gone,
}

/// Who may touch a client's send buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendState {
    /// We.
    Free,
    /// The kernel, until it says that it has taken all bytes.
    Busy,
    /// The kernel, until the server has answered.
    Quiet,
}

/// What a session has answered to the check after its log-in.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// What is wrong with it, and how to mend that.
    pub(crate) wrong: Option<(String, String)>,
    /// The answer is whole.
    pub(crate) is_over: bool,
}

/// The transaction in flight.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Transaction {
    /// When it should have started.
    pub(crate) intended_ns: u64,
    /// When it did; zero until its first bytes are passed on.
    pub(crate) started_ns: u64,
    pub(crate) script: usize,
    /// Its intended start is in the measured window.
    pub(crate) measured: bool,
    /// It is in no figure, and counted with the warm-up.
    pub(crate) burn_in: bool,
    pub(crate) tries: u32,
    /// It was sent, and the connection lost before the answer.
    pub(crate) in_doubt: bool,
    /// A transaction is running (a connection for it may still have to be made).
    pub(crate) active: bool,
}

impl Transaction {
    /// As its record knows it.
    pub(crate) fn begun(&self) -> Begun {
        Begun {
            script: self.script,
            intended_ns: self.intended_ns,
            measured: self.measured,
            burn_in: self.burn_in,
        }
    }
}

/// Messages sent whose answers are awaited.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// Answers still to come.
    pub(crate) answers: u32,
    pub(crate) sent_ns: u64,
    /// Numbers of the statements in it, in order.
    pub(crate) statements: Vec<u32>,
    /// How many of them have ended.
    pub(crate) ended: usize,
    /// When the latest of them did.
    pub(crate) ended_ns: u64,
    pub(crate) failure: Option<Failure>,
    /// Results that have ended.
    pub(crate) results: u32,
    /// Where the error belongs and what the server said of it; only where that is told.
    pub(crate) place: Option<Box<Place>>,
    /// Why the server is about to close the connection.
    pub(crate) farewell: Option<Failure>,
    /// The server's transaction status after the last answer: idle?
    pub(crate) in_transaction: bool,
}

/// A connection that its client has put aside for another of its own.
pub(crate) struct Parked<P: Protocol> {
    /// The client's own number for it.
    pub(crate) number: u32,
    pub(crate) session: P::Session,
    pub(crate) socket: Socket,
    /// The server's transaction status on it.
    pub(crate) in_transaction: bool,
}

pub(crate) struct Client<P: Protocol> {
    /// Its number among all clients.
    pub(crate) number: u32,
    /// Its transactions that have ended, or were skipped.
    pub(crate) ended: u64,
    pub(crate) phase: Phase,
    pub(crate) session: Option<P::Session>,
    /// What the session has answered to the check after its log-in; `None` once that is over.
    pub(crate) checked: Option<Checked>,
    pub(crate) socket: Option<Socket>,
    /// The bytes that the kernel is taking.
    pub(crate) sending: Vec<u8>,
    pub(crate) send: SendState,
    pub(crate) program: Box<dyn Program<P> + Send>,
    pub(crate) exchange: Exchange,
    /// The failure for which ROLLBACK was sent.
    pub(crate) rolled_back: Option<Failure>,
    pub(crate) transaction: Transaction,
    /// Transactions that it may still start; `None` when a deadline ends the run.
    pub(crate) left: Option<u64>,
    /// It has leave to begin a connection.
    pub(crate) may_connect: bool,
    /// When the connection attempt began.
    pub(crate) connect_ns: u64,
    /// When waiting turns into a timeout, or a pause into action.
    pub(crate) until_ns: u64,
    pub(crate) excuse: Excuse,
    /// Next pause before connecting again.
    pub(crate) backoff_ns: u64,
    /// Its connection was lost, and it has no new one.
    pub(crate) lost: bool,
    /// Since when it takes no part, and why; `None` while it does.
    pub(crate) absence: Option<Absence>,
    /// When and why it ended for good.
    pub(crate) end: Option<Absence>,
    /// It has been connected before: the next connection is a reconnection.
    pub(crate) was_connected: bool,
    /// The settings of a second attempt to log in, after the first was refused.
    pub(crate) fallback: Option<Arc<P>>,
    /// Its own number for the connection that it uses, and what others it has.
    pub(crate) connection: u32,
    pub(crate) parked: Vec<Parked<P>>,
}

impl<P: Protocol> Client<P> {
    pub(crate) fn new(
        number: usize,
        program: Box<dyn Program<P> + Send>,
        left: Option<u64>,
    ) -> Self {
        Self {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            ended: 0,
            phase: Phase::Vacant,
            session: None,
            checked: None,
            socket: None,
            sending: Vec::new(),
            send: SendState::Free,
            program,
            exchange: Exchange::default(),
            rolled_back: None,
            transaction: Transaction::default(),
            left,
            may_connect: false,
            connect_ns: 0,
            until_ns: 0,
            excuse: Excuse::default(),
            backoff_ns: 0,
            lost: false,
            absence: None,
            end: None,
            was_connected: false,
            fallback: None,
            connection: 0,
            parked: Vec::new(),
        }
    }

    /// By which its present connection finds its server, where there are several.
    pub(crate) fn turn(&self) -> u32 {
        self.number.wrapping_add(self.connection)
    }

    /// It waits for the server, for so long and no longer.
    pub(crate) fn waits(&self) -> bool {
        matches!(
            self.phase,
            Phase::Connecting | Phase::LoggingIn | Phase::Exchanging | Phase::RollingBack
        )
    }

    /// It has waited too long.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        self.waits() && now >= self.until_ns
    }

    /// It may start another transaction.
    pub(crate) fn has_left(&self) -> bool {
        self.left.is_none_or(|left| left > 0)
    }
}
