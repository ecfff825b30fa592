//! The built-in server that answers at once: the driver's own ceiling is measured against it, and it is the
//! fixture for tests of protocol, faults and timing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use loadstone_wire::postgres::{Action, Behaviour, Fault, Password, Responder, ResponderAuth};
use socket2::{SockRef, Socket};

use crate::clock::{CpuTime, now_ns};
use crate::error::DriveError;
use crate::io::epoll::EpollPoller;
use crate::io::uring::UringPoller;
use crate::io::{Event, Poller, Sending, Slot};

/// The place of the socket pair by which the accepting threads wake the serving one.
const WAKER: Slot = 0;
const WAIT_NS: u64 = 100_000_000;

/// What the built-in server is to do, as Python and tests ask for it.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NullSpec {
    /// Folder for the unix socket; must exist.
    pub directory: PathBuf,
    /// Most connections served at once.
    #[serde(default = "a_thousand")]
    pub clients_max: usize,
    /// `trust`, `cleartext`, `md5` or `scram`.
    #[serde(default = "trust")]
    pub auth: String,
    /// Role that may log in (not checked under `trust`).
    #[serde(default)]
    pub user: String,
    /// Its password.
    #[serde(default)]
    pub password: String,
    /// How it misbehaves.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
}

/// One way to misbehave; counts are queries of one connection.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the names say it, and loadstone-wire's Fault describes each"
)]
pub enum FaultSpec {
    ErrorEvery {
        n: u64,
        sqlstate: String,
        message: String,
    },
    CloseAfter {
        queries: u64,
    },
    GarbageAfter {
        queries: u64,
    },
    SilentAfter {
        queries: u64,
    },
    HalfMessageAfter {
        queries: u64,
    },
    RefuseStartup {
        sqlstate: String,
        message: String,
    },
    DelayEvery {
        n: u64,
        ms: f64,
    },
}

fn a_thousand() -> usize {
    1000
}

fn trust() -> String {
    "trust".to_owned()
}

impl NullSpec {
    /// Read a document.
    pub fn from_json(text: &str) -> Result<Self, DriveError> {
        serde_json::from_str(text).map_err(|e| {
            DriveError::bad_spec(
                format!("the null server's specification does not parse: {e}"),
                "",
            )
        })
    }

    fn behaviour(&self) -> Behaviour {
        let (user, password) = (self.user.clone(), Password::new(self.password.clone()));
        let auth = match self.auth.as_str() {
            "cleartext" => ResponderAuth::Cleartext { user, password },
            "md5" => ResponderAuth::Md5 { user, password },
            "scram" => ResponderAuth::Scram { user, password },
            _ => ResponderAuth::Trust,
        };
        Behaviour {
            auth,
            faults: self.faults.iter().map(FaultSpec::fault).collect(),
            ..Behaviour::default()
        }
    }
}

impl FaultSpec {
    fn fault(&self) -> Fault {
        let state = |text: &str| {
            let mut state = *b"XX000";
            state
                .iter_mut()
                .zip(text.bytes())
                .for_each(|(to, from)| *to = from);
            state
        };
        match self.clone() {
            Self::ErrorEvery {
                n,
                sqlstate,
                message,
            } => Fault::ErrorEvery {
                n,
                sqlstate: state(&sqlstate),
                message,
            },
            Self::CloseAfter { queries } => Fault::CloseAfter { queries },
            Self::GarbageAfter { queries } => Fault::GarbageAfter { queries },
            Self::SilentAfter { queries } => Fault::SilentAfter { queries },
            Self::HalfMessageAfter { queries } => Fault::HalfMessageAfter { queries },
            Self::RefuseStartup { sqlstate, message } => Fault::RefuseStartup {
                sqlstate: state(&sqlstate),
                message,
            },
            Self::DelayEvery { n, ms } => Fault::DelayEvery {
                n,
                ns: crate::config::ns(ms / 1e3),
            },
        }
    }
}

/// A running server; stops when dropped.
pub struct NullServer {
    port: u16,
    socket_directory: PathBuf,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    accepted: Mutex<Vec<Socket>>,
    waker: UnixStream,
    cpu_ns: AtomicU64,
}

impl Shared {
    fn wake(&self) {
        // A full pipe has woken the server already.
        let _ = (&self.waker).write(b"!");
    }
}

impl NullServer {
    /// Start as a document asks.
    pub fn from_spec(spec: &NullSpec) -> io::Result<Self> {
        Self::start(spec.behaviour(), &spec.directory, spec.clients_max)
    }

