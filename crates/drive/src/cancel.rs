//! Statements that are given up are cancelled on the server, or it would go on working for nobody.
//!
//! A closed connection does not end a statement: PostgreSQL notices it only when it has something to say. Ending
//! one takes a request on a connection of its own, which waits; so one thread for the whole drive does it, and the
//! event loops only hand it the keys. As libpq's `PQcancelBlocking`, it goes the way of the connection that it is
//! for: encrypted and verified alike where that was, and never plain then.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loadstone_wire::postgres::{Session, cancel_request, server_name, tls_request};
use rustls::{ClientConnection, StreamOwned};

use crate::clock::now_ns;
use crate::config::Config;
use crate::error::DriveError;

/// How long one step of a request may take: far more than it does, and little for the end of a run to wait.
const STEP: Duration = Duration::from_secs(1);
/// How long requests may go on after the last client has ended, while the server takes them.
const AFTER_END_NS: u64 = 10_000_000_000;

/// Whose statement is to be cancelled.
#[derive(Debug)]
pub(crate) struct Key {
    process_id: i32,
    secret: Box<[u8]>,
    tls: bool,
}

impl Key {
    /// `None` where the server gave no key: it cannot cancel.
    pub(crate) fn of(session: &Session) -> Option<Self> {
        let (process_id, secret) = session.backend_key()?;
        Some(Self {
            process_id,
            secret: secret.into(),
            tls: session.tls_in_use(),
        })
    }
}

/// The thread, and the way to it.
pub(crate) struct Canceller {
    keys: Sender<Key>,
    /// When it has to end; [`u64::MAX`] while clients are at work.
    until_ns: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Canceller {
    pub(crate) fn start(config: &Arc<Config>) -> Result<Self, DriveError> {
        let (keys, asked) = channel();
        let until_ns = Arc::new(AtomicU64::new(u64::MAX));
        let (config, until) = (Arc::clone(config), Arc::clone(&until_ns));
        let spawned = thread::Builder::new()
            .name("cancel".to_owned())
            .spawn(move || serve(&config, &asked, &until));
        let thread = spawned.map_err(DriveError::thread)?;
        Ok(Self {
            keys,
            until_ns,
            thread,
        })
    }

    /// For a worker: takes keys without waiting.
    pub(crate) fn sender(&self) -> Sender<Key> {
        self.keys.clone()
    }

    /// All workers have ended: returns when what they asked for is done, or cannot be done soon.
    pub(crate) fn finish(self) {
        let until_ns = now_ns().saturating_add(AFTER_END_NS);
        self.until_ns.store(until_ns, Ordering::Relaxed);
        drop(self.keys);
        let _ = self.thread.join();
    }
}

fn serve(config: &Config, keys: &Receiver<Key>, until_ns: &AtomicU64) {
    for key in keys {
        if now_ns() >= until_ns.load(Ordering::Relaxed) {
            return;
        }
        // Best effort, as with libpq. While clients are at work a server that is back may take the next request;
        // at the end nobody waits for one that does not answer.
        let failed = cancel(config, &key).is_err();
        if failed && until_ns.load(Ordering::Relaxed) != u64::MAX {
            return;
        }
    }
}

fn cancel(config: &Config, key: &Key) -> io::Result<()> {
    let request = cancel_request(key.process_id, &key.secret);
    let mut socket = config.endpoint.connect_within(STEP)?;
    if !key.tls {
        return say(&mut socket, &request);
    }
    let tls = config.tls.as_ref().ok_or(ErrorKind::Unsupported)?;
    socket.write_all(&tls_request())?;
    let mut reply = [0];
    socket.read_exact(&mut reply)?;
    if reply != *b"S" {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let name = server_name(&config.settings.host);
    let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
    say(&mut StreamOwned::new(connection, socket), &request)
}

/// Send the request; the server closes the connection when it has passed it on.
fn say(stream: &mut (impl Read + Write), request: &[u8]) -> io::Result<()> {
    stream.write_all(request)?;
    stream.flush()?;
    match stream.read(&mut [0]) {
        // Closed without the farewell of TLS, or with the request's last bytes unread.
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}
