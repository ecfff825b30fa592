//! `COPY … (format binary)`: <https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4>.

use std::ops::Range;

use super::block;
use super::column::{Column, Texts, Values};
use super::time::{days_to_postgres, to_postgres};
use super::{EncodeError, Form};
use crate::dictionary_batch::{AnyBatch, ColumnGroups};

/// What comes before the first row: the signature, no flags, no extension.
pub const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// What comes after the last row.
pub const TRAILER: [u8; 2] = [0xff, 0xff];

/// The length that stands for null.
const NULL: [u8; 4] = [0xff; 4];
const COUNT_BYTES: usize = 2;
const LENGTH_BYTES: usize = 4;
/// Most rows that are written side by side: all their values of a column before those of the next one.
const BLOCK_ROWS: usize = 64;
/// These rows stay within the first cache, if they are short.
const BLOCK_BYTES: usize = 24 << 10;
/// The first byte of `jsonb` in binary.
const JSONB_VERSION: u8 = 1;

/// Appends the rows as tuples, without [`HEADER`] and [`TRAILER`].
///
/// The types are PostgreSQL's of the same widths; times are `timestamptz` or `timestamp`, rounded down
/// to microseconds. A time that `PostgreSQL` cannot hold is refused by it as out of range.
///
/// # Errors
/// If a column is of a type that cannot be written, or there are too many.
pub fn copy_binary(rows: &impl AnyBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let groups = rows.column_groups();
    let columns = Column::of(groups, Form::CopyBinary)?;
    let fields = match groups {
        ColumnGroups::Columns(batch) => batch.num_columns(),
        ColumnGroups::Mixed(schema, ..) => schema.fields().len(),
    };
    let fields = i16::try_from(fields).map_err(|_| EncodeError::Columns(fields))?;
    put_columns(&columns, fields, 0..groups.num_rows(), out);
    Ok(())
}

/// The fields of one row.
pub(super) fn fragment(columns: &[Column], row: usize) -> Vec<u8> {
    let mut tuple = Vec::new();
    put_columns(columns, 0, row..row + 1, &mut tuple);
    tuple.split_off(COUNT_BYTES)
}

/// Appends tuples of so many fields.
fn put_columns(columns: &[Column], fields: i16, rows: Range<usize>, out: &mut Vec<u8>) {
    let least = COUNT_BYTES + columns.iter().map(least_bytes).sum::<usize>();
    let block_rows = (BLOCK_BYTES / least).clamp(1, BLOCK_ROWS);
    let mut places = [0; BLOCK_ROWS];
    let mut first = rows.start;
    while first < rows.end {
        let at = &mut places[..block_rows.min(rows.end - first)];
        at.fill(least);
        let end = lay_out(columns, first, at, out.len());
        out.resize(end, 0);
        for at in &mut *at {
            put(out, at, fields.to_be_bytes());
        }
        let mut behind = least - COUNT_BYTES;
        for column in columns {
            behind -= least_bytes(column);
            put_column(column, first, at, out, behind);
        }
        first += at.len();
    }
}

/// Bytes that every value of a column takes at least, with its length.
fn least_bytes(column: &Column) -> usize {
    let value = match &column.values {
        Values::Looked(_, fragments) => return fragments.shortest(),
        _ if column.nulls.is_some() => 0,
        Values::Int16(_) => 2,
        Values::Int32(_) | Values::Float32(_) | Values::Days(_) => 4,
        Values::Bool(_) => 1,
        Values::Text(texts) => texts.shortest(),
        Values::Json(texts) => texts.shortest() + 1,
        _ => 8,
    };
    LENGTH_BYTES + value
}

/// Turns the least length of each row into the place where it begins, the first one at `start`; returns where the
/// last one ends.
fn lay_out(columns: &[Column], first: usize, rows: &mut [usize], start: usize) -> usize {
    for column in columns {
        let least = least_bytes(column);
        match (&column.values, column.nulls) {
            (Values::Looked(keys, fragments), _) if fragments.vary() => {
                for (row, key) in rows.iter_mut().zip(&keys[first..]) {
                    *row += fragments.length(*key) - least;
                }
            }
            (Values::Text(texts) | Values::Json(texts), None) if texts.vary() => {
                let version = usize::from(matches!(column.values, Values::Json(_)));
                let lengths = texts.places(first, rows.len());
                for (row, (_, length)) in rows.iter_mut().zip(lengths) {
                    *row += LENGTH_BYTES + version + length - least;
                }
            }
            (_, None) => {}
            (values, Some(nulls)) => {
                for (number, row) in (first..).zip(&mut *rows) {
                    if nulls.is_valid(number) {
                        *row += value_bytes(values, number);
                    }
                }
            }
        }
    }
    let mut end = start;
    for row in rows {
        let length = std::mem::replace(row, end);
        end += length;
    }
    end
}

