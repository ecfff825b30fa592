//! Statements that are given up are cancelled on the server, or it would go on working for nobody.
//!
//! A closed connection does not end a statement: servers notice it only when they have something to say. Ending one
//! takes a request on a connection of its own, which waits; so one thread for the whole drive does it, and the event
//! loops only hand it the keys.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::clock::now_ns;
use crate::connector::Connector;
use crate::error::DriveError;
use crate::protocol::Protocol;

/// How long one step of a request may take: far more than it does, and little for the end of a run to wait.
const STEP: Duration = Duration::from_secs(1);
/// How long requests may go on after the last client has ended, while the server takes them.
const AFTER_END_NS: u64 = 10_000_000_000;

/// A session's key, and the turn by which its server is known.
pub(crate) type Cancel<P> = (u32, <P as Protocol>::CancelKey);

/// The thread, and the way to it.
pub(crate) struct Canceller<P: Protocol> {
    keys: Sender<Cancel<P>>,
    /// When it has to end; [`u64::MAX`] while clients are at work.
    until_ns: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl<P: Protocol> Canceller<P> {
    pub(crate) fn start(connector: &Arc<Connector<P>>) -> Result<Self, DriveError> {
        let (keys, asked) = channel();
        let until_ns = Arc::new(AtomicU64::new(u64::MAX));
        let (connector, until) = (Arc::clone(connector), Arc::clone(&until_ns));
        let spawned = thread::Builder::new()
            .name("cancel".to_owned())
            .spawn(move || serve(&connector, &asked, &until));
        let thread = spawned.map_err(DriveError::thread)?;
        Ok(Self {
            keys,
            until_ns,
            thread,
        })
    }

    /// For a worker: takes keys without waiting.
    pub(crate) fn sender(&self) -> Sender<Cancel<P>> {
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

fn serve<P: Protocol>(connector: &Connector<P>, keys: &Receiver<Cancel<P>>, until_ns: &AtomicU64) {
    for (turn, key) in keys {
        if now_ns() >= until_ns.load(Ordering::Relaxed) {
            return;
        }
        // Best effort, as with libpq. While clients are at work a server that is back may take the next request;
        // at the end nobody waits for one that does not answer.
        let failed = cancel(connector.in_turn(turn), &key).is_err();
        if failed && until_ns.load(Ordering::Relaxed) != u64::MAX {
            return;
        }
    }
}

fn cancel<P: Protocol>(connector: &Connector<P>, key: &P::CancelKey) -> io::Result<()> {
    let socket = connector.endpoint.connect_within(STEP)?;
    connector.protocol.cancel(key, socket)
}
