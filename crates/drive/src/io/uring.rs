//! The poller on `io_uring`: sends and receives of all ready clients in one system call.
//!
//! Receives are multishot and take their memory from one ring of buffers that all connections share, so an idle
//! connection costs no receive buffer. Sends that an answer will confirm complete silently. The kernel does its
//! part of the work inside our own call (deferred task run), so nothing interrupts the thread.

#![expect(
    unsafe_code,
    reason = "the kernel shares memory with us: buffers, and the rings themselves"
)]

mod buffers;

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::types::{Fixed, SubmitArgs, TimeoutFlags, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use nix::sys::socket::{MsgFlags, send};

use self::buffers::{BufferRing, buffers_for};
use super::{Chunk, Event, Poller, Sending, Slot};

const GROUP: u16 = 0;
const GENERATION_MASK: u32 = 0x00FF_FFFF;

/// What a completion belongs to, packed into its 64 bits: slot, generation of the slot, kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect = 1,
    Receive = 2,
    Send = 3,
    /// Of no slot, see [`Alarm`].
    Alarm = 4,
    /// Of a receive; nobody asks how it went.
    Cancel = 5,
}

pub(crate) struct UringPoller {
    ring: IoUring,
    buffers: BufferRing,
    /// Bumped when a slot's connection is closed, so that late completions are known as such.
    generations: Vec<u32>,
    completions: Vec<(u64, i32, u32)>,
    at: usize,
    alarm: Alarm,
    /// Send buffers of closed connections: the kernel lets go of them during the next wait.
    retired: Vec<Vec<u8>>,
    /// Send buffers that were outgrown, see [`Poller::keep`]; freed with the ring.
    kept: Vec<Vec<u8>>,
}

/// Waits from this length on are ended by an alarm.
const ALARM_NS_MIN: u64 = 10_000_000;

/// A request that ends a wait at a time. It stays in the ring from wait to wait, where a timeout of the wait itself
/// would be started and cancelled each time: 0.35 of the 5.1 µs of a round trip's CPU.
struct Alarm {
    /// When it goes off, by the monotonic clock; `u64::MAX`: it is not set.
    at_ns: u64,
    /// It is set to a time of the clock, not to a length, which would begin after the sends that go with it.
    is_absolute: bool,
    /// The kernel reads it when the request is handed over.
    time: Box<Timespec>,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            at_ns: u64::MAX,
            is_absolute: clock_is_the_hosts(),
            time: Box::default(),
        }
    }
}

/// The monotonic clock is the machine's: we are in no time namespace that moves it.
///
/// The kernel compares absolute timeouts of `io_uring` with the machine's clock whatever the namespace (seen on Linux
/// 6.18): with an offset of 1000 s such an alarm would come 1000 s late, or at once.
fn clock_is_the_hosts() -> bool {
    // `monotonic  SECONDS  NANOSECONDS`; without the file nobody knows.
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let mut monotonic = offsets
        .lines()
        .filter_map(|line| line.strip_prefix("monotonic"));
    monotonic.any(|offset| offset.split_whitespace().all(|part| part == "0"))
}

/// How often a full queue is emptied before giving up.
const SUBMIT_TRIES: u32 = 16;