/// Bytes of a value that is not null, without its length.
fn value_bytes(values: &Values, row: usize) -> usize {
    match values {
        Values::Int16(_) => 2,
        Values::Int32(_) | Values::Float32(_) | Values::Days(_) => 4,
        Values::Bool(_) => 1,
        Values::Text(texts) => texts.get(row).len(),
        Values::Json(texts) => texts.get(row).len() + 1,
        _ => 8,
    }
}

/// Writes bytes at a position and moves it on.
#[inline]
fn put<const N: usize>(out: &mut [u8], at: &mut usize, bytes: [u8; N]) {
    out[*at..*at + N].copy_from_slice(&bytes);
    *at += N;
}

/// The values of a column for the rows of a block, each at its row's position; at least `behind` bytes of each row
/// are still to be written behind them.
fn put_column(column: &Column, first: usize, at: &mut [usize], out: &mut [u8], behind: usize) {
    match &column.values {
        Values::Int16(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            let [high, low] = v.to_be_bytes();
            [0, 0, 0, 2, high, low]
        }),
        Values::Days(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field4(days_to_postgres(v).to_be_bytes())
        }),
        Values::Int32(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field4(v.to_be_bytes())
        }),
        Values::Float32(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field4(v.to_be_bytes())
        }),
        Values::Int64(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field8(v.to_be_bytes())
        }),
        Values::Float64(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field8(v.to_be_bytes())
        }),
        Values::Nanoseconds(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field8(to_postgres(v.div_euclid(1000)).to_be_bytes())
        }),
        Values::Microseconds(v) => put_fixed(column, &v[first..], first, at, out, |v| {
            field8(to_postgres(v).to_be_bytes())
        }),
        Values::Bool(values) => {
            for (row, at) in (first..).zip(at) {
                if column.is_null(row) {
                    put(out, at, NULL);
                } else {
                    put(out, at, [0, 0, 0, 1, u8::from(values.value(row))]);
                }
            }
        }
        Values::Text(texts) if column.nulls.is_none() => {
            block::put_texts(*texts, behind, first, out, at, |length| {
                u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
            });
        }
        Values::Text(texts) => put_texts(column, *texts, None, first, at, out),
        Values::Json(texts) => put_texts(column, *texts, Some(JSONB_VERSION), first, at, out),
        Values::Looked(keys, fragments) => fragments.put(&keys[first..], behind, out, at),
    }
}

/// A value of four bytes after its length.
#[inline]
fn field4(value: [u8; 4]) -> [u8; 8] {
    let mut field = [0, 0, 0, 4, 0, 0, 0, 0];
    field[LENGTH_BYTES..].copy_from_slice(&value);
    field
}

/// A value of eight bytes after its length.
#[inline]
fn field8(value: [u8; 8]) -> [u8; 12] {
    let mut field = [0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    field[LENGTH_BYTES..].copy_from_slice(&value);
    field
}

#[inline]
fn put_fixed<T: Copy, const N: usize>(
    column: &Column,
    values: &[T],
    first: usize,
    at: &mut [usize],
    out: &mut [u8],
    field: impl Fn(T) -> [u8; N],
) {
    let Some(nulls) = column.nulls else {
        for (value, at) in values.iter().zip(at) {
            put(out, at, field(*value));
        }
        return;
    };
    for ((row, value), at) in (first..).zip(values).zip(at) {
        if nulls.is_null(row) {
            put(out, at, NULL);
        } else {
            put(out, at, field(*value));
        }
    }
}

fn put_texts(
    column: &Column,
    texts: Texts,
    version: Option<u8>,
    first: usize,
    at: &mut [usize],
    out: &mut [u8],
) {
    for (row, at) in (first..).zip(at) {
        if column.is_null(row) {
            put(out, at, NULL);
            continue;
        }
        let text = texts.get(row);
        let length = text.len() + usize::from(version.is_some());
        put(
            out,
            at,
            u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes(),
        );
        if let Some(version) = version {
            put(out, at, [version]);
        }
        out[*at..*at + text.len()].copy_from_slice(text);
        *at += text.len();
    }
}
