//! `COPY`'s text format: <https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2>.

use super::column::Column;
use super::lines::{self, Format, has_any, put_rows};
use super::time::{Clock, Style};
use super::{EncodeError, Form};
use crate::dictionary_batch::AnyBatch;

pub(super) struct CopyText;

/// Appends the rows as lines: fields parted by tabs, `\N` for null.
///
/// Doubles are written as the shortest decimals that read back as them, times rounded down to
/// microseconds with their zone.
///
/// # Errors
/// If a column is of a type that cannot be written.
pub fn copy_text(rows: &impl AnyBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    put_rows::<CopyText>(rows, out)
}

/// The fields of one row.
pub(super) fn fragment(columns: &[Column], row: usize) -> Vec<u8> {
    lines::fragment::<CopyText>(columns, row)
}

impl Format for CopyText {
    const FORM: Form = Form::CopyText;
    const SEPARATOR: u8 = b'\t';
    const CARRIAGE_RETURN: bool = false;
    const NULL: &'static [u8] = b"\\N";
    const EMPTY_IS_PLAIN: bool = true;
    const TRUE: &'static [u8] = b"t";
    const FALSE: &'static [u8] = b"f";

    fn clock() -> Clock {
        Clock::new(Style::Postgres)
    }

    fn text_bytes_max(length: usize) -> usize {
        2 * length
    }

    fn are_plain(joined: &[u8], _: usize) -> bool {
        !has_any(joined, [b'\\'])
    }

    #[inline]
    fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
        if has_any(text, [b'\\']) {
            return put_escaped(out, at, text);
        }
        out[at..at + text.len()].copy_from_slice(text);
        at + text.len()
    }
}

/// Whether a byte means something else to `COPY`: the backslash, the ends of lines and fields.
#[inline]
fn special(byte: u8) -> bool {
    byte == b'\\' || byte == b'\t' || byte == b'\n' || byte == b'\r'
}

#[cold]
fn put_escaped(out: &mut [u8], mut at: usize, text: &[u8]) -> usize {
    for &byte in text {
        if special(byte) {
            out[at] = b'\\';
            at += 1;
        }
        out[at] = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            other => other,
        };
        at += 1;
    }
    at
}