impl UringPoller {
    fn tag(&self, slot: Slot, kind: Kind) -> u64 {
        let generation = self.generations[slot as usize] & GENERATION_MASK;
        u64::from(slot) | u64::from(generation) << 32 | (kind as u64) << 56
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: everything the entry points to outlives the request: receive buffers belong to the ring,
            // send buffers stay with their client until sent, or are given to `close` or `keep`.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit()?;
        }
    }

    /// Hand over all requests: none may be left behind that names a slot which then gets another connection.
    fn submit(&mut self) -> io::Result<()> {
        let mut tries = 0;
        while !self.ring.submission().is_empty() {
            if let Err(error) = self.ring.submit() {
                tries += 1;
                match error.raw_os_error() {
                    Some(libc::EINTR | libc::EBUSY | libc::EAGAIN) if tries < SUBMIT_TRIES => {
                        self.collect();
                    }
                    _ => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Hand over all requests and wait for a completion, at most `timeout_ns` from `now`.
    fn enter(&mut self, now: u64, timeout_ns: u64) -> io::Result<usize> {
        let until_ns = now.saturating_add(timeout_ns);
        if timeout_ns >= ALARM_NS_MIN && self.alarm.at_ns > until_ns {
            self.set_alarm(until_ns, timeout_ns)?;
        }
        if self.alarm.at_ns <= until_ns {
            return self.ring.submitter().submit_and_wait(1);
        }
        let time = Timespec::from(Duration::from_nanos(timeout_ns));
        let args = SubmitArgs::new().timespec(&time);
        self.ring.submitter().submit_with_args(1, &args)
    }

    /// End some wait at `at_ns`, in `left_ns`, which is before the alarm that is set, if any.
    fn set_alarm(&mut self, at_ns: u64, left_ns: u64) -> io::Result<()> {
        if self.alarm.at_ns != u64::MAX {
            return Ok(()); // it will end some wait a bit later, and this one has a timeout
        }
        self.alarm.at_ns = at_ns;
        let (time_ns, flags) = if self.alarm.is_absolute {
            (at_ns, TimeoutFlags::ABS)
        } else {
            (left_ns, TimeoutFlags::empty())
        };
        *self.alarm.time = Timespec::from(Duration::from_nanos(time_ns));
        let entry = opcode::Timeout::new(&raw const *self.alarm.time)
            .flags(flags)
            .build()
            .user_data((Kind::Alarm as u64) << 56);
        self.push(&entry)
    }

    /// Take the completions from the ring.
    fn collect(&mut self) {
        let completions = self.ring.completion();
        self.completions
            .extend(completions.map(|c| (c.user_data(), c.result(), c.flags())));
    }

    fn receive(&mut self, slot: Slot) -> io::Result<()> {
        let entry = opcode::RecvMulti::new(Fixed(slot), GROUP)
            .build()
            .user_data(self.tag(slot, Kind::Receive));
        self.push(&entry)
    }

    fn received(&mut self, slot: Slot, result: i32, flags: u32) -> Option<Event> {
        let chunk = cqueue::buffer_select(flags).map(|buffer| Chunk {
            buffer,
            len: usize::try_from(result).unwrap_or(0),
        });
        if result > 0 {
            if !cqueue::more(flags)
                && let Err(error) = self.receive(slot)
            {
                if let Some(chunk) = chunk {
                    self.release(chunk);
                }
                return Some(Event::Failed(slot, error.raw_os_error().unwrap_or(0)));
            }
            return chunk.map(|chunk| Event::Received(slot, chunk));
        }
        if let Some(chunk) = chunk {
            self.release(chunk);
        }
        match -result {
            0 => Some(Event::Closed(slot)),
            libc::ENOBUFS | libc::EINTR | libc::EAGAIN => match self.receive(slot) {
                Ok(()) => None,
                Err(error) => Some(Event::Failed(slot, error.raw_os_error().unwrap_or(0))),
            },
            errno => Some(Event::Failed(slot, errno)),
        }
    }

    /// The end of a send that was not quiet, or that went wrong.
    fn sent(slot: Slot, result: i32) -> Option<Event> {
        match -result {
            // Its last words, and its end, are still to be read.
            libc::EPIPE | libc::ECONNRESET => None,
            errno if errno > 0 => Some(Event::Failed(slot, errno)),
            _ => Some(Event::Sent(slot, usize::try_from(result).unwrap_or(0))),
        }
    }

    fn stale(&mut self, kind: u64, flags: u32) {
        if kind == Kind::Receive as u64
            && let Some(buffer) = cqueue::buffer_select(flags)
        {
            self.release(Chunk { buffer, len: 0 });
        }
    }
}

fn build_ring(entries: u32) -> io::Result<IoUring> {
    IoUring::builder()
        .setup_cqsize(entries * 4)
        .setup_clamp()
        .setup_submit_all()
        .setup_coop_taskrun()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries)
}

impl Poller for UringPoller {
    const NAME: &'static str = "io_uring";

    fn new(slots: usize) -> io::Result<Self> {
        let entries = u32::try_from(slots.next_power_of_two().clamp(64, 4096)).unwrap_or(4096);
        let ring = build_ring(entries)?;
        ring.submitter()
            .register_files_sparse(u32::try_from(slots.max(1)).unwrap_or(u32::MAX))?;
        let buffers = BufferRing::new(buffers_for(slots))?;
        // SAFETY: the buffer ring's memory is freed only after the ring that uses it (field order, and Drop).
        unsafe {
            ring.submitter().register_buf_ring_with_flags(
                buffers.address(),
                buffers.entries,
                GROUP,
                0,
            )
        }?;
        Ok(Self {
            ring,
            buffers,
            generations: vec![0; slots],
            completions: Vec::with_capacity(entries as usize * 4),
            at: 0,
            alarm: Alarm::default(),
            retired: Vec::new(),
            kept: Vec::new(),
        })
    }

    fn watch_connect(&mut self, slot: Slot, fd: RawFd) -> io::Result<()> {
        self.ring.submitter().register_files_update(slot, &[fd])?;
        let mask = u32::try_from(libc::POLLOUT).unwrap_or(0);
        let entry = opcode::PollAdd::new(Fixed(slot), mask)
            .build()
            .user_data(self.tag(slot, Kind::Connect));
        self.push(&entry)
    }

    fn open(&mut self, slot: Slot, fd: RawFd) -> io::Result<()> {
        self.ring.submitter().register_files_update(slot, &[fd])?;
        self.receive(slot)
    }

    fn close(&mut self, slot: Slot, fd: RawFd, sending: Vec<u8>) {
        // Ends the receive and any send under way; their completions carry the old generation. From here on no
        // attempt to send looks at the buffer, and one that waits is woken and ended by our next wait.
        let _ = nix::sys::socket::shutdown(fd, nix::sys::socket::Shutdown::Both);
        let _ = self.submit();
        let _ = self.ring.submitter().register_files_update(slot, &[-1]);
        self.generations[slot as usize] = self.generations[slot as usize].wrapping_add(1);
        if !sending.is_empty() {
            self.retired.push(sending);
        }
    }

    fn park(&mut self, slot: Slot, _fd: RawFd) {
        let receive = opcode::AsyncCancel::new(self.tag(slot, Kind::Receive)).build();
        // Without room for it, the receive ends with the connection.
        let _ = self.push(&receive.user_data(self.tag(slot, Kind::Cancel)));
        let _ = self.submit();
        let _ = self.ring.submitter().register_files_update(slot, &[-1]);
        self.generations[slot as usize] = self.generations[slot as usize].wrapping_add(1);
    }

    fn keep(&mut self, sending: Vec<u8>) {
        self.kept.push(sending);
    }

    fn send(&mut self, slot: Slot, _fd: RawFd, bytes: &[u8], quiet: bool) -> io::Result<Sending> {
        let len =
            u32::try_from(bytes.len()).map_err(|_| io::Error::from_raw_os_error(libc::EMSGSIZE))?;
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let mut entry = opcode::Send::new(Fixed(slot), bytes.as_ptr(), len)
            .flags(flags)
            .build()
            .user_data(self.tag(slot, Kind::Send));
        if quiet {
            entry = entry.flags(Flags::SKIP_SUCCESS);
        }
        self.push(&entry)?;
        Ok(Sending::Queued)
    }

    /// The kernel takes it within this call, unless it has no room for it: the ring takes what is left.
    fn send_alone(&mut self, slot: Slot, fd: RawFd, bytes: &[u8]) -> io::Result<Sending> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        // Errors are the ring's to report, which will find the same.
        let taken = send(fd, bytes, flags).unwrap_or(0);
        if taken == bytes.len() {
            return Ok(Sending::Done);
        }
        self.send(slot, fd, &bytes[taken..], true)
    }

    fn wait(&mut self, now: u64, timeout_ns: u64) -> io::Result<()> {
        self.completions.drain(..self.at);
        self.at = 0;
        let timeout_ns = if self.completions.is_empty() {
            timeout_ns
        } else {
            0
        };
        match self.enter(now, timeout_ns) {
            Ok(_) => {}
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => {}
                _ => return Err(error),
            },
        }
        self.collect();
        self.retired.clear();
        Ok(())
    }

    fn next(&mut self) -> Option<Event> {
        while let Some(&(tag, result, flags)) = self.completions.get(self.at) {
            self.at += 1;
            let slot = (tag & 0xFFFF_FFFF) as u32;
            let kind = tag >> 56;
            if kind == Kind::Alarm as u64 {
                self.alarm.at_ns = u64::MAX;
                continue;
            }
            let generation = (tag >> 32) as u32 & GENERATION_MASK;
            if generation != self.generations[slot as usize] & GENERATION_MASK {
                self.stale(kind, flags);
                continue;
            }
            let event = match kind {
                k if k == Kind::Receive as u64 => self.received(slot, result, flags),
                k if k == Kind::Connect as u64 => Some(Event::Writable(slot)),
                _ => Self::sent(slot, result),
            };
            if event.is_some() {
                return event;
            }
        }
        None
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        self.buffers.bytes(chunk)
    }

    fn release(&mut self, chunk: Chunk) {
        self.buffers.give_back(chunk.buffer);
    }
}

