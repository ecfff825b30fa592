//! The protocol seam: all that the worker and the workloads know of the way to a database.
//!
//! A [`Protocol`] is how one kind of server is reached: its settings, sessions without their sockets, messages to
//! it ([`Frontend`], [`Bulk`]) and from it ([`Message`]), cancelling, and what its errors mean. Everything above
//! is generic over it, so a call across the seam costs what a direct one does.
//!
//! SQL is passed through as it was written, but for parameters: they are `$1`, `$2` and so on in every text that
//! comes here, and a protocol that marks them otherwise translates the text when it prepares it.
//!
//! A method with a default is of what many protocols lack or have alike; without them one is as short as the lines of
//! `driver/tests/lines.rs`, which drive scripts and queries.

pub(crate) mod report;
pub(crate) mod value;

use std::fmt::Debug;
use std::io;

use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::EncodeError;
use socket2::Socket;

use self::report::Report;
use self::value::{Cell, Form};
use crate::error::DriveError;
use crate::record::ErrorClass;
use crate::spec::Connection;

/// A code of five characters by which a server names an error: SQLSTATE.
pub(crate) type SqlState = [u8; 5];

/// One kind of server with the settings of a drive's connections, shared by all of them.
pub(crate) trait Protocol: Bulk + Debug + Send + Sync + Sized + 'static {
    /// The client's side of one connection.
    type Session: Session<Self>;
    /// Appends messages to what a session sends.
    type Frontend<'a>: Frontend;
    /// The columns of a result, in the bytes that they came in.
    type Columns<'a>: Columns;
    /// One row of a result, in the bytes that it came in.
    type Row<'a>: Row;
    /// What cancels a session's statement.
    type CancelKey: Send + 'static;

    /// Check the settings of a connection, and read the files that they name; `is_unix`: it is a unix socket.
    fn new(connection: &Connection, is_unix: bool) -> Result<Self, DriveError>;

    /// The path of a server's unix socket: what the user gave as the host, unless servers have a name for it there.
    fn unix_socket(path: &str, _port: u16) -> String {
        path.to_owned()
    }

    /// A session whose first bytes are pending.
    fn session(&self) -> Result<Self::Session, Failure>;

    /// After a log-in that failed: other settings to try once, where the user's settings allow that.
    fn second_try(&self, _failed: &Self::Session) -> Option<Self> {
        None
    }

    /// Ask the server, on a connection that was just made for it, to cancel a statement. May wait as long as the
    /// socket's time limits allow.
    fn cancel(&self, _key: &Self::CancelKey, _socket: Socket) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The same transaction may succeed when it is tried again (serialization failure, as the standard has it;
    /// deadlock, where the server has a state of its own for it).
    fn is_retriable(state: SqlState) -> bool {
        &state == b"40001"
    }
}

