//! The poller on `io_uring`: sends and receives of all ready clients in one system call.
//!
//! Receives are multishot and take their memory from one ring of buffers that all connections share, so an idle
//! connection costs no receive buffer. Sends that an answer will confirm complete silently. The kernel does its
//! part of the work inside our own call (deferred task run), so nothing interrupts the thread.

#![expect(
    unsafe_code,
    reason = "the kernel shares memory with us: buffers, and the rings themselves"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::types::{BufRingEntry, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::{Chunk, Event, Poller, Sending, Slot};

const BUFFER_BYTES: u32 = 4096;
const GROUP: u16 = 0;
const GENERATION_MASK: u32 = 0x00FF_FFFF;

/// What a completion belongs to, packed into its 64 bits: slot, generation of the slot, kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Connect = 1,
    Receive = 2,
    Send = 3,
}

pub(crate) struct UringPoller {
    ring: IoUring,
    buffers: BufferRing,
    /// Bumped when a slot's connection is closed, so that late completions are known as such.
    generations: Vec<u32>,
    completions: Vec<(u64, i32, u32)>,
    at: usize,
    /// Send buffers of closed connections: the kernel lets go of them during the next wait.
    retired: Vec<Vec<u8>>,
    /// Send buffers that were outgrown, see [`Poller::keep`]; freed with the ring.
    kept: Vec<Vec<u8>>,
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
        let buffers = BufferRing::new(slots.saturating_mul(2).next_power_of_two().clamp(64, 4096))?;
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

    fn wait(&mut self, timeout_ns: u64) -> io::Result<()> {
        self.completions.drain(..self.at);
        self.at = 0;
        let timeout_ns = if self.completions.is_empty() {
            timeout_ns
        } else {
            0
        };
        let time = Timespec::from(Duration::from_nanos(timeout_ns));
        let args = SubmitArgs::new().timespec(&time);
        match self.ring.submitter().submit_with_args(1, &args) {
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

/// The memory that receives draw from: a ring of buffer descriptions followed by the buffers.
struct BufferRing {
    memory: NonNull<u8>,
    layout: Layout,
    entries: u16,
    tail: u16,
}

// SAFETY: the memory is owned by this value alone and used from one thread at a time.
unsafe impl Send for BufferRing {}

impl BufferRing {
    fn new(entries: usize) -> io::Result<Self> {
        let bytes = entries * (size_of::<BufRingEntry>() + BUFFER_BYTES as usize);
        let layout = Layout::from_size_align(bytes, 4096).map_err(io::Error::other)?;
        // SAFETY: the layout's size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else {
            handle_alloc_error(layout)
        };
        let entries = u16::try_from(entries).map_err(io::Error::other)?;
        let mut ring = Self {
            memory,
            layout,
            entries,
            tail: 0,
        };
        for buffer in 0..entries {
            ring.give_back(buffer);
        }
        Ok(ring)
    }

    fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    fn buffer(&self, buffer: u16) -> *mut u8 {
        let offset = usize::from(self.entries) * size_of::<BufRingEntry>()
            + usize::from(buffer) * BUFFER_BYTES as usize;
        // SAFETY: buffer < entries, so the offset lies inside the allocation.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        assert!(
            chunk.buffer < self.entries && chunk.len <= BUFFER_BYTES as usize,
            "chunk out of range"
        );
        // SAFETY: in range, initialised (zeroed), and the kernel does not write to it before it is given back.
        unsafe { std::slice::from_raw_parts(self.buffer(chunk.buffer), chunk.len) }
    }

    #[expect(
        clippy::cast_ptr_alignment,
        reason = "the allocation is page-aligned and entries are 16 bytes"
    )]
    fn give_back(&mut self, buffer: u16) {
        let base = self.memory.as_ptr().cast::<BufRingEntry>();
        let index = usize::from(self.tail & (self.entries - 1));
        // SAFETY: index < entries; the kernel reads the entry only after the tail has moved past it.
        unsafe {
            let entry = &mut *base.add(index);
            entry.set_addr(self.buffer(buffer) as u64);
            entry.set_len(BUFFER_BYTES);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(base).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

impl Drop for UringPoller {
    fn drop(&mut self) {
        // Fields drop in order: the ring (whose closing ends all requests) before all buffers.
        let _ = self.ring.submitter().unregister_buf_ring(GROUP);
    }
}
