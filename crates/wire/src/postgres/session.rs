//! The client's side of one connection.

use std::sync::Arc;

use bytes::BytesMut;
use rustls::ClientConfig;
use zeroize::Zeroize as _;

use super::backend::{HEADER_BYTES, Raw, announced_bytes, split, understand};
use super::parameters::Parameters;
use super::startup::{Phase, StartUp, retry_mode, send_startup_message};
use super::tls::Tunnel;
use super::{Authentication, Frontend, Message, ServerError, Settings, TlsMode, WireError};

/// A buffer that held more than this is given back when it runs empty.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// What a session has to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The start-up is complete and queries may be sent.
    Ready,
    /// A message of the server; also notices and parameters during the start-up.
    Message(Message<'a>),
}

/// One connection to a server, without the socket.
///
/// ```text
/// socket.write(session.pending()?); session.consumed(written);
/// session.receive(read_bytes, &mut |event| …)?;
/// session.frontend().query(b"SELECT 1")?;
/// ```
pub struct Session {
    settings: Arc<Settings>,
    tls_config: Option<Arc<ClientConfig>>,
    /// `None` once the session is ready.
    startup: Option<Box<StartUp>>,
    tunnel: Option<Box<Tunnel>>,
    /// The beginning of a message whose end has not arrived.
    tail: Vec<u8>,
    /// Messages to send; those before `sent` are gone already.
    out: BytesMut,
    sent: usize,
    backend_key: Option<(i32, Box<[u8]>)>,
    parameters: Parameters,
    tls_in_use: bool,
    authentication: Authentication,
    retry: Option<TlsMode>,
    failed: bool,
}

impl Session {
    /// A session whose first bytes are pending.
    ///
    /// `tls` is needed for every `sslmode` that demands TLS; without it, `allow` and `prefer` stay plain.
    pub fn new(settings: Arc<Settings>, tls: Option<Arc<ClientConfig>>) -> Result<Self, WireError> {
        let mut out = BytesMut::new();
        let startup = StartUp::begin(&settings, tls.is_some(), &mut out)?;
        Ok(Self {
            settings,
            tls_config: tls,
            startup: Some(Box::new(startup)),
            tunnel: None,
            tail: Vec::new(),
            out,
            sent: 0,
            backend_key: None,
            parameters: Parameters::default(),
            tls_in_use: false,
            authentication: Authentication::None,
            retry: None,
            failed: false,
        })
    }

    /// Takes bytes that arrived; tells what they mean. Any split of the bytes gives the same events.
    ///
    /// After an error the session is dead, but [`Self::pending`] may still hold a last word (a TLS alert).
    pub fn receive(
        &mut self,
        input: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), WireError> {
        if self.failed {
            return Err(WireError::AlreadyFailed);
        }
        let outcome = match self.tunnel.take() {
            None => self.receive_outside_tls(input, on_event),
            Some(mut tunnel) => {
                let outcome = self.receive_tls(&mut tunnel, input, on_event);
                self.tunnel = Some(tunnel);
                outcome
            }
        };
        outcome.inspect_err(|error| self.note_failure(error))
    }

    /// The server closed the connection: why the session failed.
    pub fn closed(&mut self) -> WireError {
        if self.failed {
            return WireError::AlreadyFailed;
        }
        let when = match &self.startup {
            Some(_) => "during the log-in",
            None if self.tail.is_empty() => "without sending a message",
            None => "in the middle of a message",
        };
        let error = WireError::Closed { when };
        self.note_failure(&error);
        error
    }