/// One connection without its socket: bytes in, messages out, and bytes to send.
pub(crate) trait Session<P: Protocol>: Send {
    /// Takes bytes that arrived; tells what they mean. After an error the session is dead.
    fn receive(
        &mut self,
        bytes: &[u8],
        on_message: &mut impl FnMut(Message<'_, P>),
    ) -> Result<(), Failure>;

    /// The server closed the connection: what that means here.
    fn closed(&mut self) -> Failure {
        let message = "the server closed the connection";
        Failure::new(ErrorClass::Connection, message)
    }

    /// For appending messages.
    fn frontend(&mut self) -> P::Frontend<'_>;

    /// The bytes to send now; empty when there are none.
    fn pending(&mut self) -> Result<&[u8], Failure>;

    /// The first `count` bytes of those were sent.
    fn consumed(&mut self, count: usize);

    /// `None` where the server cannot cancel.
    fn cancel_key(&self) -> Option<P::CancelKey> {
        None
    }

    /// What the server reported of itself at the log-in under this name.
    fn parameter(&self, _name: &str) -> Option<&str> {
        None
    }

    /// The server's number of this session.
    fn process_id(&self) -> Option<i32> {
        None
    }
}

/// What arrives.
pub(crate) enum Message<'a, P: Protocol> {
    /// Start-up and authentication are over.
    LoggedIn,
    /// A statement was prepared.
    Prepared,
    /// The columns of the rows that follow.
    Columns(P::Columns<'a>),
    /// One row.
    Row(P::Row<'a>),
    /// A statement is done.
    Done(Completed<'a>),
    /// All that was sent up to one [`Frontend::sync`], or one query, is answered.
    Answered {
        /// The session is in a transaction, failed or not.
        in_transaction: bool,
    },
    /// A statement failed, or the connection did.
    Error(ServerError<'a>),
    /// The server waits for the data of a statement that takes rows.
    DataWanted,
    /// The server is about to send data that is no result.
    DataOffered,
    /// A remark of the server.
    Notice(Report<'a>),
    /// Something that no workload asks about: parameters.
    Other,
}

/// What a server says at the end of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Completed<'a> {
    /// Words, of which the last is how many rows were read or changed, where the statement has such.
    Words(&'a [u8]),
    /// Rows that were changed.
    Rows(u64),
}

impl Completed<'_> {
    /// How many rows were read or changed.
    pub(crate) fn rows(self) -> u64 {
        match self {
            Self::Rows(rows) => rows,
            Self::Words(words) => {
                let last = words.rsplit(|&byte| byte == b' ').next();
                let digits = last.and_then(|last| std::str::from_utf8(last).ok());
                digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
            }
        }
    }
}

/// An error that the server reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerError<'a> {
    pub(crate) state: SqlState,
    /// The server's own number of it; 0 where it has none.
    pub(crate) number: u16,
    pub(crate) message: &'a [u8],
    /// All that it says.
    pub(crate) report: Report<'a>,
    /// The server ends the connection with it.
    pub(crate) is_fatal: bool,
}

impl<'a> ServerError<'a> {
    /// One of a server that says no more than this.
    pub(crate) fn new(state: SqlState, message: &'a [u8]) -> Self {
        Self {
            state,
            number: 0,
            message,
            report: Report {
                severity: b"ERROR",
                message,
                ..Report::default()
            },
            is_fatal: false,
        }
    }
}

/// Messages to the server.
pub(crate) trait Frontend {
    /// A text of SQL that is run as it is; answered by itself.
    fn query(&mut self, sql: &[u8]) -> Result<(), Unencodable>;

    /// Prepare a statement under a name; the empty name is free to be used again.
    fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), Unencodable>;

    /// Run a prepared statement: parameters as text (`None`: NULL), rows as text.
    fn execute<'p>(
        &mut self,
        name: &str,
        parameters: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), Unencodable>;

    /// Run a prepared statement without parameters: rows in the protocol's binary form, where it has one, or as text.
    fn execute_plain(&mut self, name: &str, _binary: bool) -> Result<(), Unencodable> {
        self.execute(name, std::iter::empty())
    }

    /// Forget a prepared statement, where the server keeps them until it is told to.
    fn close_statement(&mut self, _name: &str) -> Result<(), Unencodable> {
        Ok(())
    }

    /// End what [`Message::Answered`] is to answer.
    fn sync(&mut self);

    /// After [`Message::DataWanted`]: there is no data; `synced`: a [`Frontend::sync`] followed the statement.
    fn refuse_data(&mut self, _reason: &str, _synced: bool) -> Result<(), Unencodable> {
        Ok(())
    }

    /// Say goodbye, where closing the connection does not say it.
    fn terminate(&mut self) {}

    /// Messages that [`Bulk`] made before: none where it makes none.
    fn encoded(&mut self, _messages: &[u8]) {}
}

/// Messages that carry many rows: appended to plain memory, so that another thread than the connection's makes
/// them, and [`Frontend::encoded`] takes them. A protocol that leaves them out refuses loads.
pub(crate) trait Bulk {
    /// Rows can be appended part by part: [`Bulk::put_part`].
    const STREAMS: bool = false;

    /// The statement that takes rows into a table, as SQL; `columns` in parentheses.
    fn rows_statement(_table: &str, _columns: &str, _format: RowFormat) -> String {
        String::new()
    }

    /// A query for one value: how many columns of a table take rows that name no columns, where rows as data leave
    /// the same in it as an INSERT does of whole numbers, texts and NULLs; NULL or no row where they may not. `None`:
    /// they never do.
    fn same_as_insert(_table: &str) -> Option<String> {
        None
    }

