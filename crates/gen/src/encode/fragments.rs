//! Entries of a dictionary as bytes, to be copied into rows.

use arrow_array::ArrayRef;

use super::column::Column;
use super::{Form, copy_binary, copy_text, csv, load_data};

/// What each entry becomes: all its fields, laid out so that one copy of a fixed size writes them.
#[derive(Debug)]
pub(crate) struct Fragments {
    bytes: Vec<u8>,
    lengths: Vec<u32>,
    /// Bytes from one fragment to the next, which is the size of the copies.
    width: usize,
    shortest: usize,
    longest: usize,
}

/// Sizes that copies can have; longer fragments are copied to their length.
const WIDTHS: [usize; 9] = [8, 16, 24, 32, 48, 64, 96, 128, 192];

impl Fragments {
    /// The first `count` entries of these columns.
    pub(crate) fn of(columns: &[ArrayRef], count: usize, form: Form) -> Self {
        let columns: Vec<_> = columns
            .iter()
            .filter_map(|column| Column::new(column, false))
            .collect();
        let entries = (0..count).map(|entry| match form {
            Form::CopyText => copy_text::fragment(&columns, entry),
            Form::CopyBinary => copy_binary::fragment(&columns, entry),
            Form::Csv => csv::fragment(&columns, entry),
            Form::LoadData => load_data::fragment(&columns, entry),
        });
        Self::new(&entries.collect::<Vec<_>>())
    }

    fn new(entries: &[Vec<u8>]) -> Self {
        let lengths = || entries.iter().map(Vec::len);
        let longest = lengths().max().unwrap_or(0);
        let width = WIDTHS.into_iter().find(|width| longest <= *width);
        let width = width.unwrap_or(longest);
        let mut bytes = vec![0; entries.len() * width];
        for (entry, place) in entries.iter().zip(bytes.chunks_exact_mut(width)) {
            place[..entry.len()].copy_from_slice(entry);
        }
        Self {
            bytes,
            lengths: lengths()
                .map(|length| u32::try_from(length).unwrap_or(u32::MAX))
                .collect(),
            width,
            shortest: lengths().min().unwrap_or(0),
            longest,
        }
    }

    /// Bytes that a row may need for one, with what is overwritten behind it.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Bytes of the shortest.
    pub(super) fn shortest(&self) -> usize {
        self.shortest
    }

    /// Whether they are of several lengths.
    pub(super) fn vary(&self) -> bool {
        self.shortest != self.longest
    }

    /// Bytes of one.
    #[inline]
    pub(super) fn length(&self, key: u16) -> usize {
        self.lengths[usize::from(key)] as usize
    }

    /// Appends a fragment to each row; the next `behind` bytes of each row are free.
    pub(super) fn put(&self, keys: &[u16], behind: usize, out: &mut [u8], ends: &mut [usize]) {
        if self.width > self.shortest + behind {
            return self.put_exactly(keys, out, ends);
        }
        match self.width {
            8 => self.put_wide::<8>(keys, out, ends),
            16 => self.put_wide::<16>(keys, out, ends),
            24 => self.put_wide::<24>(keys, out, ends),
            32 => self.put_wide::<32>(keys, out, ends),
            48 => self.put_wide::<48>(keys, out, ends),
            64 => self.put_wide::<64>(keys, out, ends),
            96 => self.put_wide::<96>(keys, out, ends),
            128 => self.put_wide::<128>(keys, out, ends),
            192 => self.put_wide::<192>(keys, out, ends),
            _ => self.put_exactly(keys, out, ends),
        }
    }

    fn put_wide<const W: usize>(&self, keys: &[u16], out: &mut [u8], ends: &mut [usize]) {
        let (fragments, _) = self.bytes.as_chunks::<W>();
        for (key, end) in keys.iter().zip(ends) {
            let window = &mut out[*end..*end + W];
            window.copy_from_slice(&fragments[usize::from(*key)]);
            *end += self.length(*key);
        }
    }

    fn put_exactly(&self, keys: &[u16], out: &mut [u8], ends: &mut [usize]) {
        for (key, end) in keys.iter().zip(ends) {
            let (start, length) = (usize::from(*key) * self.width, self.length(*key));
            out[*end..*end + length].copy_from_slice(&self.bytes[start..start + length]);
            *end += length;
        }
    }
}
