//! The protocol of MySQL and MariaDB, on top of `loadstone-wire`.

mod binary;
mod bulk;
mod cancel;
mod settings;
mod text;

use std::io;
use std::sync::Arc;

use loadstone_wire::mysql as wire;
use loadstone_wire::mysql::MysqlError;
use loadstone_wire::postgres::ClientConfig;
use socket2::Socket;

use crate::error::DriveError;
use crate::protocol::value::{Cell, Form};
use crate::protocol::{
    Column, Columns, Completed, Failure, Frontend, Message, Protocol, Row, ServerError, Session,
    SqlState, Unencodable,
};
use crate::record::ErrorClass;
use crate::spec::Connection;

/// SQLSTATE of errors that have none of their own.
const GENERAL: SqlState = *b"HY000";

/// How connections to a MySQL or MariaDB server are made.
#[derive(Debug)]
pub(crate) struct Mysql {
    settings: Arc<wire::Settings>,
    /// `None` where connections are never encrypted.
    tls: Option<Arc<ClientConfig>>,
}

impl Protocol for Mysql {
    type Session = wire::Session;
    type Frontend<'a> = wire::Frontend<'a>;
    type Columns<'a> = wire::Columns<'a>;
    type Row<'a> = wire::Row<'a>;
    /// The server's number of the connection.
    type CancelKey = u32;

    fn new(connection: &Connection, is_unix: bool) -> Result<Self, DriveError> {
        settings::read(connection, is_unix)
    }

    /// The socket itself, or the folder with a socket of the usual name.
    fn unix_socket(path: &str, _port: u16) -> String {
        if std::path::Path::new(path).is_dir() {
            format!("{path}/mysqld.sock")
        } else {
            path.to_owned()
        }
    }

    fn session(&self) -> Result<wire::Session, Failure> {
        let session = wire::Session::new(Arc::clone(&self.settings), self.tls.clone());
        session.map_err(|error| failure(&error))
    }

    fn cancel(&self, connection_id: &u32, socket: Socket) -> io::Result<()> {
        cancel::request(self, *connection_id, socket)
    }

    /// Deadlock (1213, `40001`), and those without a state of their own: a lock that was waited for too long (1205),
    /// a row that has changed since the transaction's snapshot (1020).
    fn is_retriable(state: SqlState) -> bool {
        matches!(&state, b"40001" | b"01205" | b"01020")
    }
}

impl Session<Mysql> for wire::Session {
    #[inline]
    fn receive(
        &mut self,
        bytes: &[u8],
        on_message: &mut impl FnMut(Message<'_, Mysql>),
    ) -> Result<(), Failure> {
        let received = self.receive(bytes, &mut |event| on_message(translated(event)));
        received.map_err(|error| failure(&error))
    }

    fn closed(&mut self) -> Failure {
        failure(&self.closed())
    }

    #[inline]
    fn frontend(&mut self) -> wire::Frontend<'_> {
        self.frontend()
    }

    #[inline]
    fn pending(&mut self) -> Result<&[u8], Failure> {
        self.pending().map_err(|error| failure(&error))
    }

    #[inline]
    fn consumed(&mut self, count: usize) {
        self.consumed(count);
    }

    fn cancel_key(&self) -> Option<u32> {
        self.is_ready().then(|| self.connection_id())
    }

    fn process_id(&self) -> Option<i32> {
        i32::try_from(self.connection_id()).ok()
    }
}

