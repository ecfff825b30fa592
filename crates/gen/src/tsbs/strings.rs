//! Many short strings in one piece of memory.

#[derive(Clone, Debug)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    /// Where each string begins, and the last ends.
    bounds: Vec<usize>,
    longest: usize,
}

impl Strings {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            bounds: vec![0],
            longest: 0,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bounds.push(self.bytes.len());
        self.longest = self.longest.max(text.len());
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.bounds[index]..self.bounds[index + 1]]
    }

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
