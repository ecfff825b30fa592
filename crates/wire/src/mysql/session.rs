//! The client's side of one connection.

mod commands;
mod execute;

use std::collections::BTreeMap;
use std::sync::Arc;

use mysql_common::constants::CapabilityFlags;
use rustls::ClientConfig;
use zeroize::Zeroize as _;

use self::commands::{Await, Current, Preparing};
use self::execute::Statement;
use super::column::Definitions;
use super::login::{LogIn, Phase};
use super::packet::{HEADER_BYTES, PAYLOAD_MAX, Packet, announced_bytes, split};
use super::placeholders::{Translated, translate};
use super::{Columns, Frontend, MysqlError, Row, ServerError, Settings, frames};
use crate::postgres::tls::Tunnel;

/// A buffer that held more than this is given back when it runs empty.
const KEPT_BYTES_MAX: usize = 16 * 1024;
/// The longest message of a server.
const MESSAGE_MAX: usize = 1 << 30;
/// Packets of a log-in are short: a longer one is another protocol's.
const LOGIN_PACKET_MAX: usize = 64 * 1024;

/// What a session has to tell.
#[derive(Debug)]
pub enum Event<'a> {
    /// The log-in is complete and statements may be sent.
    Ready,
    /// A statement was prepared.
    Prepared,
    /// The columns of the rows that follow.
    Columns(Columns<'a>),
    /// One row.
    Row(Row<'a>),
    /// A result is complete.
    Done {
        /// Rows that were changed.
        affected: u64,
    },
    /// A query, or all up to one [`Frontend::sync`], is answered.
    Answered {
        /// The session is in a transaction.
        in_transaction: bool,
    },
    /// A statement failed, or the connection did.
    Error(ServerError<'a>),
    /// The server waits for the data of a `LOAD DATA LOCAL`.
    DataWanted,
}

/// One connection to a server, without the socket; used as [`crate::postgres::Session`] is.
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Session {
    settings: Arc<Settings>,
    tls_config: Option<Arc<ClientConfig>>,
    /// `None` once the session is ready.
    login: Option<Box<LogIn>>,
    tunnel: Option<Box<Tunnel>>,
    /// The beginning of a packet whose end has not arrived.
    tail: Vec<u8>,
    /// The beginning of a message whose next packet has not arrived.
    joined: Vec<u8>,
    is_joining: bool,
    /// The number of the next packet, theirs or ours.
    sequence: u8,
    /// Packets to send; those before `sent` are gone already.
    out: Vec<u8>,
    sent: usize,
    /// Frames that wait for the answer to what was sent; those before `taken` are gone already.
    queue: Vec<u8>,
    taken: usize,
    awaits: Await,
    current: Current,
    /// After an error: what follows is dropped up to the next sync.
    is_skipping: bool,
    statements: BTreeMap<Box<str>, Statement>,
    preparing: Preparing,
    scratch: Translated,
    definitions: Definitions,
    in_transaction: bool,
    /// The server ends rows and definitions by EOF packets.
    has_eof: bool,
    connection_id: u32,
    tls_in_use: bool,
    failed: bool,
}

impl Session {
    /// A session that waits for the server's greeting.
    ///
    /// `tls` is needed for every `sslmode` that demands TLS; without it, `prefer` stays plain.
    pub fn new(
        settings: Arc<Settings>,
        tls: Option<Arc<ClientConfig>>,
    ) -> Result<Self, MysqlError> {
        if tls.is_none() && settings.tls.demands_tls() && !settings.unix_socket {
            return Err(MysqlError::TlsNotConfigured);
        }
        for (what, text) in [
            ("the user's name", &settings.user),
            ("the database's name", &settings.database),
        ] {
            if text.contains('\0') {
                let reason = "it contains a NUL byte".to_owned();
                return Err(MysqlError::Unencodable { what, reason });
            }
        }
        Ok(Self {
            settings,
            tls_config: tls,
            login: Some(Box::new(LogIn::new())),
            tunnel: None,
            tail: Vec::new(),
            joined: Vec::new(),
            is_joining: false,
            sequence: 0,
            out: Vec::new(),
            sent: 0,
            queue: Vec::new(),
            taken: 0,
            awaits: Await::Nothing,
            current: Current::default(),
            is_skipping: false,
            statements: BTreeMap::new(),
            preparing: Preparing::default(),
            scratch: Translated::default(),
            definitions: Definitions::default(),
            in_transaction: false,
            has_eof: false,
            connection_id: 0,
            tls_in_use: false,
            failed: false,
        })
    }

    /// Takes bytes that arrived; tells what they mean. Any split of the bytes gives the same events.
    ///
    /// After an error the session is dead.
    pub fn receive(
        &mut self,
        input: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        if self.failed {
            return Err(MysqlError::AlreadyFailed);
        }
        let outcome = match self.tunnel.take() {
            None => self.feed(input, on_event),
            Some(mut tunnel) => {
                let outcome = self.receive_tls(&mut tunnel, input, on_event);
                self.tunnel = Some(tunnel);
                outcome
            }
        };
        self.failed = outcome.is_err();
        outcome
    }

    /// The server closed the connection: why the session failed.
    pub fn closed(&mut self) -> MysqlError {
        if self.failed {
            return MysqlError::AlreadyFailed;
        }
        self.failed = true;
        let when = match &self.login {
            Some(_) => "during the log-in",
            None if self.tail.is_empty() => "without sending a message",
            None => "in the middle of a message",
        };
        MysqlError::Closed { when }
    }

    /// For appending messages. They are sent after the log-in's own.
    pub fn frontend(&mut self) -> Frontend<'_> {
        Frontend::new(self)
    }

    /// The bytes to put on the socket now; empty when there is nothing to send.
    pub fn pending(&mut self) -> Result<&[u8], MysqlError> {
        match &mut self.tunnel {
            None => Ok(&self.out[self.sent..]),
            Some(tunnel) => {
                if !self.out.is_empty() {
                    tunnel.encrypt(&self.out)?;
                    clear_sent(&mut self.out, self.login.is_some());
                }
                Ok(tunnel.pending()?)
            }
        }
    }

    /// The first `count` bytes of [`Self::pending`] were sent.
    pub fn consumed(&mut self, count: usize) {
        if let Some(tunnel) = &mut self.tunnel {
            tunnel.consumed(count);
            return;
        }
        self.sent = (self.sent + count).min(self.out.len());
        if self.sent == self.out.len() {
            self.sent = 0;
            clear_sent(&mut self.out, self.login.is_some());
            self.enter_tunnel();
        }
    }

    /// Whether the log-in is complete.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.login.is_none()
    }

    /// The server's number of this connection, for `KILL QUERY`.
    #[must_use]
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn tls_in_use(&self) -> bool {
        self.tls_in_use
    }

    pub(super) fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queue
    }

    pub(super) fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), MysqlError> {
        translate(sql, &mut self.scratch);
        frames::prepare(name, &self.scratch, &mut self.queue)
    }

    /// The request for TLS is sent: what follows goes through the tunnel.
    fn enter_tunnel(&mut self) {
        let Some(login) = &mut self.login else { return };
        if matches!(login.phase, Phase::TlsRequested(_))
            && let Phase::TlsRequested(tunnel) =
                std::mem::replace(&mut login.phase, Phase::TlsHandshake)
        {
            self.tunnel = Some(tunnel);
        }
    }

    fn receive_tls(
        &mut self,
        tunnel: &mut Tunnel,
        mut input: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        while !input.is_empty() {
            input = tunnel.receive(input)?;
            self.begin_inside(tunnel)?;
            let mut failed = None;
            tunnel.decrypted(&mut |plain| {
                if failed.is_none() {
                    failed = self.feed(plain, on_event).err();
                }
                Ok(())
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Once the handshake is done, we say who we are, encrypted.
    fn begin_inside(&mut self, tunnel: &Tunnel) -> Result<(), MysqlError> {
        match &mut self.login {
            Some(login)
                if matches!(login.phase, Phase::TlsHandshake) && tunnel.is_established() =>
            {
                login.phase = Phase::Authentication;
                self.tls_in_use = true;
                login.put_response(&self.settings, true, &mut self.out, &mut self.sequence)
            }
            _ => Ok(()),
        }
    }

    /// Plain bytes of the protocol: whole packets are read where they are, the rest is kept.
    fn feed(
        &mut self,
        input: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let mut rest = input;
        if !self.tail.is_empty() {
            rest = self.complete_tail(rest, on_event)?;
        }
        loop {
            self.check_plain(rest)?;
            let Some(packet) = split(rest) else { break };
            self.packet(packet, on_event)?;
            rest = &rest[packet.size_bytes()..];
        }
        self.tail.extend_from_slice(rest);
        Ok(())
    }

    /// Refuses bytes that cannot be: plain ones where TLS begins, and packets that no log-in has.
    fn check_plain(&self, rest: &[u8]) -> Result<(), MysqlError> {
        let Some(login) = &self.login else {
            return Ok(());
        };
        let expects_tls = matches!(login.phase, Phase::TlsRequested(_) | Phase::TlsHandshake);
        if expects_tls && !rest.is_empty() {
            return Err(MysqlError::UnencryptedBytes);
        }
        if announced_bytes(rest).is_some_and(|length| length > LOGIN_PACKET_MAX) {
            return Err(MysqlError::Malformed { what: "log-in" });
        }
        Ok(())
    }

    /// Appends to the kept beginning until its packet is whole; returns what follows it.
    fn complete_tail<'i>(
        &mut self,
        input: &'i [u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<&'i [u8], MysqlError> {
        let mut rest = input;
        loop {
            let wanted = announced_bytes(&self.tail).unwrap_or(HEADER_BYTES);
            let take = wanted.saturating_sub(self.tail.len()).min(rest.len());
            if take == 0 {
                break;
            }
            self.tail.extend_from_slice(&rest[..take]);
            rest = &rest[take..];
            self.check_plain(&self.tail)?;
        }
        let mut tail = std::mem::take(&mut self.tail);
        if let Some(packet) = split(&tail) {
            self.packet(packet, on_event)?;
            keep_empty(&mut tail);
        }
        self.tail = tail;
        Ok(rest)
    }

    /// One packet: a message of its own, or a part of a long one.
    #[inline]
    fn packet(
        &mut self,
        packet: Packet<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        // Errors may come at any time, out of their turn: killed, shut down.
        let is_error = !self.is_joining && packet.payload.first() == Some(&super::answer::ERROR);
        if packet.sequence != self.sequence && !is_error {
            return Err(MysqlError::OutOfOrder {
                expected: self.sequence,
                got: packet.sequence,
            });
        }
        self.sequence = packet.sequence.wrapping_add(1);
        if packet.payload.len() < PAYLOAD_MAX && !self.is_joining {
            return self.message(packet.payload, on_event);
        }
        if self.joined.len() + packet.payload.len() > MESSAGE_MAX {
            return Err(MysqlError::MessageTooLarge);
        }
        self.joined.extend_from_slice(packet.payload);
        self.is_joining = packet.payload.len() == PAYLOAD_MAX;
        if self.is_joining {
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.joined);
        self.message(&joined, on_event)?;
        keep_empty(&mut joined);
        self.joined = joined;
        Ok(())
    }

    fn message(
        &mut self,
        payload: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), MysqlError> {
        let Some(mut login) = self.login.take() else {
            return self.answer(payload, on_event);
        };
        let ready = self.log_in(&mut login, payload);
        if let Ok(true) = ready {
            self.forget_login(&login);
            on_event(Event::Ready);
            self.advance();
        } else {
            self.login = Some(login);
        }
        ready.map(|_| ())
    }

    /// One packet of the log-in; true when it was the last.
    fn log_in(&mut self, login: &mut LogIn, payload: &[u8]) -> Result<bool, MysqlError> {
        let (settings, tls) = (&self.settings, self.tls_in_use);
        let (out, sequence) = (&mut self.out, &mut self.sequence);
        match login.phase {
            Phase::Greeting => {
                let config = self.tls_config.as_ref();
                if !login.greeting(payload, settings, config.is_some())? {
                    login.phase = Phase::Authentication;
                    login.put_response(settings, tls, out, sequence)?;
                } else if let Some(config) = config {
                    login.put_tls_request(out, sequence);
                    let tunnel = Tunnel::client(config, &settings.host)?;
                    login.phase = Phase::TlsRequested(Box::new(tunnel));
                }
            }
            Phase::TlsRequested(_) | Phase::TlsHandshake => {
                return Err(MysqlError::UnencryptedBytes);
            }
            Phase::Authentication => {
                let accepted = login.receive(payload, settings, tls, out, sequence)?;
                if accepted && settings.first_statement.is_empty() {
                    return Ok(true);
                }
                if accepted {
                    login.phase = Phase::FirstStatement;
                    commands::put_query(settings.first_statement.as_bytes(), out, sequence);
                }
            }
            Phase::FirstStatement => return commands::first_answer(payload),
        }
        Ok(false)
    }

    /// Idle sessions are many: nothing of the log-in stays.
    fn forget_login(&mut self, login: &LogIn) {
        self.connection_id = login.connection_id;
        let capabilities = login.capabilities;
        self.has_eof = !capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
        self.tail = Vec::new();
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Buffers may hold secrets.
        f.debug_struct("Session")
            .field("settings", &self.settings)
            .field("ready", &self.is_ready())
            .field("tls_in_use", &self.tls_in_use)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// Empties a buffer whose bytes are gone; `wipe` when a password may have been among them.
fn clear_sent(out: &mut Vec<u8>, wipe: bool) {
    if wipe {
        out.as_mut_slice().zeroize();
    }
    keep_empty(out);
}

fn keep_empty(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new();
    } else {
        buffer.clear();
    }
}
