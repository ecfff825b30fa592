//! Commands, one at a time, and what the server answers to each.

use super::execute::{NO_STATEMENT, Statement, put_execute, put_execute_head};
use super::{Event, Session};
use crate::mysql::answer::{DATA_WANTED, END, ERROR, OK, PrepareOk, Status};
use crate::mysql::column::Definitions;
use crate::mysql::frames::{self, Kind, Parameters};
use crate::mysql::login::refusal;
use crate::mysql::packet::{self, PAYLOAD_MAX};
use crate::mysql::reader::Reader;
use crate::mysql::row::RowForm;
use crate::mysql::{Columns, MysqlError, Row, ServerError};

const COM_QUIT: u8 = 0x01;
const COM_QUERY: u8 = 0x03;
const COM_PING: u8 = 0x0E;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_CLOSE: u8 = 0x19;

/// A statement that servers run as text only.
const NOT_PREPARABLE: u16 = 1295;

/// What is to arrive next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Await {
    Nothing,
    /// The first packet of a result.
    Result,
    Definitions {
        left: usize,
    },
    DefinitionsEnd,
    Rows,
    /// The first packet of the answer to a prepare.
    Prepared,
    /// The others.
    PreparedRest {
        left: u32,
        parameters: u16,
    },
    /// Nothing: the server waits for data.
    Data,
    Pong,
}

/// The command under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Current {
    /// It is answered by itself.
    is_query: bool,
    form: RowForm,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            is_query: true,
            form: RowForm::Text,
        }
    }
}

/// The statement that is being prepared.
#[derive(Debug, Default)]
pub(super) struct Preparing {
    name: String,
    order: Vec<u16>,
    sql: Vec<u8>,
    id: u32,
}

pub(super) fn put_query(sql: &[u8], out: &mut Vec<u8>, sequence: &mut u8) {
    *sequence = 0;
    packet::put(out, sequence, |out| {
        out.push(COM_QUERY);
        out.extend_from_slice(sql);
    });
}

/// The answer to the first statement: true, or why it failed.
pub(super) fn first_answer(payload: &[u8]) -> Result<bool, MysqlError> {
    match payload.first() {
        Some(&OK) => Ok(true),
        Some(&ERROR) => Err(refusal(payload)),
        _ => Err(MysqlError::Malformed {
            what: "answer to the session's first statement",
        }),
    }
}

impl Session {
    /// Sends what can be sent now.
    pub(in crate::mysql) fn advance(&mut self) {
        self.go_on(None);
    }

    pub(in crate::mysql) fn refuse_data(&mut self) {
        if self.awaits == Await::Data {
            packet::put(&mut self.out, &mut self.sequence, |_| {});
            self.awaits = Await::Result;
        }
    }

