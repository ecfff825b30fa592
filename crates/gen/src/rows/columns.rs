//! Columns under construction: values written straight into the buffers that Arrow takes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, TimestampMicrosecondType};
use arrow_array::{ArrayRef, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, TimeUnit};

/// What one batch leaves for the next: fresh memory costs as much as the values that are written into it.
#[derive(Default)]
pub(super) struct Memory {
    /// Where texts of one length begin and end: the same numbers for every batch, by length.
    bounds: BTreeMap<usize, OffsetBuffer<i32>>,
    /// The bytes of the columns of the last batch, in their order.
    last: VecDeque<Buffer>,
}

impl Memory {
    /// So many bytes, whatever they are.
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = self.any_bytes();
        bytes.resize(count, 0);
        bytes
    }

    /// The bytes of the column of the last batch, if nobody holds them any more.
    fn any_bytes(&mut self) -> Vec<u8> {
        let last = self.last.pop_front();
        let last = last.and_then(|last| last.into_vec::<u8>().ok());
        last.unwrap_or_default()
    }

    fn strings(&mut self, bounds: OffsetBuffer<i32>, bytes: Vec<u8>) -> ArrayRef {
        let bytes = Buffer::from_vec(bytes);
        self.last.push_back(bytes.clone());
        strings(bounds, bytes, None)
    }

    fn bounds(&mut self, length: usize, count: usize) -> OffsetBuffer<i32> {
        let kept = self.bounds.get(&length);
        if let Some(kept) = kept.filter(|kept| kept.len() > count) {
            return kept.slice(0, count);
        }
        let made = OffsetBuffer::from_lengths(std::iter::repeat_n(length, count));
        self.bounds.insert(length, made.clone());
        made
    }
}

/// Texts that this module's callers have put together of whole characters.
fn strings(bounds: OffsetBuffer<i32>, bytes: Buffer, nulls: Option<NullBuffer>) -> ArrayRef {
    if cfg!(debug_assertions) {
        return Arc::new(StringArray::new(bounds, bytes, nulls));
    }
    // SAFETY: every text is made of tables of ASCII, of whole texts and of whole characters; tests, which are
    // built with debug assertions, have it checked above.
    #[expect(
        unsafe_code,
        reason = "checking each text takes a third of the time of making it"
    )]
    let texts = unsafe { StringArray::new_unchecked(bounds, bytes, nulls) };
    Arc::new(texts)
}

/// Texts of `L` bytes each, in the order of `places`.
pub(super) fn texts_of<const L: usize, P: Copy>(
    memory: &mut Memory,
    places: impl ExactSizeIterator<Item = P>,
    write: impl Fn(P, &mut [u8; L]),
) -> ArrayRef {
    let mut bytes = memory.bytes(places.len() * L);
    let (values, _) = bytes.as_chunks_mut::<L>();
    for (place, value) in places.zip(values) {
        write(place, value);
    }
    let bounds = memory.bounds(L, bytes.len() / L);
    memory.strings(bounds, bytes)
}

/// Texts of at most `M` bytes each: `write` fills a window and says how much of it counts.
pub(super) fn texts_up_to<const M: usize, P: Copy>(
    memory: &mut Memory,
    places: impl ExactSizeIterator<Item = P>,
    write: impl Fn(P, &mut [u8; M]) -> usize,
) -> ArrayRef {
    let mut bytes = memory.bytes(places.len() * M);
    let mut bounds = Vec::with_capacity(places.len() + 1);
    bounds.push(0);
    let mut end = 0;
    for place in places {
        if let Some(window) = bytes[end..].first_chunk_mut::<M>() {
            end += write(place, window);
        }
        bounds.push(i32::try_from(end).unwrap_or(i32::MAX));
    }
    bytes.truncate(end);
    let bounds = OffsetBuffer::new(ScalarBuffer::from(bounds));
    memory.strings(bounds, bytes)
}

/// Texts that are looked up: of each word, a whole text, as many bytes as `lengths` say.
pub(crate) fn words_of<const W: usize>(
    words: &[[u8; W]],
    lengths: &[u8],
    keys: &[u16],
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let length = |key: &u16| usize::from(lengths[usize::from(*key)]);
    let count: usize = keys.iter().map(length).sum();
    let mut bytes = vec![0; count + W];
    let mut bounds = Vec::with_capacity(keys.len() + 1);
    bounds.push(0);
    let mut end = 0;
    for key in keys {
        bytes[end..end + W].copy_from_slice(&words[usize::from(*key)]);
        end += length(key);
        bounds.push(i32::try_from(end).unwrap_or(i32::MAX));
    }
    bytes.truncate(end);
    let bounds = OffsetBuffer::new(ScalarBuffer::from(bounds));
    strings(bounds, Buffer::from_vec(bytes), nulls)
}

/// Bytes that a value may write beyond its end.
pub(super) const SLACK: usize = 96;

/// Texts of any lengths: `write` writes each at its place, within [`room`], and says where it ends.
pub(super) fn texts<P>(
    memory: &mut Memory,
    places: impl ExactSizeIterator<Item = P>,
    write: impl Fn(P, &mut Vec<u8>, usize) -> usize,
) -> ArrayRef {
    let mut bytes = memory.any_bytes();
    let mut bounds = Vec::with_capacity(places.len() + 1);
    bounds.push(0);
    let mut end = 0;
    for place in places {
        end = write(place, &mut bytes, end);
        bounds.push(i32::try_from(end).unwrap_or(i32::MAX));
    }
    bytes.truncate(end);
    let bounds = OffsetBuffer::new(ScalarBuffer::from(bounds));
    memory.strings(bounds, bytes)
}

/// So many bytes from a place on, whatever they are.
#[inline]
pub(super) fn room(bytes: &mut Vec<u8>, at: usize, count: usize) -> &mut [u8] {
    if bytes.len() < at + count {
        bytes.resize(at + count, 0);
    }
    &mut bytes[at..at + count]
}

/// Numbers.
pub(super) fn numbers<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    numbers_or_null::<T>(values, None)
}

/// Numbers; none where `nulls` say so.
pub(super) fn numbers_or_null<T: ArrowPrimitiveType>(
    values: impl Iterator<Item = T::Native>,
    nulls: Option<&NullBuffer>,
) -> ArrayRef {
    let values: Vec<_> = values.collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls.cloned()))
}

/// Times, microseconds since 1970.
pub(super) fn times(microseconds: Vec<i64>) -> ArrayRef {
    Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(
        microseconds.into(),
        None,
    ))
}

/// A column without nulls.
pub(super) fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// A column that can be null.
pub(super) fn nullable(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

/// The type of [`times`].
pub(super) const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
