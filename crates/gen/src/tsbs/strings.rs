//! Many short strings in one piece of memory.

/// Strings are copied in pieces of this size, which is faster than a call for any other.
const PIECE: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Strings {
    /// The strings, and a piece more so that the last one's last piece is whole.
    bytes: Vec<u8>,
    /// Where each string begins, and the last ends.
    bounds: Vec<usize>,
    longest: usize,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; PIECE],
            bounds: vec![0],
            longest: 0,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.bytes.truncate(self.bytes.len() - PIECE);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bounds.push(self.bytes.len());
        self.bytes.extend_from_slice(&[0; PIECE]);
        self.longest = self.longest.max(text.len());
    }

    pub(super) fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.bounds[index]..self.bounds[index + 1]]
    }

    /// Copies a string, and returns where it ends. Up to [`Self::SLACK`] bytes after it are overwritten.
    #[inline]
    pub(super) fn put(&self, index: usize, out: &mut [u8], at: usize) -> usize {
        let (start, end) = (self.bounds[index], self.bounds[index + 1]);
        let length = (end - start).next_multiple_of(PIECE);
        let pieces = self.bytes[start..start + length].chunks_exact(PIECE);
        for (to, from) in out[at..at + length].chunks_exact_mut(PIECE).zip(pieces) {
            to.copy_from_slice(from);
        }
        at + (end - start)
    }

    /// What [`Self::put`] may overwrite.
    pub(super) const SLACK: usize = PIECE;

    /// Whether there is one string only.
    #[inline]
    pub(super) fn is_single(&self) -> bool {
        self.bounds.len() == 2
    }

    /// Bytes of the longest string.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }
}
