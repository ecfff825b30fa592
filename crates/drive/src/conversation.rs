//! One connection outside of drives, for the few statements before and after them: blocking, in slices of time,
//! so that whoever waits can look at something else in between.

use std::io::{ErrorKind, Read as _};
use std::time::Duration;

use serde::Serialize;
use socket2::Socket;

use crate::client::over;
use crate::clock::now_ns;
use crate::connector::Connector;
use crate::error::DriveError;
use crate::protocol::report::Report;
use crate::protocol::value::Form;
use crate::protocol::{
    Column, Columns as _, Failure, Frontend as _, Message, Protocol, Row as _, Session as _,
};
use crate::record::ErrorClass;
use crate::spec::Connection;

/// Shortest wait that the system knows: zero would be for ever.
const SLICE_MIN: Duration = Duration::from_millis(1);
/// How long one step of a request to cancel may take.
const CANCEL: Duration = Duration::from_secs(1);

/// What a server said of an error, or as a remark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// SQLSTATE of an error, as drives count it; empty for remarks.
    pub state: String,
    /// `ERROR`, `WARNING`, …, in the server's language.
    pub severity: String,
    /// Its words.
    pub message: String,
    /// All that it says, as libpq shows it.
    pub text: String,
}

impl Remark {
    fn of(report: &Report<'_>, sql: &str) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            state: String::new(),
            severity: text(report.severity),
            message: text(report.message),
            text: report.text(sql.as_bytes()),
        }
    }
}

/// One column of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplyColumn {
    /// Its name.
    pub name: String,
    /// Its values are numbers.
    pub numeric: bool,
}

impl ReplyColumn {
    fn of(column: &Column<'_>) -> Self {
        let numeric = matches!(
            column.form,
            Form::Int8 | Form::Oid | Form::Float4 | Form::Float8 | Form::Numeric
        );
        Self {
            name: String::from_utf8_lossy(column.name).into_owned(),
            numeric,
        }
    }
}

/// The whole answer to one statement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// The columns of the rows.
    pub columns: Vec<ReplyColumn>,
    /// Values as the server writes them, `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Why the statement failed, if it did.
    pub error: Option<Remark>,
    /// Remarks that came with it.
    pub notices: Vec<Remark>,
    /// It is complete.
    #[serde(skip)]
    ended: bool,
    /// The statement.
    #[serde(skip)]
    sql: String,
}

impl Reply {
    fn take<P: Protocol>(&mut self, message: &Message<'_, P>) {
        match message {
            Message::Columns(columns) => {
                self.columns = columns.columns().map(|c| ReplyColumn::of(&c)).collect();
            }
            Message::Row(row) => {
                let text = |value: Option<&[u8]>| {
                    value.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                };
                self.rows.push(row.values().map(text).collect());
            }
            Message::Error(error) => {
                self.error = Some(Remark {
                    state: String::from_utf8_lossy(&error.state).into_owned(),
                    ..Remark::of(&error.report, &self.sql)
                });
            }
            Message::Notice(notice) => self.notices.push(Remark::of(notice, &self.sql)),
            Message::Answered { .. } | Message::LoggedIn => self.ended = true,
            _ => {}
        }
    }
}

/// A connection that is logged in, for one statement at a time.
pub struct Conversation(Box<dyn Talk + Send>);

impl Conversation {
    /// Connect and log in, within `limit` altogether.
    pub fn open(connection: &Connection, limit: Duration) -> Result<Self, DriveError> {
        over!(connection.protocol, P => Ok(Self(Box::new(Talker::<P>::open(connection, limit)?))))
    }

    /// Send a statement; [`Self::wait`] has its answer.
    pub fn ask(&mut self, sql: &str) -> Result<(), DriveError> {
        self.0.ask(sql)
    }

    /// The answer, once it is whole; `None` when it is not within `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<Reply>, DriveError> {
        self.0.wait(limit)
    }

    /// A parameter that the server reported at the log-in.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.0.parameter(name)
    }

    /// The server's process that the log-in named; another may serve behind a pooler.
    #[must_use]
    pub fn process_id(&self) -> Option<i32> {
        self.0.process_id()
    }

    /// Ask the server to end the statement in flight; best effort.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

/// A conversation, whichever protocol carries it.
trait Talk {
    fn ask(&mut self, sql: &str) -> Result<(), DriveError>;
    fn wait(&mut self, limit: Duration) -> Result<Option<Reply>, DriveError>;
    fn parameter(&self, name: &str) -> Option<&str>;
    fn process_id(&self) -> Option<i32>;
    fn cancel(&self);
}

struct Talker<P: Protocol> {
    connector: Connector<P>,
    line: Line<P>,
    reply: Reply,
}