    /// As [`Frontend::query`].
    fn put_query(_sql: &str, _out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Err(no_bulk())
    }

    /// As [`Frontend::prepare`].
    fn put_prepare(_name: &str, _sql: &str, _out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Err(no_bulk())
    }

    /// All data of a statement that takes rows in this format; not of [`RowFormat::Csv`].
    fn put_rows(
        _format: RowFormat,
        _rows: &DictionaryBatch,
        _out: &mut Vec<u8>,
    ) -> Result<(), RowsError> {
        Err(no_bulk().into())
    }

    /// Some of the rows of such a statement, between [`Bulk::put_data_begin`] and [`Bulk::put_data_end`].
    fn put_part(
        _format: RowFormat,
        _rows: &DictionaryBatch,
        _out: &mut Vec<u8>,
    ) -> Result<(), RowsError> {
        Err(no_bulk().into())
    }

    /// Data that is in its format already: its begin,
    fn put_data_begin(_format: RowFormat, _out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Err(no_bulk())
    }

    /// a part of it,
    fn put_data(_bytes: &[u8], _out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Err(no_bulk())
    }

    /// and its end.
    fn put_data_end(_format: RowFormat, _out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Err(no_bulk())
    }

    /// Rows as values for [`Bulk::put_execute`].
    fn put_values(_rows: &DictionaryBatch, _out: &mut Vec<u8>) -> Result<(), RowsError> {
        Err(no_bulk().into())
    }

    /// Run a prepared statement whose parameters are the next `rows` rows of `values`; returns the values after them.
    fn put_execute<'v>(
        _name: &str,
        _columns: usize,
        _rows: usize,
        _values: &'v [u8],
        _out: &mut Vec<u8>,
    ) -> Result<&'v [u8], Unencodable> {
        Err(no_bulk())
    }

    /// Ask the server to answer what was sent, though it is not all.
    fn put_flush(_out: &mut Vec<u8>) {}

    /// As [`Frontend::sync`].
    fn put_sync(_out: &mut Vec<u8>) {}
}

fn no_bulk() -> Unencodable {
    Unencodable("this protocol does not support bulk loads".to_owned())
}

/// The format of rows on their way into a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowFormat {
    Binary,
    Text,
    Csv,
}

/// The columns of a result.
pub(crate) trait Columns {
    /// In order; ends early where the message is damaged.
    fn columns(&self) -> impl Iterator<Item = Column<'_>>;
}

/// One column of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) form: Form,
    /// The server's number of its type.
    pub(crate) type_oid: u32,
    /// Its values come in the protocol's binary form, not as text.
    pub(crate) is_binary: bool,
}

/// One row of a result.
pub(crate) trait Row {
    /// What else an unreadable text value may mean, for the end of a message.
    const TEXT_HINT: &'static str = "";

    /// In order, `None` for NULL; ends early where the message is damaged.
    fn values(&self) -> impl Iterator<Item = Option<&[u8]>>;

    /// What a value says; `None` when its bytes are not of this form. `scratch` holds what has to be built.
    fn cell<'v>(
        form: Form,
        _is_binary: bool,
        value: &'v [u8],
        _scratch: &'v mut Vec<u8>,
    ) -> Option<Cell<'v>> {
        value::plain(form, value)
    }
}

/// Why a transaction failed, or a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
    /// How to mend it, where the protocol knows.
    pub(crate) hint: &'static str,
    /// The same transaction may succeed when it is tried again: whoever carries it says so.
    pub(crate) is_retriable: bool,
}

impl Failure {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            hint: "",
            is_retriable: false,
        }
    }

    /// What a server reported.
    pub(crate) fn server<P: Protocol>(state: SqlState, message: impl Into<String>) -> Self {
        Self {
            is_retriable: P::is_retriable(state),
            ..Self::new(ErrorClass::Server(state), message)
        }
    }

    pub(crate) fn script(message: impl Into<String>) -> Self {
        Self::new(ErrorClass::Script, message)
    }
}

/// A message that cannot be said in this protocol: why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unencodable(pub(crate) String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(ErrorClass::Connection, error.to_string())
    }
}

impl From<Unencodable> for Failure {
    fn from(error: Unencodable) -> Self {
        Self::script(error.0)
    }
}

/// Why rows cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RowsError {
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
}