impl Drop for UringPoller {
    fn drop(&mut self) {
        // Fields drop in order: the ring (whose closing ends all requests) before all buffers.
        let _ = self.ring.submitter().unregister_buf_ring(GROUP);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::clock::now_ns;

    /// A poller that receives from one end of a connection, and the other end.
    fn connected() -> (UringPoller, UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut poller = UringPoller::new(1).unwrap();
        poller.open(0, ours.as_raw_fd()).unwrap();
        (poller, ours, theirs)
    }

    /// How long a wait without events took.
    fn idle_wait_ns(poller: &mut UringPoller, timeout_ns: u64) -> u64 {
        let begun_ns = now_ns();
        poller.wait(begun_ns, timeout_ns).unwrap();
        let took_ns = now_ns() - begun_ns;
        assert!(poller.next().is_none());
        took_ns
    }

    #[test]
    fn waits_end_in_time_whatever_alarm_is_set() {
        waits_end_in_time(true);
    }

    #[test]
    fn waits_end_in_time_where_a_namespace_moves_the_clock() {
        waits_end_in_time(false);
    }

    fn waits_end_in_time(is_absolute: bool) {
        const MS: u64 = 1_000_000;
        let (mut poller, _ours, mut theirs) = connected();
        poller.alarm.is_absolute &= is_absolute;
        theirs.write_all(b"answer").unwrap();
        poller.wait(now_ns(), 40 * MS).unwrap();
        let alarm_ns = poller.alarm.at_ns;
        assert!(matches!(poller.next(), Some(Event::Received(0, chunk)) if chunk.len == 6));
        assert!(poller.next().is_none());
        // Shorter ones have their own end, longer ones end with the alarm.
        assert!((MS..30 * MS).contains(&idle_wait_ns(&mut poller, MS)));
        assert!(idle_wait_ns(&mut poller, 60_000 * MS) < 10_000 * MS);
        assert!(now_ns() >= alarm_ns && poller.alarm.at_ns == u64::MAX);
        let took_ns = idle_wait_ns(&mut poller, 15 * MS);
        assert!((15 * MS..10_000 * MS).contains(&took_ns));
    }

    #[test]
    fn the_ring_sends_what_the_socket_had_no_room_for() {
        let (mut poller, ours, mut theirs) = connected();
        ours.set_nonblocking(true).unwrap();
        let block = vec![b'-'; 1 << 20];
        let mut filled = 0;
        while let Ok(taken) = (&ours).write(&block) {
            filled += taken;
        }
        let bytes: Vec<u8> = (0..9_000_u32).map(|n| (n % 251) as u8).collect();
        let sending = poller.send_alone(0, ours.as_raw_fd(), &bytes).unwrap();
        assert_eq!(sending, Sending::Queued);
        poller.wait(now_ns(), 0).unwrap();
        let mut first = vec![0; filled];
        theirs.read_exact(&mut first).unwrap();
        poller.wait(now_ns(), 0).unwrap();
        let mut last = vec![0; bytes.len()];
        theirs.read_exact(&mut last).unwrap();
        assert_eq!(last, bytes);
    }
}
