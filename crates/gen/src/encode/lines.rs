//! Rows as lines of text: every field is a separator and a value; the first separator is left out.

use std::ops::Range;

use arrow_buffer::NullBuffer;

use super::block::{self, Block, put_texts, put_texts_or_null};
use super::column::{Column, Values};
use super::time::Clock;
use super::{EncodeError, Form};
use crate::dictionary_batch::AnyBatch;
use crate::number::{
    FLOAT_BYTES_MAX, INTEGER_BYTES_MAX, Short, put_hundred_thousandths, put_integer,
    put_ten_thousandths,
};

/// What tells one format of lines from another.
pub(super) trait Format {
    const FORM: Form;
    /// Between two fields.
    const SEPARATOR: u8;
    /// What comes before the last byte of a line's end, which is a line feed.
    const CARRIAGE_RETURN: bool;
    /// A field without a value.
    const NULL: &'static [u8];
    /// Whether a text without a byte is a field without a byte.
    const EMPTY_IS_PLAIN: bool;
    const TRUE: &'static [u8];
    const FALSE: &'static [u8];

    fn clock() -> Clock;

    /// Bytes that a text may take at most.
    fn text_bytes_max(length: usize) -> usize;

    /// Whether every one of these texts, which follow each other, can be written as it is.
    fn are_plain(joined: &[u8], shortest: usize) -> bool;

    /// Writes a text; there is room for [`Self::text_bytes_max`] bytes.
    fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize;
}

/// The longest single: `-1.17549435E-38`.
const SINGLE_BYTES_MAX: usize = 16;

/// Bytes that a value which is no text takes at most, with its separator. What is overwritten after it lies within the
/// next value's bytes, or within what is free behind each row.
fn value_bytes_max(values: &Values) -> usize {
    1 + match values {
        Values::Int16(_) => 6,
        Values::Int32(_) => 11,
        Values::Int64(_) => 20,
        Values::Bool(_) => 5,
        Values::Days(_) => Clock::DATE_BYTES_MAX,
        Values::Float32(_) => SINGLE_BYTES_MAX,
        Values::Nanoseconds(_) | Values::Microseconds(_) => Clock::BYTES_MAX,
        _ => FLOAT_BYTES_MAX,
    }
}

// What numbers and times may write beyond a row's end is free there.
const _: () = assert!(INTEGER_BYTES_MAX < block::SLACK && Clock::BYTES_MAX < block::SLACK);

/// Appends rows as lines.
pub(super) fn put_rows<F: Format>(
    rows: &impl AnyBatch,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let groups = rows.column_groups();
    let columns = Column::of(groups, F::FORM)?;
    put_columns::<F>(&columns, 0..groups.num_rows(), out);
    Ok(())
}

/// The fields of one row, each with its separator.
pub(super) fn fragment<F: Format>(columns: &[Column], row: usize) -> Vec<u8> {
    let mut line = vec![F::SEPARATOR];
    put_columns::<F>(columns, row..row + 1, &mut line);
    let end = 1 + usize::from(F::CARRIAGE_RETURN);
    line.truncate(line.len() - end);
    line
}

fn put_columns<F: Format>(columns: &[Column], rows: Range<usize>, out: &mut Vec<u8>) {
    let mut clocks = vec![F::clock(); columns.len()];
    let mut plain = vec![true; columns.len()];
    let mut block = Block::new();
    let (mut first, mut most) = (rows.start, block::ROWS);
    let is_even = columns.iter().all(has_one_width);
    while first < rows.end {
        let end = rows.end.min(first + most);
        let count = begin::<F>(&mut block, columns, first, end, &mut plain);
        if is_even {
            // The next blocks are as wide as this one, so no more rows fit.
            most = count;
        }
        let (bytes, ends) = block.parts();
        for ((column, clock), plain) in columns.iter().zip(&mut clocks).zip(&plain) {
            put_column::<F>(column, *plain, first, bytes, ends, clock);
        }
        for end in ends {
            if F::CARRIAGE_RETURN {
                bytes[*end] = b'\r';
                *end += 1;
            }
            bytes[*end] = b'\n';
            *end += 1;
        }
        // Every field has its separator before it; the first one is not written.
        block.finish(usize::from(!columns.is_empty()), out);
        first += count;
    }
}