#[inline]
fn translated(event: wire::Event<'_>) -> Message<'_, Mysql> {
    match event {
        wire::Event::Ready => Message::LoggedIn,
        wire::Event::Prepared => Message::Prepared,
        wire::Event::Columns(columns) => Message::Columns(columns),
        wire::Event::Row(row) => Message::Row(row),
        wire::Event::Done { affected } => Message::Done(Completed::Rows(affected)),
        wire::Event::Answered { in_transaction } => Message::Answered { in_transaction },
        wire::Event::DataWanted => Message::DataWanted,
        wire::Event::Error(error) => Message::Error(ServerError {
            number: error.code,
            is_fatal: error.is_fatal(),
            ..ServerError::new(state(error.code, error.sqlstate), error.message)
        }),
    }
}

/// SQLSTATE, or the server's own number where the state says nothing: `01205` is error 1205. SQLSTATE's classes 01
/// to 05 are of no error.
fn state(code: u16, sqlstate: SqlState) -> SqlState {
    if sqlstate != GENERAL {
        return sqlstate;
    }
    let digit = |unit: u16| b'0' + u8::try_from(code / unit % 10).unwrap_or(0);
    [digit(10_000), digit(1000), digit(100), digit(10), digit(1)]
}

/// What an error of the protocol means to a connection.
fn failure(error: &MysqlError) -> Failure {
    let message = error.to_string();
    let failure = match (error.server_error(), error) {
        (Some(refusal), _) => {
            Failure::server::<Mysql>(state(refusal.code, refusal.sqlstate), message)
        }
        (None, MysqlError::Closed { .. }) => Failure::new(ErrorClass::Connection, message),
        _ => Failure::new(ErrorClass::Protocol, message),
    };
    Failure {
        hint: error.hint(),
        ..failure
    }
}

impl From<MysqlError> for Unencodable {
    fn from(error: MysqlError) -> Self {
        Self(error.to_string())
    }
}

impl Frontend for wire::Frontend<'_> {
    fn query(&mut self, sql: &[u8]) -> Result<(), Unencodable> {
        Ok(self.query(sql)?)
    }

    fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), Unencodable> {
        Ok(self.prepare(name, sql)?)
    }

    fn execute<'p>(
        &mut self,
        name: &str,
        parameters: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), Unencodable> {
        Ok(self.execute(name, false, parameters)?)
    }

    fn execute_plain(&mut self, name: &str, binary: bool) -> Result<(), Unencodable> {
        Ok(self.execute(name, binary, std::iter::empty())?)
    }

    fn close_statement(&mut self, name: &str) -> Result<(), Unencodable> {
        Ok(self.close_statement(name)?)
    }

    fn sync(&mut self) {
        self.sync();
    }

    /// The statement ends with no data: the protocol has no way to refuse it.
    fn refuse_data(&mut self, _reason: &str, _synced: bool) -> Result<(), Unencodable> {
        self.refuse_data();
        Ok(())
    }

    fn terminate(&mut self) {
        self.terminate();
    }

    fn encoded(&mut self, messages: &[u8]) {
        self.encoded(messages);
    }
}

impl Columns for wire::Columns<'_> {
    fn columns(&self) -> impl Iterator<Item = Column<'_>> {
        wire::Columns::columns(self).map(|column| Column {
            name: column.name,
            form: form_of(&column),
            type_oid: column.kind.into(),
            is_binary: column.is_binary,
        })
    }
}

impl Row for wire::Row<'_> {
    #[inline]
    fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        wire::Row::values(self)
    }

    fn cell<'v>(
        form: Form,
        is_binary: bool,
        value: &'v [u8],
        _scratch: &'v mut Vec<u8>,
    ) -> Option<Cell<'v>> {
        if is_binary {
            binary::cell(form, value)
        } else {
            text::cell(form, value)
        }
    }
}

/// The form of a type; [`Form::Oid`] is any whole number without a sign, [`Form::Int8`] any other.
fn form_of(column: &wire::Column<'_>) -> Form {
    const BYTES: u16 = 63;
    match column.kind {
        // YEAR has no sign.
        13 => Form::Oid,
        1 | 2 | 3 | 8 | 9 if column.is_unsigned => Form::Oid,
        1 | 2 | 3 | 8 | 9 => Form::Int8,
        0 | 246 => Form::Numeric,
        4 => Form::Float4,
        5 => Form::Float8,
        7 | 12 | 17 | 18 => Form::Timestamp,
        10 | 14 => Form::Date,
        11 | 19 => Form::TimeOfDay,
        15 | 249..=254 if column.charset == BYTES => Form::Bytea,
        15 | 245 | 247..=254 => Form::Text,
        _ => Form::Other,
    }
}
