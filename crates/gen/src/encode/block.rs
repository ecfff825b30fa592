//! Rows laid out side by side, so that a column is written for all of them before the next one is.
//!
//! Each row of a block has a place of its own, as wide as the longest can be and then some: what is written
//! may reach beyond a value's end, and copies have fixed sizes. At the end the rows are moved together.

use arrow_buffer::NullBuffer;

use super::column::Texts;

/// Most rows of a block.
pub(super) const ROWS: usize = 64;
/// A block stays within the first cache, if a row does: most rows are shorter than there is place for.
const BLOCK_BYTES: usize = 32 << 10;
/// Of the cache.
const LINE_BYTES: usize = 64;
/// What may be written beyond a row's end.
pub(super) const SLACK: usize = 64;

/// Rows under construction.
pub(super) struct Block {
    pub(super) bytes: Vec<u8>,
    ends: [usize; ROWS],
    rows: usize,
    stride: usize,
}

impl Block {
    pub(super) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            ends: [0; ROWS],
            rows: 0,
            stride: 0,
        }
    }

    /// Begins the next block of at most `rows` rows, `width` telling how wide the widest of so many is at most; returns
    /// how many it has.
    pub(super) fn begin(&mut self, rows: usize, width: impl Fn(usize) -> usize) -> usize {
        let mut rows = rows.min(ROWS);
        let mut stride = distance(width(rows));
        while rows > 1 && rows * stride > BLOCK_BYTES {
            rows = rows.div_ceil(2);
            stride = distance(width(rows));
        }
        if self.bytes.len() < rows * stride {
            self.bytes.resize(rows * stride, 0);
        }
        for (row, end) in self.ends[..rows].iter_mut().enumerate() {
            *end = row * stride;
        }
        (self.rows, self.stride) = (rows, stride);
        rows
    }

    /// The bytes, and where each row ends so far.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut [u8], &mut [usize]) {
        (&mut self.bytes, &mut self.ends[..self.rows])
    }

    /// Appends the rows, less the first `skip` bytes of each.
    pub(super) fn finish(&self, skip: usize, out: &mut Vec<u8>) {
        for (row, end) in self.ends[..self.rows].iter().enumerate() {
            out.extend_from_slice(&self.bytes[row * self.stride + skip..*end]);
        }
    }
}

/// From one row to the next, if they are so wide at most: an odd number of cache lines, for rows that are a round number of
/// bytes apart would share a few sets of the cache.
fn distance(width: usize) -> usize {
    (width + SLACK).next_multiple_of(LINE_BYTES) | LINE_BYTES
}

/// Appends a text to each row, with what `head` makes of its length before it; the texts may be copied as they are,
/// and the next `behind` bytes of each row are free.
pub(super) fn put_texts<const H: usize>(
    texts: Texts,
    behind: usize,
    first: usize,
    out: &mut [u8],
    ends: &mut [usize],
    head: impl Fn(usize) -> [u8; H],
) {
    let span = texts.span(first, ends.len());
    let widest = span.spare.min(span.shortest + behind);
    match span.longest {
        0..=8 if widest >= 8 => put_wide::<H, 8>(texts, first, out, ends, head),
        0..=16 if widest >= 16 => put_wide::<H, 16>(texts, first, out, ends, head),
        0..=32 if widest >= 32 => put_wide::<H, 32>(texts, first, out, ends, head),
        0..=64 if widest >= 64 => put_wide::<H, 64>(texts, first, out, ends, head),
        _ => {
            for (row, end) in (first..).zip(ends) {
                let text = texts.get(row);
                let start = *end + H;
                out[*end..start].copy_from_slice(&head(text.len()));
                *end = start + text.len();
                out[start..*end].copy_from_slice(text);
            }
        }
    }
}

/// The same with copies of `W` bytes, of which as many count as the text has.
#[inline]
fn put_wide<const H: usize, const W: usize>(
    texts: Texts,
    first: usize,
    out: &mut [u8],
    ends: &mut [usize],
    head: impl Fn(usize) -> [u8; H],
) {
    for ((start, length), end) in texts.places(first, ends.len()).zip(ends) {
        let window = &mut out[*end..*end + H + W];
        window[..H].copy_from_slice(&head(length));
        window[H..].copy_from_slice(&texts.bytes()[start..start + W]);
        *end += H + length;
    }
}

/// As [`put_texts`]; where `nulls` say so, `null` writes to the end of a row and says where it ends then, within `behind`
/// bytes.
#[expect(
    clippy::too_many_arguments,
    reason = "what put_texts takes, and two more"
)]
pub(super) fn put_texts_or_null<const H: usize>(
    texts: Texts,
    nulls: &NullBuffer,
    behind: usize,
    first: usize,
    out: &mut [u8],
    ends: &mut [usize],
    head: impl Fn(usize) -> [u8; H],
    null: impl Fn(&mut [u8], usize) -> usize,
) {
    let span = texts.span(first, ends.len());
    let widest = span.spare.min(behind);
    // Rows without a text take none of the window's bytes.
    let mut put = |width: usize, end: &mut usize, row: usize, (start, length): (usize, usize)| {
        if nulls.is_null(row) {
            *end = null(out, *end);
            return;
        }
        let begin = *end + H;
        out[*end..begin].copy_from_slice(&head(length));
        out[begin..begin + width].copy_from_slice(&texts.bytes()[start..start + width]);
        *end = begin + length;
    };
    let rows = (first..).zip(texts.places(first, ends.len())).zip(ends);
    match span.longest {
        0..=8 if widest >= 8 => rows.for_each(|((row, place), end)| put(8, end, row, place)),
        0..=16 if widest >= 16 => rows.for_each(|((row, place), end)| put(16, end, row, place)),
        0..=32 if widest >= 32 => rows.for_each(|((row, place), end)| put(32, end, row, place)),
        _ => rows.for_each(|((row, place), end)| put(place.1, end, row, place)),
    }
}