/// Whether every block of a column is of the same width.
fn has_one_width(column: &Column) -> bool {
    match &column.values {
        Values::Text(texts) | Values::Json(texts) => texts.are_short(),
        _ => true,
    }
}

/// Begins the block of the rows from `first` on; returns how many it has, and in which columns its texts can be written
/// as they are.
fn begin<F: Format>(
    block: &mut Block,
    columns: &[Column],
    first: usize,
    end: usize,
    plain: &mut [bool],
) -> usize {
    let width = |count: usize, plain: &[bool]| {
        let columns = columns.iter().zip(plain);
        let widths = columns.map(|(column, plain)| widest::<F>(column, *plain, first, count));
        widths.sum::<usize>() + 2
    };
    plain.fill(true);
    let count = block.begin(end - first, |count| width(count, plain));
    for (column, plain) in columns.iter().zip(&mut *plain) {
        *plain = is_plain::<F>(column, first, count);
    }
    if plain.iter().all(|plain| *plain) {
        return count;
    }
    block.begin(count, |count| width(count, plain))
}

/// Whether a column's values are texts that can be written as they are, or no texts.
fn is_plain<F: Format>(column: &Column, first: usize, count: usize) -> bool {
    let (Values::Text(texts) | Values::Json(texts)) = &column.values else {
        return true;
    };
    let shortest = match column.nulls {
        None => texts.span(first, count).shortest,
        Some(_) if F::EMPTY_IS_PLAIN => 0,
        Some(nulls) => {
            let rows = (first..).zip(texts.places(first, count));
            let lengths = rows.filter(|(row, _)| nulls.is_valid(*row));
            lengths.map(|(_, (_, length))| length).min().unwrap_or(1)
        }
    };
    F::are_plain(texts.joined(first, count), shortest)
}

/// Bytes that a value of so many rows of a column takes at most, with its separator and what is overwritten.
fn widest<F: Format>(column: &Column, plain: bool, first: usize, count: usize) -> usize {
    match &column.values {
        Values::Text(texts) | Values::Json(texts) => {
            let longest = texts.span(first, count).longest;
            if plain {
                return 1 + longest.max(F::NULL.len());
            }
            1 + F::text_bytes_max(longest).max(F::NULL.len())
        }
        Values::Looked(_, fragments) => fragments.width(),
        values => value_bytes_max(values).max(1 + F::NULL.len()),
    }
}

/// Appends a column's field to each row of a block.
fn put_column<F: Format>(
    column: &Column,
    plain: bool,
    first: usize,
    out: &mut [u8],
    ends: &mut [usize],
    clock: &mut Clock,
) {
    match &column.values {
        Values::Text(texts) | Values::Json(texts) if plain => {
            let head = |_| [F::SEPARATOR];
            match column.nulls {
                None => put_texts(*texts, block::SLACK, first, out, ends, head),
                Some(nulls) => put_texts_or_null(
                    *texts,
                    nulls,
                    block::SLACK,
                    first,
                    out,
                    ends,
                    head,
                    |out, at| {
                        out[at] = F::SEPARATOR;
                        put(out, at + 1, F::NULL)
                    },
                ),
            }
        }
        Values::Text(texts) | Values::Json(texts) => {
            put_values::<F>(column, first, out, ends, |out, at, row| {
                F::put_text(out, at + 1, texts.get(row))
            });
        }
        Values::Float64(values) => {
            let mut ryu = ryu::Buffer::new();
            put_values::<F>(column, first, out, ends, |out, at, row| {
                put_double(out, at, values[row], &mut ryu)
            });
        }
        Values::Float32(values) => put_values::<F>(column, first, out, ends, |out, at, row| {
            put_single(out, at, values[row])
        }),
        Values::Int16(values) => put_small::<F>(column, &values[first..], first, out, ends),
        Values::Int32(values) => put_values::<F>(column, first, out, ends, |out, at, row| {
            put_integer(out, at, values[row].into())
        }),
        Values::Days(values) => put_values::<F>(column, first, out, ends, |out, at, row| {
            clock.put_days(out, at + 1, values[row])
        }),
        Values::Int64(values) => put_values::<F>(column, first, out, ends, |out, at, row| {
            put_integer(out, at, values[row])
        }),
        Values::Bool(values) => put_values::<F>(column, first, out, ends, |out, at, row| {
            let text = if values.value(row) { F::TRUE } else { F::FALSE };
            put(out, at + 1, text)
        }),
        Values::Nanoseconds(values) => put_values::<F>(column, first, out, ends, |out, at, row| {
            clock.put_nanoseconds(out, at + 1, values[row])
        }),
        Values::Microseconds(values) => {
            put_values::<F>(column, first, out, ends, |out, at, row| {
                clock.put_microseconds(out, at + 1, values[row])
            });
        }
        Values::Looked(keys, looked) => looked.put(&keys[first..], looked.width(), out, ends),
    }
}

