//! Texts that are looked up: every value that a column can have, laid out so that one copy of a fixed size writes it.

use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;

use super::super::columns::{Memory, texts_up_to_or_null};

/// Texts of at most `W` bytes, by number.
pub(super) struct Words<const W: usize>(Vec<Word<W>>);

#[derive(Clone, Copy)]
struct Word<const W: usize> {
    bytes: [u8; W],
    length: u8,
}

impl<const W: usize> Words<W> {
    /// These texts; what is longer than `W` bytes is cut, which no text of ours is.
    pub(super) fn new<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        Self(texts.map(Word::new).collect())
    }

    /// A column of the texts with these numbers; where `nulls` say so, there is none: the text must be empty there.
    pub(super) fn column(
        &self,
        memory: &mut Memory,
        numbers: impl ExactSizeIterator<Item = usize>,
        nulls: Option<&NullBuffer>,
    ) -> ArrayRef {
        texts_up_to_or_null(memory, numbers, nulls, |number, value: &mut [u8; W]| {
            let word = &self.0[number];
            *value = word.bytes;
            word.length.into()
        })
    }
}

impl<const W: usize> Word<W> {
    fn new(text: &str) -> Self {
        let length = text.len().min(W);
        let mut bytes = [0; W];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        debug_assert_eq!(length, text.len(), "{text}");
        Self {
            bytes,
            length: u8::try_from(length).unwrap_or(0),
        }
    }
}
