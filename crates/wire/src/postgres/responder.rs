//! A server that answers at once: what the driver is calibrated against, and the fixture for
//! tests of protocol, faults and timing. It keeps no data; it knows only the shape of a session.

mod answer;
mod behaviour;
mod login;
mod statement;

use std::sync::Arc;

pub use behaviour::{Action, Behaviour, Fault, Reply, ResponderAuth, ServerTls};

use super::backend::announced_bytes;
use super::tls::Tunnel;
use super::{TransactionStatus, WireError};
use answer::Prepared;
use login::Login;
use statement::Statement;

/// The server's side of one connection, without the socket.
pub struct Responder {
    behaviour: Arc<Behaviour>,
    /// `None` once the client is in.
    login: Option<Box<Login>>,
    tunnel: Option<Box<Tunnel>>,
    /// The beginning of a message whose end has not arrived.
    tail: Vec<u8>,
    /// Statements by name.
    statements: Vec<(Box<[u8]>, Prepared)>,
    /// What the unnamed portal runs.
    portal: Option<Statement>,
    status: TransactionStatus,
    /// After an error in a pipeline, everything up to Sync is passed over.
    skip_to_sync: bool,
    /// COPY data is coming; inside a simple query its end brings `ReadyForQuery`.
    copying: Option<Copying>,
    /// Bytes of COPY data still to come that nobody looks at.
    discard: usize,
    queries: u64,
    delay_ns: u64,
    /// Set once the connection is to be closed or left silent.
    stopped: Option<Action>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Copying {
    Simple,
    Extended,
}

/// What becomes of the rest of the input.
enum Flow {
    Next,
    Stop(Action),
}

impl Responder {
    /// A responder for a new connection. `connection_number` becomes its process id.
    #[must_use]
    pub fn new(behaviour: Arc<Behaviour>, connection_number: u64) -> Self {
        Self {
            behaviour,
            login: Some(Box::new(Login::new(connection_number))),
            tunnel: None,
            tail: Vec::new(),
            statements: Vec::new(),
            portal: None,
            status: TransactionStatus::Idle,
            skip_to_sync: false,
            copying: None,
            discard: 0,
            queries: 0,
            delay_ns: 0,
            stopped: None,
        }
    }

    /// Takes what the client sent and appends the answer to `out`.
    ///
    /// The caller sends `out` first and then does what the action says; with `Delay` it holds `out` back.
    pub fn respond(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Action, WireError> {
        if let Some(action) = self.stopped {
            return Ok(action);
        }
        self.delay_ns = 0;
        let action = match self.tunnel.take() {
            Some(tunnel) => self.respond_tls(tunnel, input, out)?,
            None => self.respond_plain(input, out)?,
        };
        if matches!(
            action,
            Action::Close | Action::Cancel { .. } | Action::Silent
        ) {
            self.stopped = Some(action);
        }
        Ok(match action {
            Action::Continue if self.delay_ns > 0 => Action::Delay { ns: self.delay_ns },
            action => action,
        })
    }

    /// Whether the client has logged in.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.login.is_none()
    }

    /// Statements that it has answered or been asked to.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.queries
    }

    fn respond_tls(
        &mut self,
        mut tunnel: Box<Tunnel>,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Action, WireError> {
        let mut plain = Vec::new();
        let mut action = Action::Continue;
        let mut rest = input;
        while !rest.is_empty() {
            rest = tunnel.receive(rest)?;
            tunnel.decrypted(&mut |decrypted| {
                if action == Action::Continue {
                    action = self.respond_plain(decrypted, &mut plain)?;
                }
                Ok(())
            })?;
        }
        tunnel.encrypt(&plain)?;
        let cipher = tunnel.pending()?;
        let count = cipher.len();
        out.extend_from_slice(cipher);
        tunnel.consumed(count);
        self.tunnel = Some(tunnel);
        Ok(action)
    }

    fn respond_plain(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Action, WireError> {
        let discarded = self.discard.min(input.len());
        self.discard -= discarded;
        let input = &input[discarded..];
        if self.tail.is_empty() {
            let (used, action) = self.respond_whole(input, out)?;
            // The tunnel may have opened in the middle of the input.
            match self.tunnel.take() {
                Some(tunnel) => return self.respond_tls(tunnel, &input[used..], out),
                None => self.tail.extend_from_slice(&input[used..]),
            }
            return Ok(action);
        }
        self.tail.extend_from_slice(input);
        let mut tail = std::mem::take(&mut self.tail);
        let (used, action) = self.respond_whole(&tail, out)?;
        tail.drain(..used);
        if let Some(tunnel) = self.tunnel.take() {
            return self.respond_tls(tunnel, &tail, out);
        }
        self.tail = tail;
        Ok(action)
    }

    /// Answers all whole messages; returns how many bytes they took.
    fn respond_whole(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(usize, Action), WireError> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let flow = if let Some(login) = self.login.take() {
                let Some((message, size)) = login.split(rest)? else {
                    self.login = Some(login);
                    return Ok((used, Action::Continue));
                };
                used += size;
                self.log_in(login, message, out)?
            } else {
                let Some(size) = announced_bytes(rest)? else {
                    return Ok((used, Action::Continue));
                };
                if size > rest.len() {
                    if self.copying.is_some() && rest[0] == b'd' {
                        self.discard = size - rest.len();
                        used = input.len();
                    }
                    return Ok((used, Action::Continue));
                }
                used += size;
                self.answer(rest[0], &rest[5..size], out)?
            };
            match flow {
                Flow::Next if self.tunnel.is_none() => {}
                Flow::Next => return Ok((used, Action::Continue)),
                Flow::Stop(action) => return Ok((input.len(), action)),
            }
        }
    }

    fn log_in(
        &mut self,
        mut login: Box<Login>,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Flow, WireError> {
        match login.answer(message, &self.behaviour, out)? {
            login::Step::Ready => return Ok(Flow::Next),
            login::Step::Stop(action) => return Ok(Flow::Stop(action)),
            login::Step::Tls(tunnel) => self.tunnel = Some(tunnel),
            login::Step::Next => {}
        }
        self.login = Some(login);
        Ok(Flow::Next)
    }
}

impl std::fmt::Debug for Responder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Responder")
            .field("ready", &self.is_ready())
            .field("status", &self.status)
            .field("queries", &self.queries)
            .finish_non_exhaustive()
    }
}
