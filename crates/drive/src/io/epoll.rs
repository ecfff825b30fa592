//! The poller for kernels that refuse `io_uring`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::sys::time::TimeSpec;

use super::{Chunk, EVENTS_MAX, Event, Poller, Sending, Slot};

const SCRATCH_BYTES: usize = 64 * 1024;

/// One connection as epoll sees it.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    fd: RawFd,
    connecting: bool,
    wants_write: bool,
    open: bool,
}

pub(crate) struct EpollPoller {
    epoll: Epoll,
    watched: Vec<Watched>,
    events: Vec<EpollEvent>,
    ready: usize,
    at: usize,
    scratch: Vec<u8>,
    /// Slots whose send failed: reported with the next events, as a completion would be.
    failed: Vec<(Slot, i32)>,
    /// The kernel has no `epoll_pwait2` (before 5.11): waits end on whole milliseconds.
    coarse: bool,
}

#[expect(
    unsafe_code,
    reason = "the worker owns the socket and closes it only after Poller::close"
)]
fn borrow(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: the file descriptor stays open while it is registered here, see Poller::close.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

impl EpollPoller {
    fn set_interest(&mut self, slot: Slot, new: bool) -> io::Result<()> {
        let watched = self.watched[slot as usize];
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN, watched.open);
        flags.set(
            EpollFlags::EPOLLOUT,
            watched.connecting || watched.wants_write,
        );
        let mut event = EpollEvent::new(flags, u64::from(slot));
        if new {
            self.epoll.add(borrow(watched.fd), event)?;
        } else {
            self.epoll.modify(borrow(watched.fd), &mut event)?;
        }
        Ok(())
    }

    /// Waits to the nanosecond, so that a rate is kept.
    #[expect(
        unsafe_code,
        reason = "neither nix nor the C libraries we build for have epoll_pwait2"
    )]
    fn wait_precisely(&mut self, timeout_ns: u64) -> nix::Result<usize> {
        if self.coarse {
            return self.wait_coarsely(timeout_ns);
        }
        let timeout = TimeSpec::from_duration(Duration::from_nanos(timeout_ns));
        // SAFETY: `events` holds so many epoll_events (EpollEvent is one, transparently), the timeout lives
        // until the call returns, and a null signal mask of size 0 changes nothing.
        let ready = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.0.as_raw_fd(),
                self.events.as_mut_ptr().cast::<libc::epoll_event>(),
                self.events.len(),
                std::ptr::from_ref(timeout.as_ref()),
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            )
        };
        Errno::result(ready).map(|ready| usize::try_from(ready).unwrap_or(0))
    }

    fn wait_coarsely(&mut self, timeout_ns: u64) -> nix::Result<usize> {
        // Rounded up: waking a moment early would spin until the time has come.
        let millis = timeout_ns.div_ceil(1_000_000).min(60_000);
        let timeout = EpollTimeout::try_from(millis).unwrap_or(EpollTimeout::ZERO);
        self.epoll.wait(&mut self.events, timeout)
    }

    fn receive(&mut self, slot: Slot) -> Option<Event> {
        let fd = self.watched[slot as usize].fd;
        match recv(fd, &mut self.scratch, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => Some(Event::Closed(slot)),
            Ok(len) => Some(Event::Received(slot, Chunk { buffer: 0, len })),
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Err(errno) => Some(Event::Failed(slot, errno as i32)),
        }
    }
}

impl Poller for EpollPoller {
    const NAME: &'static str = "epoll";

