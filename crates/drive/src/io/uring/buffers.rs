//! The memory that receives draw from, shared with the kernel.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::super::Chunk;

const BUFFER_BYTES: u32 = 4096;

/// A ring of buffer descriptions followed by the buffers.
pub(super) struct BufferRing {
    memory: NonNull<u8>,
    layout: Layout,
    pub(super) entries: u16,
    tail: u16,
}

// SAFETY: the memory is owned by this value alone and used from one thread at a time.
unsafe impl Send for BufferRing {}

impl BufferRing {
    pub(super) fn new(entries: usize) -> io::Result<Self> {
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

impl Drop for BufferRing {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}