impl<P: Protocol> Talker<P> {
    fn open(connection: &Connection, limit: Duration) -> Result<Self, DriveError> {
        let until_ns = after(limit);
        let connector = Connector::<P>::new(connection)?;
        let refused = |failure: Failure| DriveError::Connect {
            address: connector.endpoint.text.clone(),
            message: failure.message,
            hint: failure.hint.to_owned(),
        };
        let line = match Line::open(&connector, &connector.protocol, until_ns) {
            Ok(line) => line,
            Err((failure, None)) => return Err(refused(failure)),
            Err((_, Some(other))) => {
                Line::open(&connector, &other, until_ns).map_err(|(failure, _)| refused(failure))?
            }
        };
        Ok(Self {
            connector,
            line,
            reply: Reply::default(),
        })
    }

    fn lost(&self, failure: Failure) -> DriveError {
        // The server may have said why it ends the session.
        let said = self.reply.error.as_ref().map(|error| error.text.clone());
        DriveError::Connect {
            address: self.connector.endpoint.text.clone(),
            message: said.unwrap_or(failure.message),
            hint: failure.hint.to_owned(),
        }
    }
}

impl<P: Protocol> Talk for Talker<P> {
    fn ask(&mut self, sql: &str) -> Result<(), DriveError> {
        self.reply = Reply {
            sql: sql.to_owned(),
            ..Reply::default()
        };
        let put = self.line.session.frontend().query(sql.as_bytes());
        put.map_err(|error| Failure::script(error.to_string()))
            .and_then(|()| self.line.flush())
            .map_err(|failure| self.lost(failure))
    }

    fn wait(&mut self, limit: Duration) -> Result<Option<Reply>, DriveError> {
        let until_ns = after(limit);
        let heard = self.line.hear(&mut self.reply, until_ns);
        match heard {
            Ok(true) => Ok(Some(std::mem::take(&mut self.reply))),
            Ok(false) => Ok(None),
            Err(failure) => Err(self.lost(failure)),
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.line.session.parameter(name)
    }

    fn process_id(&self) -> Option<i32> {
        self.line.session.process_id()
    }

    fn cancel(&self) {
        if let Some(key) = self.line.session.cancel_key()
            && let Ok(socket) = self.connector.endpoint.connect_within(CANCEL)
        {
            let _ = self.connector.protocol.cancel(&key, socket);
        }
    }
}

impl<P: Protocol> Drop for Talker<P> {
    fn drop(&mut self) {
        self.line.session.frontend().terminate();
        let _ = self.line.flush();
    }
}

/// A session and its socket.
struct Line<P: Protocol> {
    session: P::Session,
    socket: Socket,
}

impl<P: Protocol> Line<P> {
    /// Connect and log in; a failure comes with the settings of a second try, where there is one.
    fn open(
        connector: &Connector<P>,
        protocol: &P,
        until_ns: u64,
    ) -> Result<Self, (Failure, Option<P>)> {
        let socket = connector.endpoint.connect_within(left(until_ns));
        let socket = socket.map_err(|error| (Failure::from(error), None))?;
        let session = protocol.session().map_err(|failure| (failure, None))?;
        let mut line = Self { session, socket };
        match line.hear(&mut Reply::default(), until_ns) {
            Ok(true) => Ok(line),
            Ok(false) => Err((late(), None)),
            Err(failure) => Err((failure, protocol.second_try(&line.session))),
        }
    }

    /// Send all that is pending.
    fn flush(&mut self) -> Result<(), Failure> {
        loop {
            let pending = self.session.pending()?;
            if pending.is_empty() {
                return Ok(());
            }
            let sent = self.socket.send_with_flags(pending, libc::MSG_NOSIGNAL)?;
            self.session.consumed(sent);
        }
    }

    /// Receive until the answer is whole; false when that is not within the time.
    fn hear(&mut self, reply: &mut Reply, until_ns: u64) -> Result<bool, Failure> {
        let mut bytes = [0; 4096];
        while !reply.ended {
            self.flush()?;
            self.socket.set_read_timeout(Some(left(until_ns)))?;
            match self.socket.read(&mut bytes) {
                Ok(0) => return Err(self.session.closed()),
                Ok(count) => {
                    let session = &mut self.session;
                    session.receive(&bytes[..count], &mut |message| reply.take(&message))?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }
}

fn after(limit: Duration) -> u64 {
    now_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

fn left(until_ns: u64) -> Duration {
    Duration::from_nanos(until_ns.saturating_sub(now_ns())).max(SLICE_MIN)
}

fn late() -> Failure {
    Failure::new(ErrorClass::Timeout, "the log-in takes too long")
}