/// Appends what `value` writes behind the separator's place to each row, or null.
#[inline]
fn put_values<F: Format>(
    column: &Column,
    first: usize,
    out: &mut [u8],
    ends: &mut [usize],
    mut value: impl FnMut(&mut [u8], usize, usize) -> usize,
) {
    let Some(nulls) = column.nulls else {
        for (row, end) in (first..).zip(ends) {
            let next = value(out, *end, row);
            out[*end] = F::SEPARATOR;
            *end = next;
        }
        return;
    };
    for (row, end) in (first..).zip(ends) {
        let next = if nulls.is_null(row) {
            put(out, *end + 1, F::NULL)
        } else {
            value(out, *end, row)
        };
        out[*end] = F::SEPARATOR;
        *end = next;
    }
}

/// Appends a number of 16 bits to each row, or null.
fn put_small<F: Format>(
    column: &Column,
    values: &[i16],
    first: usize,
    out: &mut [u8],
    ends: &mut [usize],
) {
    let rows = values.iter().zip(ends);
    let Some(nulls) = column.nulls else {
        for (value, end) in rows {
            *end = match Short::number(F::SEPARATOR, *value) {
                Some(field) => field.put(out, *end),
                None => put_five_digits::<F>(out, *end, *value),
            };
        }
        return;
    };
    let null = Short::text(F::SEPARATOR, F::NULL);
    let mut given = given(nulls, first);
    for (value, end) in rows {
        *end = match Short::number(F::SEPARATOR, *value) {
            Some(field) => field.or(null, given & 1).put(out, *end),
            None if given & 1 == 1 => put_five_digits::<F>(out, *end, *value),
            None => null.put(out, *end),
        };
        given >>= 1;
    }
}

#[cold]
fn put_five_digits<F: Format>(out: &mut [u8], at: usize, value: i16) -> usize {
    let end = put_integer(out, at, value.into());
    out[at] = F::SEPARATOR;
    end
}

/// Which rows of a block have a value, the first one in the lowest bit.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a block has at most 64 rows"
)]
fn given(nulls: &NullBuffer, first: usize) -> u64 {
    let at = nulls.offset() + first;
    let bytes = &nulls.validity()[at / 8..];
    let mut bits = [0; 16];
    let count = bytes.len().min(9);
    bits[..count].copy_from_slice(&bytes[..count]);
    (u128::from_le_bytes(bits) >> (at % 8)) as u64
}

const _: () = assert!(block::ROWS <= 64);