    fn new(slots: usize) -> io::Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            watched: vec![Watched::default(); slots],
            events: vec![EpollEvent::empty(); slots.clamp(16, EVENTS_MAX)],
            ready: 0,
            at: 0,
            scratch: vec![0; SCRATCH_BYTES],
            failed: Vec::new(),
            coarse: false,
        })
    }

    fn watch_connect(&mut self, slot: Slot, fd: RawFd) -> io::Result<()> {
        self.watched[slot as usize] = Watched {
            fd,
            connecting: true,
            ..Watched::default()
        };
        self.set_interest(slot, true)
    }

    fn open(&mut self, slot: Slot, fd: RawFd) -> io::Result<()> {
        let known = self.watched[slot as usize];
        let new = known.fd != fd;
        self.watched[slot as usize] = Watched {
            fd,
            open: true,
            ..Watched::default()
        };
        self.set_interest(slot, new)
    }

    fn close(&mut self, slot: Slot, fd: RawFd, sending: Vec<u8>) {
        drop(sending); // send() copies before it returns
        self.failed.retain(|(failed, _)| *failed != slot);
        // Failure means that the kernel has already forgotten the descriptor, which is what is wanted.
        let _ = self.epoll.delete(borrow(fd));
        self.watched[slot as usize] = Watched::default();
    }

    fn keep(&mut self, sending: Vec<u8>) {
        drop(sending); // as above
    }

    fn send(&mut self, slot: Slot, fd: RawFd, bytes: &[u8], _quiet: bool) -> io::Result<Sending> {
        let mut taken = 0;
        while taken < bytes.len() {
            match send(
                fd,
                &bytes[taken..],
                MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL,
            ) {
                Ok(n) => taken += n,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    self.watched[slot as usize].wants_write = true;
                    self.set_interest(slot, false)?;
                    return Ok(Sending::Blocked(taken));
                }
                // Its last words, and its end, are still to be read.
                Err(Errno::EPIPE | Errno::ECONNRESET) => return Ok(Sending::Done),
                Err(errno) => {
                    self.failed.push((slot, errno as i32));
                    return Ok(Sending::Blocked(taken));
                }
            }
        }
        Ok(Sending::Done)
    }

    fn wait(&mut self, _now: u64, timeout_ns: u64) -> io::Result<()> {
        (self.ready, self.at) = (0, 0);
        let timeout_ns = if self.failed.is_empty() {
            timeout_ns
        } else {
            0
        };
        let waited = match self.wait_precisely(timeout_ns) {
            // Old kernels do not know it; old filters of containers refuse what they do not know.
            Err(Errno::ENOSYS | Errno::EPERM) if !self.coarse => {
                self.coarse = true;
                self.wait_coarsely(timeout_ns)
            }
            waited => waited,
        };
        match waited {
            Ok(ready) => self.ready = ready,
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        if let Some((slot, errno)) = self.failed.pop() {
            return Some(Event::Failed(slot, errno));
        }
        while self.at < self.ready {
            let event = self.events[self.at];
            self.at += 1;
            let Ok(slot) = Slot::try_from(event.data()) else {
                continue;
            };
            let watched = &mut self.watched[slot as usize];
            if watched.connecting {
                return Some(Event::Writable(slot));
            }
            if !watched.open {
                continue; // closed while its event was waiting
            }
            if event.events().contains(EpollFlags::EPOLLOUT) && watched.wants_write {
                watched.wants_write = false;
                if self.set_interest(slot, false).is_err() {
                    return Some(Event::Failed(slot, Errno::last_raw()));
                }
                // Level-triggered: what can be read is reported again by the next wait.
                return Some(Event::Writable(slot));
            }
            if let Some(event) = self.receive(slot) {
                return Some(event);
            }
        }
        None
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.scratch[..chunk.len]
    }

    fn release(&mut self, _chunk: Chunk) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ns;

    /// The shortest of ten waits: nothing but the wait itself can make it long, or short.
    fn shortest_wait_ns(poller: &mut EpollPoller, timeout_ns: u64) -> u64 {
        let waits = (0..10).map(|_| {
            let begun_ns = now_ns();
            poller.wait(begun_ns, timeout_ns).unwrap();
            now_ns() - begun_ns
        });
        waits.min().unwrap()
    }

    #[test]
    fn waits_end_neither_early_nor_on_the_next_millisecond() {
        let mut poller = EpollPoller::new(1).unwrap();
        let took_ns = shortest_wait_ns(&mut poller, 200_000);
        assert!((200_000..900_000).contains(&took_ns), "{took_ns} ns");
        assert!(!poller.coarse, "this kernel has epoll_pwait2");
        poller.coarse = true;
        let took_ns = shortest_wait_ns(&mut poller, 1_200_000);
        assert!(took_ns >= 1_900_000, "rounded up: {took_ns} ns");
        assert!(poller.next().is_none());
    }
}
