//! How bytes reach the kernel and come back: one trait, two implementations (`io_uring` and epoll).
//!
//! A worker queues sends for all ready clients, then waits once; both steps are one system call under `io_uring`.

pub(crate) mod epoll;
pub(crate) mod uring;

use std::io;
use std::os::fd::RawFd;

/// Events that one wait brings at most, where their number has a limit.
pub(crate) const EVENTS_MAX: usize = 1024;

/// A client's place in its worker.
pub(crate) type Slot = u32;

/// Bytes that arrived; valid until given back with [`Poller::release`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    pub(crate) buffer: u16,
    pub(crate) len: usize,
}

/// What happened to a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// The connection attempt has ended, or a blocked send can go on.
    Writable(Slot),
    /// So many bytes of a queued send have been taken: all of them, unless something interrupted it.
    Sent(Slot, usize),
    /// Bytes arrived.
    Received(Slot, Chunk),
    /// The peer closed the connection.
    Closed(Slot),
    /// The connection broke.
    Failed(Slot, i32),
}

/// What became of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sending {
    /// The kernel has all bytes.
    Done,
    /// The kernel took so many bytes; [`Event::Writable`] says when to go on.
    Blocked(usize),
    /// The kernel will read the bytes later: they must stay where they are until [`Event::Sent`], or, for a
    /// quiet send, until the server has answered it.
    Queued,
}

/// Carries bytes for many connections on one thread.
pub(crate) trait Poller: Sized {
    /// The name in reports.
    const NAME: &'static str;

    /// Room for so many connections.
    fn new(slots: usize) -> io::Result<Self>;

    /// Report [`Event::Writable`] once the connection attempt on `fd` has ended.
    fn watch_connect(&mut self, slot: Slot, fd: RawFd) -> io::Result<()>;

    /// Receive from `fd` until [`Poller::close`].
    fn open(&mut self, slot: Slot, fd: RawFd) -> io::Result<()>;

    /// No more events for the connection in `slot`. `sending` is its send buffer, which the kernel may still hold.
    fn close(&mut self, slot: Slot, fd: RawFd, sending: Vec<u8>);

    /// The same for a connection that stays open, to be passed to [`Poller::open`] again; nothing is being sent.
    fn park(&mut self, slot: Slot, fd: RawFd) {
        self.close(slot, fd, Vec::new());
    }

    /// Keep memory that a quiet send used. Its answer has come, so the kernel should be done with it; a server
    /// that answers before it has read the question must not make it read memory that is somebody else's.
    fn keep(&mut self, sending: Vec<u8>);

    /// Send `bytes`; `quiet` when an answer will prove that they have been taken.
    ///
    /// That the peer has closed its end is reported by the receiving side, after its last words.
    fn send(&mut self, slot: Slot, fd: RawFd, bytes: &[u8], quiet: bool) -> io::Result<Sending>;

    /// The same for a quiet send with no other beside it, which can leave at once: nothing is saved by waiting.
    fn send_alone(&mut self, slot: Slot, fd: RawFd, bytes: &[u8]) -> io::Result<Sending> {
        self.send(slot, fd, bytes, true)
    }

    /// Hand over what is queued and wait for events, at most `timeout_ns` from `now`, the clock's last reading.
    fn wait(&mut self, now: u64, timeout_ns: u64) -> io::Result<()>;

    /// The next event of the last wait.
    fn next(&mut self) -> Option<Event>;

    /// The bytes of a chunk.
    fn bytes(&self, chunk: Chunk) -> &[u8];

    /// Give a chunk's memory back.
    fn release(&mut self, chunk: Chunk);
}