    /// For appending messages. They are sent after the start-up's own.
    pub fn frontend(&mut self) -> Frontend<'_> {
        Frontend::new(&mut self.out)
    }

    /// The bytes to put on the socket now; empty when there is nothing to send.
    pub fn pending(&mut self) -> Result<&[u8], WireError> {
        match &mut self.tunnel {
            None => Ok(&self.out[self.sent..]),
            Some(tunnel) => {
                if !self.out.is_empty() {
                    tunnel.encrypt(&self.out)?;
                    clear_sent(&mut self.out, self.startup.is_some());
                }
                tunnel.pending()
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
            clear_sent(&mut self.out, self.startup.is_some());
        }
    }

    /// Whether the start-up is complete.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.startup.is_none()
    }

    /// Process id and secret for [`super::cancel_request`].
    #[must_use]
    pub fn backend_key(&self) -> Option<(i32, &[u8])> {
        self.backend_key
            .as_ref()
            .map(|(process_id, secret)| (*process_id, &**secret))
    }

    /// A run-time parameter that the server reported, such as `server_version`.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name)
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn tls_in_use(&self) -> bool {
        self.tls_in_use
    }

    /// How the session proved who it is. `Cleartext` without TLS deserves a warning.
    #[must_use]
    pub fn authentication(&self) -> Authentication {
        self.authentication
    }

    /// Whether the log-in was bound to the server's certificate.
    #[must_use]
    pub fn channel_binding_used(&self) -> bool {
        self.authentication == Authentication::ScramSha256Plus
    }

    /// After an error: settings for a second try on a new connection, where libpq would make one
    /// (`sslmode=allow` and `prefer`). Use the same TLS configuration.
    #[must_use]
    pub fn retry_settings(&self) -> Option<Settings> {
        self.retry.map(|tls| Settings {
            tls,
            ..Settings::clone(&self.settings)
        })
    }

    fn note_failure(&mut self, error: &WireError) {
        self.failed = true;
        if let Some(startup) = &self.startup {
            let available = self.tls_config.is_some();
            self.retry = retry_mode(
                &self.settings,
                startup.phase,
                self.tls_in_use,
                available,
                error,
            );
        }
    }

    fn receive_outside_tls(
        &mut self,
        input: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), WireError> {
        match &self.startup {
            Some(startup) if startup.phase == Phase::TlsReply => {
                let Some((reply, rest)) = input.split_first() else {
                    return Ok(());
                };
                self.receive_tls_reply(*reply, rest)?;
                if self.tunnel.is_some() {
                    Ok(())
                } else {
                    self.feed(rest, on_event)
                }
            }
            _ => self.feed(input, on_event),
        }
    }

    /// The answer to `SSLRequest`.
    fn receive_tls_reply(&mut self, reply: u8, rest: &[u8]) -> Result<(), WireError> {
        match (reply, &self.tls_config) {
            (b'S', _) if !rest.is_empty() => Err(WireError::UnencryptedBytes),
            (b'S', Some(config)) => {
                self.tunnel = Some(Box::new(Tunnel::client(config, &self.settings.host)?));
                self.enter(Phase::TlsHandshake);
                Ok(())
            }
            (b'N', _) if self.settings.tls.demands_tls() => Err(WireError::TlsRefused),
            (b'N', _) => {
                self.enter(Phase::Authentication);
                send_startup_message(&self.settings, &mut self.out)
            }
            (tag, _) => Err(WireError::UnexpectedMessage {
                tag,
                state: "in answer to SSLRequest",
            }),
        }
    }

    fn enter(&mut self, phase: Phase) {
        if let Some(startup) = &mut self.startup {
            startup.phase = phase;
        }
    }

    fn receive_tls(
        &mut self,
        tunnel: &mut Tunnel,
        mut input: &[u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), WireError> {
        while !input.is_empty() {
            input = tunnel.receive(input)?;
            self.begin_inside(tunnel)?;
            tunnel.decrypted(&mut |plain| self.feed(plain, on_event))?;
        }
        Ok(())
    }

    /// Once the handshake is done, the start-up message goes out, encrypted.
    fn begin_inside(&mut self, tunnel: &Tunnel) -> Result<(), WireError> {
        match &mut self.startup {
            Some(startup) if startup.phase == Phase::TlsHandshake && tunnel.is_established() => {
                startup.server_end_point = tunnel.server_end_point();
                startup.phase = Phase::Authentication;
                self.tls_in_use = true;
                send_startup_message(&self.settings, &mut self.out)
            }
            _ => Ok(()),
        }
    }

    /// Plain bytes of the protocol: whole messages are decoded where they are, the rest is kept.
    fn feed(&mut self, input: &[u8], on_event: &mut dyn FnMut(Event<'_>)) -> Result<(), WireError> {
        let mut rest = input;
        if !self.tail.is_empty() {
            rest = self.complete_tail(rest, on_event)?;
        }
        while let Some(raw) = split(rest)? {
            self.dispatch(raw, on_event)?;
            rest = &rest[raw.size_bytes()..];
        }
        if let Some(tag) = rest.first() {
            // Garbage is named at once, not after the gigabyte that it may announce.
            refuse_unknown(*tag)?;
            self.tail.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Appends to the kept beginning until its message is whole; returns what follows it.
    fn complete_tail<'i>(
        &mut self,
        input: &'i [u8],
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<&'i [u8], WireError> {
        let mut rest = input;
        loop {
            let wanted = announced_bytes(&self.tail)?.unwrap_or(HEADER_BYTES);
            let take = wanted.saturating_sub(self.tail.len()).min(rest.len());
            if take == 0 {
                break;
            }
            self.tail.extend_from_slice(&rest[..take]);
            rest = &rest[take..];
        }
        let mut tail = std::mem::take(&mut self.tail);
        let whole = split(&tail)?;
        if let Some(raw) = whole {
            self.dispatch(raw, on_event)?;
            tail.clear();
            if tail.capacity() > KEPT_BYTES_MAX {
                tail = Vec::new();
            }
        }
        self.tail = tail;
        Ok(rest)
    }

    #[expect(
        clippy::inline_always,
        reason = "a result passed by memory costs four times the decoding"
    )]
    #[inline(always)]
    fn dispatch(
        &mut self,
        raw: Raw<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), WireError> {
        if self.startup.is_some() {
            return self.dispatch_startup(raw, on_event);
        }
        let message = understand(raw)?;
        if matches!(message, Message::ParameterStatus) {
            self.parameters.remember(raw.body)?;
        }
        on_event(Event::Message(message));
        Ok(())
    }

    fn dispatch_startup(
        &mut self,
        raw: Raw<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), WireError> {
        let Some(mut startup) = self.startup.take() else {
            return Ok(());
        };
        let outcome = self.log_in(&mut startup, raw, on_event);
        let ready = matches!(outcome, Ok(true));
        if ready {
            self.forget_startup();
            on_event(Event::Ready);
        } else {
            self.startup = Some(startup);
        }
        outcome.map(|_| ())
    }

    /// One message of the start-up; true when it was the last.
    fn log_in(
        &mut self,
        startup: &mut StartUp,
        raw: Raw<'_>,
        on_event: &mut dyn FnMut(Event<'_>),
    ) -> Result<bool, WireError> {
        match (startup.phase, raw.tag) {
            (_, b'E') => return Err(refusal(ServerError::new(raw.body))),
            (_, b'N') => on_event(Event::Message(understand(raw)?)),
            // NegotiateProtocolVersion: we speak 3.0 and need no option that it could refuse.
            (Phase::Authentication, b'v') => {}
            (Phase::Authentication, b'R') => {
                let mut authenticator = std::mem::take(&mut startup.authenticator);
                let context = startup.context(&self.settings, self.tls_in_use);
                let accepted = authenticator.receive(raw.body, &context, &mut self.out)?;
                startup.authenticator = authenticator;
                if let Some(method) = accepted {
                    self.authentication = method;
                    startup.phase = Phase::Settling;
                }
            }
            (Phase::Settling, b'S') => {
                self.parameters.remember(raw.body)?;
                on_event(Event::Message(Message::ParameterStatus));
            }
            (Phase::Settling, b'K') => self.remember_key(raw.body)?,
            (Phase::Settling, b'Z') => return Ok(true),
            (_, tag) => {
                return Err(WireError::UnexpectedMessage {
                    tag,
                    state: "during the log-in",
                });
            }
        }
        Ok(false)
    }

    /// Idle sessions are many: nothing of the start-up stays.
    fn forget_startup(&mut self) {
        if self.out.is_empty() {
            self.out = BytesMut::new();
        }
        self.tail = Vec::new();
        self.parameters.shrink();
    }

    fn remember_key(&mut self, body: &[u8]) -> Result<(), WireError> {
        // Four bytes of secret up to PostgreSQL 17, up to 256 since.
        match body.split_first_chunk() {
            Some((process_id, secret)) if (4..=256).contains(&secret.len()) => {
                self.backend_key = Some((i32::from_be_bytes(*process_id), secret.into()));
                Ok(())
            }
            _ => Err(WireError::Malformed {
                what: "BackendKeyData",
                at: HEADER_BYTES,
            }),
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

/// A refusal to let us in; class 28 is about who we are.
fn refusal(error: ServerError<'_>) -> WireError {
    let owned = Box::new(error.to_owned());
    match &owned.sqlstate {
        [b'2', b'8', ..] => WireError::AuthFailed(owned),
        _ => WireError::ServerRefused(owned),
    }
}

/// Empties a buffer whose bytes are gone; `wipe` when a password may have been among them.
fn clear_sent(out: &mut BytesMut, wipe: bool) {
    if wipe {
        out.as_mut().zeroize();
    }
    if out.capacity() > KEPT_BYTES_MAX {
        *out = BytesMut::new();
    } else {
        out.clear();
    }
}

fn refuse_unknown(tag: u8) -> Result<(), WireError> {
    match tag {
        b'1'..=b'3'
        | b'A'
        | b'C'..=b'E'
        | b'G'..=b'I'
        | b'K'
        | b'N'
        | b'R'..=b'T'
        | b'Z'
        | b'c'
        | b'd'
        | b'n'
        | b's'
        | b't'
        | b'v' => Ok(()),
        tag => Err(WireError::UnexpectedMessage {
            tag,
            state: "which does not exist",
        }),
    }
}
