//! The bytes of one file that are not on disk yet, in pages of 4 kB over what the backing file has.
//!
//! A page that is written back while somebody writes to it is copied, so a flush never holds a lock while it writes.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a page: the unit in which bytes survive or are lost.
pub(crate) const PAGE: usize = 4096;
const PAGE_U64: u64 = PAGE as u64;

type Page = Arc<[u8; PAGE]>;

/// A file's unsynced state.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    dirty: BTreeMap<u64, Page>,
    /// Bytes, as programs see them.
    size: u64,
    /// Bytes of the backing file.
    kept: u64,
    /// How many of the backing file's bytes still count: what a truncation cut off reads as zeros.
    floor: u64,
    /// The lowest truncation since the flush under way began.
    cut: Option<u64>,
}

/// What a flush writes, taken at one moment.
#[derive(Debug)]
pub(crate) struct Flush {
    /// Pages by their number.
    pub(crate) pages: Vec<(u64, Page)>,
    /// Cut the backing file to this length first.
    pub(crate) floor: u64,
    /// Its length afterwards.
    pub(crate) len: u64,
}

impl Flush {
    /// Bytes of its pages.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_U64
    }
}

/// Which pages a flush takes.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    /// All, and the size.
    All,
    /// Those of a range of bytes.
    Bytes(Range<u64>),
    /// The first so many.
    First(usize),
}

impl Pages {
    /// A file whose backing file has so many bytes.
    #[must_use]
    pub(crate) fn new(size: u64) -> Self {
        Self {
            size,
            kept: size,
            floor: size,
            ..Self::default()
        }
    }

    /// Bytes, as programs see them.
    #[must_use]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes in unsynced pages.
    #[must_use]
    pub(crate) fn unsynced(&self) -> u64 {
        self.dirty.len() as u64 * PAGE_U64
    }