    /// Listen on a loopback port of the system's choice and on a unix socket in `directory`.
    ///
    /// At most `clients_max` connections are served at once; further ones are closed.
    pub fn start(behaviour: Behaviour, directory: &Path, clients_max: usize) -> io::Result<Self> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = tcp.local_addr()?.port();
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let unix = UnixListener::bind(&path)?;
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            accepted: Mutex::new(Vec::new()),
            waker,
            cpu_ns: AtomicU64::new(0),
        });
        let threads = vec![
            accept_from(Arc::clone(&shared), move || {
                let (stream, _) = tcp.accept()?;
                stream.set_nodelay(true)?;
                Ok(stream.into())
            })?,
            accept_from(Arc::clone(&shared), move || Ok(unix.accept()?.0.into()))?,
            serve(
                Arc::clone(&shared),
                woken.into(),
                Arc::new(behaviour),
                clients_max,
            )?,
        ];
        Ok(Self {
            port,
            socket_directory: directory.to_owned(),
            shared,
            threads,
        })
    }

    /// The TCP port, also part of the unix socket's name.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the unix socket.
    #[must_use]
    pub fn socket_directory(&self) -> &Path {
        &self.socket_directory
    }

    /// CPU time that serving has taken so far, nanoseconds (updated many times a second).
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.shared.cpu_ns.load(Ordering::Relaxed)
    }

    /// Close all connections and stop listening.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake();
        // The accepting threads wait in accept(): one connection each lets them see the flag.
        let path = self
            .socket_directory
            .join(format!(".s.PGSQL.{}", self.port));
        let _ = UnixStream::connect(&path);
        let _ = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(path);
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop();
        }
    }
}

fn accept_from(
    shared: Arc<Shared>,
    accept: impl Fn() -> io::Result<Socket> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("null-accept".to_owned())
        .spawn(move || {
            while let Ok(socket) = accept() {
                if shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                shared
                    .accepted
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(socket);
                shared.wake();
            }
        })
}

fn serve(
    shared: Arc<Shared>,
    woken: Socket,
    behaviour: Arc<Behaviour>,
    clients_max: usize,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("null-serve".to_owned())
        .spawn(move || {
            let slots = clients_max + 1;
            // A ring belongs to the thread that made it, so it is made here.
            match UringPoller::new(slots) {
                Ok(poller) => Serving::new(poller, shared, woken, behaviour, slots).run(),
                Err(_) => {
                    if let Ok(poller) = EpollPoller::new(slots) {
                        Serving::new(poller, shared, woken, behaviour, slots).run();
                    }
                }
            }
        })
}

/// One connection as the server sees it.
struct Peer {
    socket: Socket,
    responder: Responder,
    /// Answers that wait for the running send, or for their time.
    out: Vec<u8>,
    sending: Vec<u8>,
    busy: bool,
    /// Nothing of `out` may leave before; zero when nothing is held back.
    held_until_ns: u64,
    closing: bool,
    silent: bool,
}

struct Serving<P: Poller> {
    poller: P,
    shared: Arc<Shared>,
    woken: Socket,
    behaviour: Arc<Behaviour>,
    peers: Vec<Option<Peer>>,
    free: Vec<Slot>,
    dirty: Vec<Slot>,
    timers: BinaryHeap<Reverse<(u64, Slot)>>,
    connections: u64,
}

impl<P: Poller> Serving<P> {
    fn new(
        poller: P,
        shared: Arc<Shared>,
        woken: Socket,
        behaviour: Arc<Behaviour>,
        slots: usize,
    ) -> Self {
        let last = u32::try_from(slots).unwrap_or(u32::MAX);
        Self {
            poller,
            shared,
            woken,
            behaviour,
            peers: (0..slots).map(|_| None).collect(),
            free: (1..last).rev().collect(),
            dirty: Vec::new(),
            timers: BinaryHeap::new(),
            connections: 0,
        }
    }