/// Writes bytes, and returns where they end.
#[inline]
fn put(out: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    out[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

/// A comma and a single: the shortest decimal that reads back as it.
#[inline]
fn put_single(out: &mut [u8], at: usize, value: f32) -> usize {
    if let Some(scaled) = ten_thousandths(value) {
        return put_ten_thousandths(out, at, scaled);
    }
    put_long_single(out, at, value)
}

/// [`put_single`] for what is no short decimal.
#[inline(never)]
fn put_long_single(out: &mut [u8], at: usize, value: f32) -> usize {
    if let Some(whole) = whole(f64::from(value)) {
        return put_integer(out, at, whole);
    }
    if value.is_finite() {
        let mut buffer = ryu::Buffer::new();
        return put(out, at + 1, buffer.format_finite(value).as_bytes());
    }
    put(out, at + 1, not_finite(value.into()))
}

/// A comma and a double: the shortest decimal that reads back as it.
#[inline]
fn put_double(out: &mut [u8], at: usize, value: f64, ryu: &mut ryu::Buffer) -> usize {
    if let Some(whole) = whole(value) {
        return put_integer(out, at, whole);
    }
    if let Some(scaled) = hundred_thousandths(value) {
        return put_hundred_thousandths(out, at, scaled);
    }
    let text = if value.is_finite() {
        ryu.format_finite(value).as_bytes()
    } else {
        not_finite(value)
    };
    put(out, at + 1, text)
}

/// A double as an integer, if it is one of at most 15 digits. Minus zero is none.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "what does not come back the same is refused"
)]
fn whole(value: f64) -> Option<i64> {
    let whole = value as i64;
    let same = (whole as f64).to_bits() == value.to_bits();
    (same && whole.unsigned_abs() < 1_000_000_000_000_000).then_some(whole)
}

/// A double times 10^5, if it is the double nearest to that whole number divided by 10^5. Such a decimal
/// has at most ten digits, so no shorter one reads back as the same double.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "what does not come back the same is refused"
)]
fn hundred_thousandths(value: f64) -> Option<i32> {
    let scaled = (value * 100_000.0 + 0.5_f64.copysign(value)) as i32;
    let same = (f64::from(scaled) / 100_000.0).to_bits() == value.to_bits();
    same.then_some(scaled)
}

/// A single times 10^4, if it is below 1000 and the single nearest to that whole number divided by 10^4. Singles lie closer
/// together there than such decimals, so no other one, and no shorter one, reads back as the same single.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "what does not come back the same is refused"
)]
fn ten_thousandths(value: f32) -> Option<i32> {
    let wide = f64::from(value);
    let scaled = (wide * 10_000.0 + 0.5_f64.copysign(wide)) as i32;
    // Minus zero has bits of its own, and is written by others.
    let same = ((f64::from(scaled) / 10_000.0) as f32).to_bits() == value.to_bits();
    (same && wide.abs() < 999.99995).then_some(scaled)
}

/// How PostgreSQL names what is no number.
fn not_finite(value: f64) -> &'static [u8] {
    if value.is_nan() {
        b"NaN"
    } else if value > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    }
}

/// Whether a text has control characters or one of these; many bytes, or eight, at a time.
#[inline]
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches the compiler looks at many bytes at once"
)]
pub(super) fn has_any<const N: usize>(text: &[u8], wanted: [u8; N]) -> bool {
    let is_wanted = |byte: &u8| (*byte < b' ') | wanted.iter().fold(false, |f, w| f | (byte == w));
    let (chunks, rest) = text.as_chunks::<LANES>();
    let mut found = [false; LANES];
    for chunk in chunks {
        for (found, byte) in found.iter_mut().zip(chunk) {
            *found |= is_wanted(byte);
        }
    }
    if found.contains(&true) {
        return true;
    }
    if let Some(last) = rest.last_chunk::<8>() {
        let chunks = rest.as_chunks::<8>().0;
        let found = chunks
            .iter()
            .fold(0, |found, chunk| found | find(*chunk, wanted));
        return (found | find(*last, wanted)) != 0;
    }
    rest.iter()
        .fold(false, |found, byte| found | is_wanted(byte))
}

/// Bytes that are looked at together.
const LANES: usize = 32;

/// Not 0 if one of eight bytes is a control character or one of these. A byte is below `n` where
/// subtracting `n` borrows into its highest bit, which was not set; it is equal to another where the
/// bits by which they differ are below 1.
#[inline]
fn find<const N: usize>(bytes: [u8; 8], wanted: [u8; N]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGHEST: u64 = ONES << 7;
    let below = |word: u64, n: u64| word.wrapping_sub(ONES * n) & !word & HIGHEST;
    let word = u64::from_le_bytes(bytes);
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    wanted
        .into_iter()
        .fold(below(word, 0x20), |found, byte| found | equal(byte))
}