    /// Whether the file would be another one after a loss.
    #[must_use]
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.size != self.kept || self.valid() < self.kept
    }

    fn valid(&self) -> u64 {
        self.floor.min(self.cut.unwrap_or(u64::MAX))
    }

    /// Read up to `len` bytes; `backing` fills a buffer from an offset of the backing file.
    pub(crate) fn read(
        &self,
        offset: u64,
        len: usize,
        backing: impl FnOnce(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<Vec<u8>> {
        let end = self.size.min(offset.saturating_add(len as u64));
        if offset >= end {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; length(end - offset)];
        let pages = offset / PAGE_U64..end.div_ceil(PAGE_U64);
        let held = self.dirty.range(pages.clone());
        let valid = self.valid().min(end);
        if offset < valid && (held.clone().count() as u64) < pages.end - pages.start {
            backing(offset, &mut bytes[..length(valid - offset)])?;
        }
        for (&number, page) in held {
            let start = number * PAGE_U64;
            let (from, to) = (start.max(offset), (start + PAGE_U64).min(end));
            bytes[length(from - offset)..length(to - offset)]
                .copy_from_slice(&page[length(from - start)..length(to - start)]);
        }
        Ok(bytes)
    }

    /// Write bytes; `backing` as in `read`, for the rest of pages that are not written whole.
    pub(crate) fn write(
        &mut self,
        offset: u64,
        data: &[u8],
        mut backing: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut at, mut rest) = (offset, data);
        while !rest.is_empty() {
            let within = length(at % PAGE_U64);
            let now = rest.len().min(PAGE - within);
            let page = self.page(at / PAGE_U64, now == PAGE, &mut backing)?;
            Arc::make_mut(page)[within..within + now].copy_from_slice(&rest[..now]);
            (at, rest) = (at + now as u64, &rest[now..]);
        }
        self.size = self.size.max(at);
        Ok(())
    }

    /// The page to write into, with what the file has there unless it is written whole.
    fn page(
        &mut self,
        number: u64,
        whole: bool,
        backing: &mut impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<&mut Page> {
        let valid = self.valid();
        match self.dirty.entry(number) {
            std::collections::btree_map::Entry::Occupied(held) => Ok(held.into_mut()),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                let start = number * PAGE_U64;
                let mut bytes = [0; PAGE];
                if !whole && start < valid {
                    backing(start, &mut bytes[..length((valid - start).min(PAGE_U64))])?;
                }
                Ok(vacant.insert(Arc::new(bytes)))
            }
        }
    }

    /// Set the size; new bytes are zeros.
    pub(crate) fn truncate(&mut self, size: u64) {
        if size < self.size {
            self.dirty.split_off(&size.div_ceil(PAGE_U64));
            let within = length(size % PAGE_U64);
            if let Some(page) = self.dirty.get_mut(&(size / PAGE_U64)) {
                Arc::make_mut(page)[within..].fill(0);
            }
            match &mut self.cut {
                Some(cut) => *cut = size.min(*cut),
                None => self.floor = size.min(self.floor),
            }
        }
        self.size = size;
    }

    /// Overwrite with zeros what of the range lies within the file.
    pub(crate) fn zero(
        &mut self,
        range: Range<u64>,
        mut backing: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let end = range.end.min(self.size);
        let mut at = range.start;
        while at < end {
            let now = (PAGE_U64 - at % PAGE_U64).min(end - at);
            self.write(at, &[0; PAGE][..length(now)], &mut backing)?;
            at += now;
        }
        Ok(())
    }

    /// Begin a flush; `done` or `failed` ends it, and there is one at a time.
    pub(crate) fn begin(&mut self, choice: &Choice) -> Flush {
        let take = |(number, page): (&u64, &Page)| (*number, Arc::clone(page));
        let floor = self.valid().min(self.kept);
        self.floor = floor;
        self.cut = Some(u64::MAX);
        let pages: Vec<_> = match choice {
            Choice::All => self.dirty.iter().map(take).collect(),
            Choice::First(most) => self.dirty.iter().take(*most).map(take).collect(),
            Choice::Bytes(range) => {
                let numbers = range.start / PAGE_U64..range.end.div_ceil(PAGE_U64);
                self.dirty.range(numbers).map(take).collect()
            }
        };
        // Pages are written whole, as far as the file goes: others may have written into them too.
        let end = pages
            .last()
            .map_or(0, |(number, _)| (number + 1) * PAGE_U64);
        let len = match choice {
            Choice::All => self.size,
            Choice::First(_) | Choice::Bytes(_) => floor.max(end.min(self.size)),
        };
        Flush { pages, floor, len }
    }

    /// End a flush that was written; returns how many bytes are no longer unsynced.
    pub(crate) fn done(&mut self, flush: &Flush) -> u64 {
        let before = self.unsynced();
        for (number, page) in &flush.pages {
            if self
                .dirty
                .get(number)
                .is_some_and(|held| Arc::ptr_eq(held, page))
            {
                self.dirty.remove(number);
            }
        }
        self.kept = flush.len;
        self.floor = flush.len.min(self.cut.take().unwrap_or(u64::MAX));
        before - self.unsynced()
    }

    /// End a flush that was not written whole; the backing file has so many bytes now.
    pub(crate) fn failed(&mut self, len: u64) {
        self.floor = self.valid();
        self.cut = None;
        self.kept = len;
    }

    /// Forget what is not in the backing file; returns the pages.
    pub(crate) fn lose(&mut self) -> BTreeMap<u64, Page> {
        let lost = std::mem::take(&mut self.dirty);
        *self = Self::new(self.kept);
        lost
    }

    /// The backing file has become this long.
    pub(crate) fn survived(&mut self, len: u64) {
        *self = Self::new(len.max(self.kept));
    }
}

/// A length that a buffer in memory has.
#[expect(clippy::cast_possible_truncation, reason = "this is for 64 bits")]
pub(crate) fn length(bytes: u64) -> usize {
    bytes as usize
}