    /// Takes frames from the queue as far as the protocol allows; `on_event` where answers may be told.
    fn go_on(&mut self, mut on_event: Option<&mut dyn FnMut(Event<'_>)>) {
        if self.login.is_some() {
            return;
        }
        let mut queue = std::mem::take(&mut self.queue);
        while let Some((kind, body, length)) = frames::first(&queue[self.taken..]) {
            let taken = match (self.awaits, kind) {
                (Await::Data, Kind::Data | Kind::DataEnd) => {
                    self.put_data(kind, body);
                    true
                }
                (Await::Nothing, Kind::Sync) => {
                    self.sync(&mut on_event);
                    true
                }
                (Await::Nothing, _) => {
                    self.begin(kind, body);
                    true
                }
                _ => false,
            };
            if !taken {
                break;
            }
            self.taken += length;
        }
        if self.taken == queue.len() {
            self.taken = 0;
            super::keep_empty(&mut queue);
        }
        self.queue = queue;
    }

    fn put_data(&mut self, kind: Kind, body: &[u8]) {
        let (out, sequence) = (&mut self.out, &mut self.sequence);
        // An empty packet would be the end.
        if kind == Kind::DataEnd {
            packet::put(out, sequence, |_| {});
            self.awaits = Await::Result;
        }
        for piece in body.chunks(PAYLOAD_MAX - 1) {
            packet::put(out, sequence, |out| out.extend_from_slice(piece));
        }
    }

    /// Tells that all is answered. Where nothing can be told now, a ping brings an answer.
    fn sync(&mut self, on_event: &mut Option<&mut dyn FnMut(Event<'_>)>) {
        self.is_skipping = false;
        let in_transaction = self.in_transaction;
        match on_event {
            Some(on_event) => on_event(Event::Answered { in_transaction }),
            None => self.command(COM_PING, Await::Pong, |_| {}),
        }
    }

    fn command(&mut self, command: u8, awaits: Await, fill: impl FnOnce(&mut Vec<u8>)) {
        self.sequence = 0;
        packet::put(&mut self.out, &mut self.sequence, |out| {
            out.push(command);
            fill(out);
        });
        self.awaits = awaits;
    }

    fn begin(&mut self, kind: Kind, body: &[u8]) {
        match kind {
            Kind::Query => {
                self.is_skipping = false;
                self.current = Current::default();
                self.command(COM_QUERY, Await::Result, |out| out.extend_from_slice(body));
            }
            Kind::Quit => self.command(COM_QUIT, Await::Nothing, |_| {}),
            // Data that the server did not ask for goes nowhere.
            Kind::Data | Kind::DataEnd | Kind::Sync => {}
            _ if self.is_skipping => {}
            Kind::Prepare => self.begin_prepare(Reader(body)),
            Kind::Execute => self.begin_execute(Reader(body)),
            Kind::Close => {
                if let Some(name) = frames::name(&mut Reader(body)) {
                    self.forget_statement(name);
                }
            }
        }
    }

    fn forget_statement(&mut self, name: &str) {
        if let Some(statement) = self.statements.remove(name)
            && statement.text.is_none()
        {
            // It has no answer.
            self.command(COM_STMT_CLOSE, Await::Nothing, |out| {
                out.extend_from_slice(&statement.id.to_le_bytes());
            });
        }
    }

    fn begin_prepare(&mut self, mut body: Reader<'_>) {
        let name = frames::name(&mut body).unwrap_or_default();
        self.forget_statement(name);
        let mut preparing = std::mem::take(&mut self.preparing);
        preparing.name.clear();
        preparing.name.push_str(name);
        preparing.order.clear();
        let count = body.u16().unwrap_or(0);
        preparing.order.extend((0..count).map_while(|_| body.u16()));
        preparing.sql.clear();
        preparing.sql.extend_from_slice(body.0);
        self.current.is_query = false;
        self.command(COM_STMT_PREPARE, Await::Prepared, |out| {
            out.extend_from_slice(body.0);
        });
        self.preparing = preparing;
    }

    fn begin_execute(&mut self, mut body: Reader<'_>) {
        let name = frames::name(&mut body).unwrap_or_default();
        let is_binary = body.u8() == Some(1);
        let form = if is_binary {
            RowForm::Binary
        } else {
            RowForm::BinaryAsText
        };
        let mut current = Current {
            is_query: false,
            form,
        };
        let (out, sequence) = (&mut self.out, &mut self.sequence);
        *sequence = 0;
        match self.statements.get(name) {
            Some(Statement {
                text: Some(sql), ..
            }) => {
                current.form = RowForm::Text;
                put_query(sql, out, sequence);
            }
            Some(statement) => packet::put(out, sequence, |out| {
                put_execute(statement, &Parameters(body), out);
            }),
            None => packet::put(out, sequence, |out| put_execute_head(NO_STATEMENT, out)),
        }
        self.current = current;
        self.awaits = Await::Result;
    }

    /// One packet of an answer.
    #[inline]
    pub(super) fn answer(
        &mut self,
        payload: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let Some(&first) = payload.first() else {
            return Err(MysqlError::Malformed { what: "answer" });
        };
        // A row that begins so has a value of more than 16 MiB.
        let ends = first == END && payload.len() < PAYLOAD_MAX;
        match self.awaits {
            _ if first == ERROR => self.failed_statement(payload, on_event)?,
            Await::Rows if ends => self.end_result(payload, on_event)?,
            Await::Rows => on_event(Event::Row(Row::new(
                payload,
                &self.definitions.all,
                self.current.form,
            ))),
            Await::Result if first == OK => self.end_result(payload, on_event)?,
            Await::Result if first == DATA_WANTED => {
                self.awaits = Await::Data;
                on_event(Event::DataWanted);
                self.go_on(Some(on_event));
            }
            Await::Result => {
                self.definitions.clear();
                let left = Definitions::count(payload)?;
                self.awaits = Await::Definitions { left };
                self.define(None, on_event)?;
            }
            Await::Definitions { .. } => self.define(Some(payload), on_event)?,
            Await::DefinitionsEnd if ends => self.begin_rows(on_event),
            Await::Prepared => self.prepared(payload, on_event)?,
            Await::PreparedRest { left, parameters } => {
                self.prepared_rest(left - 1, parameters, on_event);
            }
            Await::Pong if first == OK => {
                self.in_transaction = Status::of_ok(payload)?.in_transaction();
                self.awaits = Await::Nothing;
                let in_transaction = self.in_transaction;
                on_event(Event::Answered { in_transaction });
                self.go_on(Some(on_event));
            }
            Await::Nothing | Await::Data | Await::Pong | Await::DefinitionsEnd => {
                let state = "where none or another was due";
                return Err(MysqlError::UnexpectedPacket { first, state });
            }
        }
        Ok(())
    }

    /// Takes the definition of one column, if there is one; begins the rows after the last.
    fn define(
        &mut self,
        payload: Option<&[u8]>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let Await::Definitions { mut left } = self.awaits else {
            return Ok(());
        };
        if let Some(payload) = payload {
            self.definitions.push(payload)?;
            left -= 1;
        }
        self.awaits = Await::Definitions { left };
        match (left, self.has_eof) {
            (0, true) => self.awaits = Await::DefinitionsEnd,
            (0, false) => self.begin_rows(on_event),
            _ => {}
        }
        Ok(())
    }

    fn begin_rows(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        self.awaits = Await::Rows;
        on_event(Event::Columns(Columns {
            definitions: &self.definitions,
            is_binary: self.current.form == RowForm::Binary,
        }));
    }

    /// A result is complete: by OK, or by EOF where the server still sends that.
    fn end_result(
        &mut self,
        payload: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let status = if self.has_eof && payload.first() == Some(&END) {
            Status::of_eof(payload)?
        } else {
            Status::of_ok(payload)?
        };
        self.in_transaction = status.in_transaction();
        let affected = status.affected();
        on_event(Event::Done { affected });
        if status.has_more() {
            self.awaits = Await::Result;
        } else {
            self.end_command(on_event);
        }
        Ok(())
    }

    fn end_command(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        self.awaits = Await::Nothing;
        if self.current.is_query {
            let in_transaction = self.in_transaction;
            on_event(Event::Answered { in_transaction });
        }
        self.go_on(Some(on_event));
    }

    fn failed_statement(
        &mut self,
        payload: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let error = ServerError::read(payload).ok_or(MysqlError::Malformed {
            what: "error packet",
        })?;
        if self.awaits == Await::Prepared
            && error.code == NOT_PREPARABLE
            && self.preparing.order.is_empty()
        {
            let sql = self.preparing.sql.clone();
            self.know_statement(Some(sql));
            self.end_prepare(on_event);
            return Ok(());
        }
        self.fail(error, on_event);
        Ok(())
    }

    fn fail(&mut self, error: ServerError<'_>, on_event: &mut dyn FnMut(Event<'_>)) {
        let awaited = self.awaits;
        on_event(Event::Error(error));
        if awaited != Await::Nothing {
            self.current.is_query |= awaited == Await::Pong;
            self.is_skipping = !self.current.is_query;
            self.end_command(on_event);
        }
    }

    fn prepared(
        &mut self,
        payload: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let ok = PrepareOk::read(payload)?;
        self.preparing.id = ok.id;
        self.prepared_rest(ok.packets(self.has_eof), ok.parameters, on_event);
        Ok(())
    }

    /// So many packets are left of the answer to a prepare.
    fn prepared_rest(&mut self, left: u32, parameters: u16, on_event: &mut dyn FnMut(Event<'_>)) {
        if left > 0 {
            self.awaits = Await::PreparedRest { left, parameters };
            return;
        }
        self.know_statement(None);
        if usize::from(parameters) == self.preparing.order.len() {
            return self.end_prepare(on_event);
        }
        let error = ServerError {
            code: 1210,
            sqlstate: *b"HY000",
            message: b"the statement has another number of parameters at the server: write them as $1, $2 and so on",
        };
        self.fail(error, on_event);
    }

    fn know_statement(&mut self, text: Option<Vec<u8>>) {
        let statement = Statement {
            id: self.preparing.id,
            order: self.preparing.order.clone(),
            text,
        };
        let name = self.preparing.name.as_str().into();
        self.statements.insert(name, statement);
    }

    fn end_prepare(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        self.awaits = Await::Nothing;
        on_event(Event::Prepared);
        self.go_on(Some(on_event));
    }
}
