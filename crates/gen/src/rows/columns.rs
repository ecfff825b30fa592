//! Columns under construction: values written straight into the buffers that Arrow takes.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, TimestampMicrosecondType};
use arrow_array::{ArrayRef, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, TimeUnit};

/// Texts of `L` bytes each, in the order of `places`.
pub(super) fn texts_of<const L: usize, P: Copy>(
    places: impl ExactSizeIterator<Item = P>,
    write: impl Fn(P, &mut [u8; L]),
) -> Result<ArrayRef, ArrowError> {
    let mut bytes = vec![0; places.len() * L];
    let (values, _) = bytes.as_chunks_mut::<L>();
    for (place, value) in places.zip(values) {
        write(place, value);
    }
    let lengths = std::iter::repeat_n(L, bytes.len() / L);
    let bounds = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(StringArray::try_new(
        bounds,
        Buffer::from_vec(bytes),
        None,
    )?))
}

/// Texts of at most `M` bytes each: `write` fills a window and says how much of it counts.
pub(super) fn texts_up_to<const M: usize, P: Copy>(
    places: impl ExactSizeIterator<Item = P>,
    write: impl Fn(P, &mut [u8; M]) -> usize,
) -> Result<ArrayRef, ArrowError> {
    let mut bytes = vec![0; places.len() * M];
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
    Ok(Arc::new(StringArray::try_new(
        bounds,
        Buffer::from_vec(bytes),
        None,
    )?))
}

/// Bytes that a value may write beyond its end.
pub(super) const SLACK: usize = 96;

/// Texts of any lengths. `write` appends each to what was written before; up to [`SLACK`] bytes behind it are cut off.
pub(super) fn texts<P>(
    places: impl ExactSizeIterator<Item = P>,
    write: impl Fn(P, &mut Vec<u8>) -> usize,
) -> Result<ArrayRef, ArrowError> {
    let mut bytes = Vec::new();
    let mut bounds = Vec::with_capacity(places.len() + 1);
    bounds.push(0);
    for place in places {
        let end = write(place, &mut bytes);
        bytes.truncate(end);
        bounds.push(i32::try_from(end).unwrap_or(i32::MAX));
    }
    let bounds = OffsetBuffer::new(ScalarBuffer::from(bounds));
    Ok(Arc::new(StringArray::try_new(
        bounds,
        Buffer::from_vec(bytes),
        None,
    )?))
}

/// Numbers.
pub(super) fn numbers<T: ArrowPrimitiveType>(values: impl Iterator<Item = T::Native>) -> ArrayRef {
    let values: Vec<_> = values.collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
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

/// The type of [`times`].
pub(super) const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
