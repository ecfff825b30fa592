//! The memory that receives draw from, shared with the kernel.

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::super::Chunk;

const BUFFER_BYTES: u32 = 4096;

/// Buffers of one ring at most. They are given back within the turn that reads them, and taken in turns, so that each
/// of them is touched sooner or later; what finds none is received a little later.
const BUFFERS_MAX: usize = 512;

/// How many buffers so many connections share.
pub(super) fn buffers_for(slots: usize) -> usize {
    (slots.saturating_mul(2))
        .next_power_of_two()
        .clamp(64, BUFFERS_MAX)
}

/// A ring of buffer descriptions followed by the buffers.
pub(super) struct BufferRing {
    memory: NonNull<u8>,
    len: usize,
    pub(super) entries: u16,
    tail: u16,
}

// SAFETY: the memory is owned by this value alone and used from one thread at a time.
unsafe impl Send for BufferRing {}

impl BufferRing {
    pub(super) fn new(entries: usize) -> io::Result<Self> {
        let len = entries * (size_of::<BufRingEntry>() + BUFFER_BYTES as usize);
        let memory = mapped(len)?;
        let entries = u16::try_from(entries).map_err(io::Error::other)?;
        let mut ring = Self {
            memory,
            len,
            entries,
            tail: 0,
        };
        for buffer in 0..entries {
            ring.give_back(buffer);
        }
        Ok(ring)
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    fn buffer(&self, buffer: u16) -> *mut u8 {
        let offset = usize::from(self.entries) * size_of::<BufRingEntry>()
            + usize::from(buffer) * BUFFER_BYTES as usize;
        // SAFETY: buffer < entries, so the offset lies inside the allocation.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    pub(super) fn bytes(&self, chunk: Chunk) -> &[u8] {
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
    pub(super) fn give_back(&mut self, buffer: u16) {
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

/// Memory of zeros that is taken when it is touched: an allocator would write the zeros.
fn mapped(len: usize) -> io::Result<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a mapping of its own, at no given address.
    let memory = unsafe { libc::mmap(ptr::null_mut(), len, access, kind, -1, 0) };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(memory.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `new`, and the kernel has let go of it.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_nobody_has_used_take_no_memory() {
        let ring = BufferRing::new(4096).unwrap();
        let mut pages = vec![0_u8; ring.len.div_ceil(4096)];
        // SAFETY: the mapping is there, and there is a byte for each of its pages.
        let asked =
            unsafe { libc::mincore(ring.memory.as_ptr().cast(), ring.len, pages.as_mut_ptr()) };
        assert_eq!(asked, 0);
        let resident = pages.iter().filter(|page| **page & 1 == 1).count();
        assert_eq!(resident, 16, "pages of {}", pages.len());
    }

    #[test]
    fn connections_share_a_limited_number_of_buffers() {
        let shared = [1, 100, 513, 100_000].map(buffers_for);
        assert_eq!(shared, [64, 256, 512, 512]);
    }
}
