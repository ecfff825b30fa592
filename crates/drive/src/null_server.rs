//! The built-in server that answers at once: the driver's own ceiling is measured against it, and it is the
//! fixture for tests of protocol, faults and timing.

mod event_loop;
mod service;

use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loadstone_wire::postgres::{Behaviour, Fault, Password, ResponderAuth};
use socket2::Socket;

use self::event_loop::EventLoop;
use self::service::Service;
pub use self::service::{ServiceSpec, StallSpec, TimeSpec};
use crate::clock;
use crate::error::DriveError;
use crate::io::Poller;
use crate::io::epoll::EpollPoller;
use crate::io::uring::UringPoller;
use crate::limits;

/// Pause after an accept that failed for want of descriptors or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

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
    #[serde(default)]
    pub auth: AuthSpec,
    /// Role that may log in (not checked under `trust`).
    #[serde(default)]
    pub user: String,
    /// Its password.
    #[serde(default)]
    pub password: String,
    /// How it misbehaves.
    #[serde(default)]
    pub faults: Vec<FaultSpec>,
    /// How long its answers take; without it they leave at once.
    #[serde(default)]
    pub service: Option<ServiceSpec>,
}

/// How a client must prove who it is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthSpec {
    /// Not at all.
    #[default]
    Trust,
    /// By the password as it is.
    Cleartext,
    /// By its salted MD5.
    Md5,
    /// By SCRAM-SHA-256.
    Scram,
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

impl NullSpec {
    /// Read a document.
    pub fn from_json(text: &str) -> Result<Self, DriveError> {
        let spec: Self = serde_json::from_str(text).map_err(|e| {
            DriveError::bad_spec(
                format!("the null server's specification does not parse: {e}"),
                "",
            )
        })?;
        match spec.service.as_ref().and_then(ServiceSpec::trouble) {
            Some(trouble) => Err(DriveError::bad_spec(trouble.to_owned(), "")),
            None => Ok(spec),
        }
    }

    fn behaviour(&self) -> Behaviour {
        let (user, password) = (self.user.clone(), Password::new(self.password.clone()));
        let auth = match self.auth {
            AuthSpec::Trust => ResponderAuth::Trust,
            AuthSpec::Cleartext => ResponderAuth::Cleartext { user, password },
            AuthSpec::Md5 => ResponderAuth::Md5 { user, password },
            AuthSpec::Scram => ResponderAuth::Scram { user, password },
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
                ns: clock::ns(ms / 1e3),
            },
        }
    }
}

/// A running server; stops when dropped.
pub struct NullServer {
    port: u16,
    socket_directory: PathBuf,
    shared: Arc<Shared>,
    /// Shut down to wake the accepting threads.
    listeners: [Socket; 2],
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    stop: AtomicBool,
    accepted: Mutex<Vec<Socket>>,
    waker: UnixStream,
    cpu_ns: AtomicU64,
    /// Plain, and through TLS.
    cancels: [AtomicU64; 2],
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
        let service = spec.service.as_ref().map(Service::new);
        Self::serving(spec.behaviour(), &spec.directory, spec.clients_max, service)
    }

    /// Listen on a loopback port of the system's choice and on a unix socket in `directory`.
    ///
    /// At most `clients_max` connections are served at once; further ones are closed.
    pub fn start(behaviour: Behaviour, directory: &Path, clients_max: usize) -> io::Result<Self> {
        Self::serving(behaviour, directory, clients_max, None)
    }

    fn serving(
        behaviour: Behaviour,
        directory: &Path,
        clients_max: usize,
        service: Option<Service>,
    ) -> io::Result<Self> {
        limits::raise_open_files(clients_max).map_err(io::Error::other)?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = tcp.local_addr()?.port();
        let path = directory.join(format!(".s.PGSQL.{port}"));
        let unix = UnixListener::bind(&path)?;
        let listeners = [tcp.try_clone()?.into(), unix.try_clone()?.into()];
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            accepted: Mutex::new(Vec::new()),
            waker,
            cpu_ns: AtomicU64::new(0),
            cancels: Default::default(),
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
                service,
            )?,
        ];
        Ok(Self {
            port,
            socket_directory: directory.to_owned(),
            shared,
            listeners,
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

    /// Requests so far to cancel a statement, plain and through TLS. They are counted and not carried out.
    #[must_use]
    pub fn cancels(&self) -> [u64; 2] {
        self.shared
            .cancels
            .each_ref()
            .map(|count| count.load(Ordering::Relaxed))
    }

    /// Close all connections and stop listening.
    pub fn stop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake();
        for listener in &self.listeners {
            let _ = listener.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let socket = format!(".s.PGSQL.{}", self.port);
        let _ = std::fs::remove_file(self.socket_directory.join(socket));
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
            while !shared.stop.load(Ordering::Relaxed) {
                let Ok(socket) = accept() else {
                    // Stopping; or no descriptor is free, and clients wait in the queue until one is.
                    thread::park_timeout(ACCEPT_PAUSE);
                    continue;
                };
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
    service: Option<Service>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new()
        .name("null-serve".to_owned())
        .spawn(move || {
            clock::wait_exactly();
            let slots = clients_max + 1;
            // A ring belongs to the thread that made it, so it is made here.
            match UringPoller::new(slots) {
                Ok(poller) => {
                    EventLoop::new(poller, shared, woken, behaviour, slots, service).run();
                }
                Err(_) => {
                    if let Ok(poller) = EpollPoller::new(slots) {
                        EventLoop::new(poller, shared, woken, behaviour, slots, service).run();
                    }
                }
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_way_to_log_in_is_refused_and_not_taken_for_trust() {
        let error = NullSpec::from_json(r#"{"directory": "/", "auth": "scramm"}"#).unwrap_err();
        assert!(error.to_string().contains("scramm"), "{error}");
    }
}
