//! PostgreSQL's protocol, version 3, on top of `loadstone-wire`.

mod binary;
mod bulk;
mod cancel;
mod settings;
mod text;

use std::io;
use std::sync::Arc;

use loadstone_wire::postgres as wire;
use loadstone_wire::postgres::{Message as WireMessage, TransactionStatus, WireError};
use socket2::Socket;

use self::cancel::Key;
use crate::error::DriveError;
use crate::protocol::report::Report;
use crate::protocol::value::{Cell, Form};
use crate::protocol::{
    Column, Columns, Completed, Failure, Frontend, Message, Protocol, Row, ServerError, Session,
    SqlState, Unencodable,
};
use crate::record::ErrorClass;
use crate::spec::Connection;

/// How connections to a PostgreSQL server are made.
#[derive(Debug)]
pub(crate) struct Postgres {
    settings: Arc<wire::Settings>,
    /// `None` where connections are never encrypted.
    tls: Option<Arc<wire::ClientConfig>>,
}

impl Protocol for Postgres {
    type Session = wire::Session;
    type Frontend<'a> = wire::Frontend<'a>;
    type Columns<'a> = wire::RowDescription<'a>;
    type Row<'a> = wire::DataRow<'a>;
    type CancelKey = Key;

    fn new(connection: &Connection, is_unix: bool) -> Result<Self, DriveError> {
        settings::read(connection, is_unix)
    }

    fn unix_socket(folder: &str, port: u16) -> String {
        format!("{folder}/.s.PGSQL.{port}")
    }

    fn session(&self) -> Result<wire::Session, Failure> {
        wire::Session::new(Arc::clone(&self.settings), self.tls.clone()).map_err(|e| failure(&e))
    }

    fn second_try(&self, failed: &wire::Session) -> Option<Self> {
        let settings = Arc::new(failed.retry_settings()?);
        let tls = self.tls.clone();
        Some(Self { settings, tls })
    }

    fn cancel(&self, key: &Key, socket: Socket) -> io::Result<()> {
        cancel::request(self, key, socket)
    }

    /// As pgbench: serialization failure and deadlock.
    fn is_retriable(state: SqlState) -> bool {
        matches!(&state, b"40001" | b"40P01")
    }
}

impl Session<Postgres> for wire::Session {
    #[inline]
    fn receive(
        &mut self,
        bytes: &[u8],
        on_message: &mut impl FnMut(Message<'_, Postgres>),
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

    fn cancel_key(&self) -> Option<Key> {
        Key::of(self)
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameter(name)
    }

    fn process_id(&self) -> Option<i32> {
        self.backend_key().map(|(id, _)| id)
    }
}

#[inline]
fn translated(event: wire::Event<'_>) -> Message<'_, Postgres> {
    let wire::Event::Message(message) = event else {
        return Message::LoggedIn;
    };
    match message {
        WireMessage::DataRow(row) => Message::Row(row),
        WireMessage::RowDescription(columns) => Message::Columns(columns),
        WireMessage::CommandComplete(tag) => Message::Done(Completed::Words(tag)),
        WireMessage::EmptyQuery => Message::Done(Completed::Rows(0)),
        WireMessage::ReadyForQuery(status) => Message::Answered {
            in_transaction: status != TransactionStatus::Idle,
        },
        WireMessage::ParseComplete => Message::Prepared,
        WireMessage::Error(error) => Message::Error(ServerError {
            state: error.sqlstate(),
            number: 0,
            message: error.message(),
            report: report(&error),
            is_fatal: error.is_fatal(),
        }),
        WireMessage::Notice(notice) => Message::Notice(report(&notice)),
        WireMessage::CopyIn => Message::DataWanted,
        WireMessage::CopyOut => Message::DataOffered,
        _ => Message::Other,
    }
}

/// The parts of an error or notice.
fn report<'a>(error: &wire::ServerError<'a>) -> Report<'a> {
    let position = |field| {
        let digits = std::str::from_utf8(error.field(field)?).ok()?;
        digits.parse().ok()
    };
    Report {
        severity: error.field(b'S').unwrap_or_else(|| error.severity()),
        message: error.message(),
        position: position(b'P'),
        inner: error.field(b'q').map(|sql| (sql, position(b'p'))),
        detail: error.detail(),
        hint: error.hint(),
        context: error.field(b'W'),
    }
}

/// What an error of the protocol means to a connection.
fn failure(error: &WireError) -> Failure {
    let message = error.to_string();
    let failure = match (error.server_error(), error) {
        (Some(refusal), _) => Failure::server::<Postgres>(refusal.sqlstate, message),
        (None, WireError::Closed { .. }) => Failure::new(ErrorClass::Connection, message),
        _ => Failure::new(ErrorClass::Protocol, message),
    };
    Failure {
        hint: error.hint(),
        ..failure
    }
}

impl From<WireError> for Unencodable {
    fn from(error: WireError) -> Self {
        Self(error.to_string())
    }
}

impl Frontend for wire::Frontend<'_> {
    fn query(&mut self, sql: &[u8]) -> Result<(), Unencodable> {
        Ok(self.query(sql)?)
    }

    fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), Unencodable> {
        Ok(self.parse(name, sql)?)
    }

    fn execute<'p>(
        &mut self,
        name: &str,
        parameters: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), Unencodable> {
        self.bind_text(name, parameters)?;
        self.describe_portal();
        self.execute();
        Ok(())
    }

    fn execute_plain(&mut self, name: &str, binary: bool) -> Result<(), Unencodable> {
        self.bind_plain(name, binary)?;
        self.describe_portal();
        self.execute();
        Ok(())
    }

    fn close_statement(&mut self, name: &str) -> Result<(), Unencodable> {
        Ok(self.close_statement(name)?)
    }

    fn sync(&mut self) {
        self.sync();
    }

    fn refuse_data(&mut self, reason: &str, synced: bool) -> Result<(), Unencodable> {
        self.copy_fail(reason)?;
        if synced {
            // The server has thrown away the Sync that was sent before the COPY began.
            self.sync();
        }
        Ok(())
    }

    fn terminate(&mut self) {
        self.terminate();
    }

    fn encoded(&mut self, messages: &[u8]) {
        self.encoded(messages);
    }
}

impl Columns for wire::RowDescription<'_> {
    fn columns(&self) -> impl Iterator<Item = Column<'_>> {
        let columns = wire::RowDescription::columns(self).map_while(Result::ok);
        columns.map(|column| Column {
            name: column.name,
            form: form_of(column.type_oid),
            type_oid: column.type_oid,
            is_binary: column.is_binary,
        })
    }
}

impl Row for wire::DataRow<'_> {
    const TEXT_HINT: &'static str = text::HINT;

    #[inline]
    fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        wire::DataRow::values(self).map_while(Result::ok)
    }

    fn cell<'v>(
        form: Form,
        is_binary: bool,
        value: &'v [u8],
        scratch: &'v mut Vec<u8>,
    ) -> Option<Cell<'v>> {
        if is_binary {
            binary::cell(form, value, scratch)
        } else {
            text::cell(form, value, scratch)
        }
    }
}

/// The form of a type of PostgreSQL's catalog (its numbers are fixed in `pg_type.dat`).
fn form_of(type_oid: u32) -> Form {
    match type_oid {
        16 => Form::Bool,
        17 => Form::Bytea,
        20 => Form::Int8,
        21 => Form::Int2,
        23 => Form::Int4,
        26 => Form::Oid,
        // "char", name, text, json, unknown, bpchar, varchar
        18 | 19 | 25 | 114 | 705 | 1042 | 1043 => Form::Text,
        700 => Form::Float4,
        701 => Form::Float8,
        1082 => Form::Date,
        1083 => Form::TimeOfDay,
        1114 | 1184 => Form::Timestamp,
        1186 => Form::Interval,
        1700 => Form::Numeric,
        2950 => Form::Uuid,
        3802 => Form::Jsonb,
        _ => Form::Other,
    }
}

/// The message that begins with these bytes, as a session would tell it.
#[cfg(test)]
pub(crate) fn decoded(bytes: &[u8]) -> Option<Message<'_, Postgres>> {
    let (message, _) = wire::decode(bytes).ok()??;
    Some(translated(wire::Event::Message(message)))
}
