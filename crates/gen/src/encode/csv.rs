//! Comma-separated values as RFC 4180 defines them.

use arrow_schema::Schema;

use super::column::Column;
use super::lines::{self, Format, has_any, put_rows};
use super::time::{Clock, Style};
use super::{EncodeError, Form};
use crate::dictionary_batch::AnyBatch;

struct Csv;

/// Appends the rows as lines, each ended by a carriage return and a line feed.
///
/// Null is an empty field, an empty text is `""`. Texts with quotes, commas or control characters are quoted.
/// Times are as `2016-01-01T00:00:00.5Z`, doubles the shortest decimals that read back as them, or
/// `NaN`, `Infinity`, `-Infinity`.
///
/// # Errors
/// If a column is of a type that cannot be written.
pub fn csv(rows: &impl AnyBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    put_rows::<Csv>(rows, out)
}

/// Appends the line of the columns' names.
pub fn csv_header(schema: &Schema, out: &mut Vec<u8>) {
    for (index, field) in schema.fields().iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let name = field.name().as_bytes();
        let start = out.len();
        out.resize(start + Csv::text_bytes_max(name.len()), 0);
        let end = Csv::put_text(out, start, name);
        out.truncate(end);
    }
    out.extend_from_slice(b"\r\n");
}

/// The fields of one row.
pub(super) fn fragment(columns: &[Column], row: usize) -> Vec<u8> {
    lines::fragment::<Csv>(columns, row)
}

impl Format for Csv {
    const FORM: Form = Form::Csv;
    const SEPARATOR: u8 = b',';
    const CARRIAGE_RETURN: bool = true;
    const NULL: &'static [u8] = b"";
    const EMPTY_IS_PLAIN: bool = false;
    const TRUE: &'static [u8] = b"true";
    const FALSE: &'static [u8] = b"false";

    fn clock() -> Clock {
        Clock::new(Style::Iso)
    }

    fn text_bytes_max(length: usize) -> usize {
        2 * length + 2
    }

    fn are_plain(joined: &[u8], shortest: usize) -> bool {
        shortest > 0 && !has_any(joined, [b'"', b','])
    }

    #[inline]
    fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
        if text.is_empty() || has_any(text, [b'"', b',']) {
            return put_quoted(out, at, text);
        }
        out[at..at + text.len()].copy_from_slice(text);
        at + text.len()
    }
}

#[cold]
fn put_quoted(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    out[at] = b'"';
    let mut at = at + 1;
    for &byte in text {
        if byte == b'"' {
            out[at] = b'"';
            at += 1;
        }
        out[at] = byte;
        at += 1;
    }
    out[at] = b'"';
    at + 1
}
