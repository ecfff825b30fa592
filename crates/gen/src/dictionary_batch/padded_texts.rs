//! Texts that are looked up, laid out so that one copy of a fixed size writes one.

use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::NullBuffer;

use crate::rows::columns::words_of;

/// Texts by number, each in a place of its own.
#[derive(Debug)]
pub(super) struct PaddedTexts {
    bytes: Vec<u8>,
    lengths: Vec<u8>,
    width: usize,
}

/// How wide a place can be.
const WIDTHS: [usize; 4] = [8, 16, 32, 64];

impl PaddedTexts {
    /// These texts, of which those that are null have no byte; none if one is too long.
    pub(super) fn new(texts: &StringArray) -> Option<Self> {
        let of = |text: Option<&str>| text.map_or(0, str::len);
        let longest = texts.iter().map(of).max().unwrap_or(0);
        let width = WIDTHS.into_iter().find(|width| longest <= *width)?;
        let mut bytes = vec![0; texts.len() * width];
        for (text, place) in texts.iter().zip(bytes.chunks_exact_mut(width)) {
            let text = text.unwrap_or_default().as_bytes();
            place[..text.len()].copy_from_slice(text);
        }
        let lengths = texts.iter().map(|text| u8::try_from(of(text)).ok());
        Some(Self {
            bytes,
            lengths: lengths.collect::<Option<_>>()?,
            width,
        })
    }

    /// A column of the texts with these numbers; `nulls` say where there is none.
    pub(super) fn gather(&self, keys: &[u16], nulls: Option<NullBuffer>) -> ArrayRef {
        match self.width {
            8 => self.wide::<8>(keys, nulls),
            16 => self.wide::<16>(keys, nulls),
            32 => self.wide::<32>(keys, nulls),
            _ => self.wide::<64>(keys, nulls),
        }
    }

    fn wide<const W: usize>(&self, keys: &[u16], nulls: Option<NullBuffer>) -> ArrayRef {
        words_of(self.bytes.as_chunks::<W>().0, &self.lengths, keys, nulls)
    }
}
