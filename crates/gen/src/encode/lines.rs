//! Rows as lines of text: every field is a separator and a value, and the end of a line is the
//! separator before the next line's first field.

use arrow_array::RecordBatch;

use super::EncodeError;
use super::column::{Column, Texts, Values};
use super::time::Clock;
use crate::number::{
    FLOAT_BYTES_MAX, INTEGER_BYTES_MAX, SLACK, put_hundred_thousandths, put_integer,
};

/// What tells one format of lines from another.
pub(super) trait Format {
    /// Between two fields.
    const SEPARATOR: u8;
    /// What comes before the last byte of a line's end, which is a line feed.
    const CARRIAGE_RETURN: bool;
    /// A field without a value.
    const NULL: &'static [u8];
    const TRUE: &'static [u8];
    const FALSE: &'static [u8];

    fn clock() -> Clock;

    /// Bytes that a text may take at most.
    fn text_bytes_max(length: usize) -> usize;

    /// Writes a text; there is room for [`Self::text_bytes_max`] bytes.
    fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize;
}

/// Bytes of every value but texts, with its separator and what is overwritten after it.
const VALUE_BYTES_MAX: usize = {
    let number = if FLOAT_BYTES_MAX > INTEGER_BYTES_MAX {
        FLOAT_BYTES_MAX
    } else {
        INTEGER_BYTES_MAX
    };
    if number > Clock::BYTES_MAX + 1 + SLACK {
        number
    } else {
        Clock::BYTES_MAX + 1 + SLACK
    }
};

/// Lines are made here, in memory that is in the cache, and then appended.
const SCRATCH_BYTES: usize = 1 << 14;

struct Lines<'a> {
    scratch: Vec<u8>,
    at: usize,
    /// The separator before the first line, which is not written.
    skip: usize,
    out: &'a mut Vec<u8>,
    ryu: ryu::Buffer,
}

impl Lines<'_> {
    /// Makes room for so many bytes.
    #[inline]
    fn room(&mut self, bytes: usize) {
        if self.at + bytes > self.scratch.len() {
            self.make_room(bytes);
        }
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) {
        self.flush();
        if self.scratch.len() < bytes {
            self.scratch.resize(bytes, 0);
        }
    }

    fn flush(&mut self) {
        let first = self.skip.min(self.at);
        self.out.extend_from_slice(&self.scratch[first..self.at]);
        self.skip -= first;
        self.at = 0;
    }

    /// The separator, which numbers are written after as if it were a comma.
    #[inline]
    fn put_number(&mut self, separator: u8, put: impl FnOnce(&mut [u8], usize) -> usize) {
        let end = put(&mut self.scratch, self.at);
        self.scratch[self.at] = separator;
        self.at = end;
    }

    #[inline]
    fn put_byte(&mut self, byte: u8) {
        self.room(1);
        self.scratch[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    fn put(&mut self, separator: u8, text: &[u8]) {
        self.scratch[self.at] = separator;
        let start = self.at + 1;
        self.scratch[start..start + text.len()].copy_from_slice(text);
        self.at = start + text.len();
    }

    fn put_double(&mut self, separator: u8, value: f64) {
        let Self {
            scratch, at, ryu, ..
        } = self;
        let end = put_double(scratch, *at, value, ryu);
        scratch[*at] = separator;
        *at = end;
    }

    fn put_single(&mut self, separator: u8, value: f32) {
        if let Some(whole) = whole(f64::from(value)) {
            self.put_number(separator, |out, at| put_integer(out, at, whole));
        } else if value.is_finite() {
            let mut buffer = ryu::Buffer::new();
            self.put(separator, buffer.format_finite(value).as_bytes());
        } else {
            self.put(separator, not_finite(value.into()));
        }
    }

    #[inline]
    fn put_text<F: Format>(&mut self, separator: u8, texts: Texts, row: usize) {
        let text = texts.get(row);
        self.room(1 + F::text_bytes_max(text.len()));
        self.scratch[self.at] = separator;
        self.at = F::put_text(&mut self.scratch, self.at + 1, text);
    }

    #[inline]
    fn put_field<F: Format>(
        &mut self,
        column: &Column,
        row: usize,
        separator: u8,
        clock: &mut Clock,
    ) {
        self.room(VALUE_BYTES_MAX);
        if column.is_null(row) {
            return self.put(separator, F::NULL);
        }
        match &column.values {
            Values::Float64(values) => self.put_double(separator, values[row]),
            Values::Int32(values) => {
                self.put_number(separator, |out, at| {
                    put_integer(out, at, values[row].into())
                });
            }
            Values::Int64(values) => {
                self.put_number(separator, |out, at| put_integer(out, at, values[row]));
            }
            Values::Float32(values) => self.put_single(separator, values[row]),
            Values::Text(texts) | Values::Json(texts) => self.put_text::<F>(separator, *texts, row),
            Values::Bool(values) if values.value(row) => self.put(separator, F::TRUE),
            Values::Bool(_) => self.put(separator, F::FALSE),
            Values::Nanoseconds(values) => {
                let end = clock.put_nanoseconds(&mut self.scratch, self.at + 1, values[row]);
                self.scratch[self.at] = separator;
                self.at = end;
            }
            Values::Microseconds(values) => {
                let end = clock.put_microseconds(&mut self.scratch, self.at + 1, values[row]);
                self.scratch[self.at] = separator;
                self.at = end;
            }
        }
    }
}

/// Appends the rows of a batch as lines.
pub(super) fn put_rows<F: Format>(
    rows: &RecordBatch,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let columns = Column::of(rows)?;
    if rows.num_rows() == 0 {
        return Ok(());
    }
    let mut clocks: Vec<_> = columns.iter().map(|_| F::clock()).collect();
    let mut lines = Lines {
        scratch: vec![0; SCRATCH_BYTES],
        at: 0,
        skip: 1,
        out,
        ryu: ryu::Buffer::new(),
    };
    for row in 0..rows.num_rows() {
        if F::CARRIAGE_RETURN && row > 0 {
            lines.put_byte(b'\r');
        }
        let mut separator = b'\n';
        for (column, clock) in columns.iter().zip(&mut clocks) {
            lines.put_field::<F>(column, row, separator, clock);
            separator = F::SEPARATOR;
        }
    }
    if F::CARRIAGE_RETURN {
        lines.put_byte(b'\r');
    }
    lines.put_byte(b'\n');
    lines.flush();
    Ok(())
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
    out[at + 1..at + 1 + text.len()].copy_from_slice(text);
    at + 1 + text.len()
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

/// Whether a text has control characters or one of these; eight bytes at a time.
#[inline]
pub(super) fn has_any<const N: usize>(text: &[u8], wanted: [u8; N]) -> bool {
    if let Some(last) = text.last_chunk::<8>() {
        let chunks = text.as_chunks::<8>().0;
        let found = chunks
            .iter()
            .fold(0, |found, chunk| found | find(*chunk, wanted));
        return (found | find(*last, wanted)) != 0;
    }
    let short = text.iter();
    short.fold(false, |found, byte| {
        found | (*byte < b' ' || wanted.contains(byte))
    })
}

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