    fn run(mut self) {
        if self.poller.open(WAKER, self.woken.as_raw_fd()).is_err() {
            return;
        }
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.flush();
            let now = now_ns();
            let timeout_ns = self
                .timers
                .peek()
                .map_or(WAIT_NS, |t| t.0.0.saturating_sub(now).min(WAIT_NS));
            if self.poller.wait(timeout_ns).is_err() {
                return;
            }
            let now = now_ns();
            while let Some(event) = self.poller.next() {
                self.handle(event, now);
            }
            self.fire_timers(now);
            let cpu = CpuTime::of_this_thread();
            self.shared
                .cpu_ns
                .store(cpu.user_ns + cpu.system_ns, Ordering::Relaxed);
        }
    }

    fn handle(&mut self, event: Event, now: u64) {
        match event {
            Event::Received(WAKER, chunk) => {
                self.poller.release(chunk);
                self.welcome();
            }
            Event::Received(slot, chunk) => {
                let Some(peer) = &mut self.peers[slot as usize] else {
                    return self.poller.release(chunk);
                };
                let action = if peer.silent {
                    Ok(Action::Silent)
                } else {
                    peer.responder
                        .respond(self.poller.bytes(chunk), &mut peer.out)
                };
                self.poller.release(chunk);
                self.act(slot, action.unwrap_or(Action::Close), now);
            }
            Event::Sent(slot) => {
                if let Some(peer) = &mut self.peers[slot as usize] {
                    peer.busy = false;
                    self.dirty.push(slot);
                }
            }
            Event::Writable(slot) => self.resume(slot),
            Event::Closed(slot) | Event::Failed(slot, _) => self.farewell(slot),
        }
    }

    fn act(&mut self, slot: Slot, action: Action, now: u64) {
        let Some(peer) = &mut self.peers[slot as usize] else {
            return;
        };
        match action {
            Action::Continue => {}
            Action::Close => peer.closing = true,
            Action::Silent => peer.silent = true,
            Action::Delay { ns } => {
                peer.held_until_ns = now.saturating_add(ns);
                return self.timers.push(Reverse((peer.held_until_ns, slot)));
            }
        }
        self.dirty.push(slot);
    }

    fn welcome(&mut self) {
        let accepted = std::mem::take(
            &mut *self
                .shared
                .accepted
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        for socket in accepted {
            let Some(slot) = self.free.pop() else {
                continue;
            };
            if socket.set_nonblocking(true).is_err()
                || self.poller.open(slot, socket.as_raw_fd()).is_err()
            {
                self.free.push(slot);
                continue;
            }
            self.connections += 1;
            let responder = Responder::new(Arc::clone(&self.behaviour), self.connections);
            self.peers[slot as usize] = Some(Peer {
                socket,
                responder,
                out: Vec::new(),
                sending: Vec::new(),
                busy: false,
                held_until_ns: 0,
                closing: false,
                silent: false,
            });
        }
    }

    fn flush(&mut self) {
        for slot in std::mem::take(&mut self.dirty) {
            let Some(peer) = &mut self.peers[slot as usize] else {
                continue;
            };
            if peer.busy || peer.held_until_ns > 0 {
                continue;
            }
            if peer.out.is_empty() {
                if peer.closing {
                    self.farewell(slot);
                }
                continue;
            }
            peer.sending.clear();
            std::mem::swap(&mut peer.sending, &mut peer.out);
            if send(&mut self.poller, slot, peer) {
                self.dirty.push(slot); // to close it, if that is what comes next
            }
        }
        self.dirty.retain(|&slot| {
            self.peers[slot as usize]
                .as_ref()
                .is_some_and(|p| p.closing)
        });
    }

    fn resume(&mut self, slot: Slot) {
        if let Some(peer) = &mut self.peers[slot as usize]
            && send(&mut self.poller, slot, peer)
        {
            self.dirty.push(slot);
        }
    }

    fn fire_timers(&mut self, now: u64) {
        while let Some(&Reverse((until_ns, slot))) = self.timers.peek() {
            if until_ns > now {
                return;
            }
            self.timers.pop();
            if let Some(peer) = &mut self.peers[slot as usize]
                && peer.held_until_ns <= now
            {
                peer.held_until_ns = 0;
                self.dirty.push(slot);
            }
        }
    }

    fn farewell(&mut self, slot: Slot) {
        if let Some(peer) = self.peers[slot as usize].take() {
            let sending = if peer.busy { peer.sending } else { Vec::new() };
            self.poller.close(slot, peer.socket.as_raw_fd(), sending);
            self.free.push(slot);
        }
    }
}

/// Send what is in `sending`; true when the kernel has taken all of it.
fn send<P: Poller>(poller: &mut P, slot: Slot, peer: &mut Peer) -> bool {
    let fd: RawFd = SockRef::from(&peer.socket).as_raw_fd();
    match poller.send(slot, fd, &peer.sending, false) {
        Ok(Sending::Done) => {
            peer.busy = false;
            true
        }
        Ok(Sending::Blocked(taken)) => {
            peer.sending.drain(..taken);
            peer.busy = true;
            false
        }
        Ok(Sending::Queued) => {
            peer.busy = true;
            false
        }
        Err(_) => {
            peer.closing = true;
            peer.out.clear();
            true
        }
    }
}
