//! The text that MySQL's and MariaDB's `LOAD DATA` reads, with backslash as the escape character:
//! <https://mariadb.com/kb/en/load-data-infile/>.

use super::column::Column;
use super::copy_text::CopyText;
use super::lines::{self, Format, put_rows};
use super::time::{Clock, Style};
use super::{EncodeError, Form};
use crate::dictionary_batch::AnyBatch;

struct LoadData;

/// Appends the rows as lines: as [`super::copy_text()`] does, but for `1` and `0` where that has `t` and `f`, and times
/// without their zone, which these servers do not read.
///
/// # Errors
/// If a column is of a type that cannot be written.
pub fn load_data(rows: &impl AnyBatch, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    put_rows::<LoadData>(rows, out)
}

/// The fields of one row.
pub(super) fn fragment(columns: &[Column], row: usize) -> Vec<u8> {
    lines::fragment::<LoadData>(columns, row)
}

impl Format for LoadData {
    const FORM: Form = Form::LoadData;
    const SEPARATOR: u8 = CopyText::SEPARATOR;
    const CARRIAGE_RETURN: bool = CopyText::CARRIAGE_RETURN;
    const NULL: &'static [u8] = CopyText::NULL;
    const EMPTY_IS_PLAIN: bool = CopyText::EMPTY_IS_PLAIN;
    const TRUE: &'static [u8] = b"1";
    const FALSE: &'static [u8] = b"0";

    fn clock() -> Clock {
        Clock::new(Style::Local)
    }

    fn text_bytes_max(length: usize) -> usize {
        CopyText::text_bytes_max(length)
    }

    fn are_plain(joined: &[u8], texts: usize) -> bool {
        CopyText::are_plain(joined, texts)
    }

    #[inline]
    fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
        CopyText::put_text(out, at, text)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Date32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
        TimestampNanosecondArray,
    };

    use super::*;

    #[test]
    fn booleans_are_digits_and_times_have_no_zone() {
        let us = 1_451_606_400_250_000;
        let columns: [(&str, ArrayRef); 5] = [
            (
                "a",
                Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            ),
            (
                "b",
                Arc::new(TimestampMicrosecondArray::from(vec![
                    Some(us),
                    None,
                    Some(0),
                ])),
            ),
            (
                "c",
                Arc::new(
                    TimestampNanosecondArray::from(vec![us * 1000 + 999, -1, 0])
                        .with_timezone("UTC"),
                ),
            ),
            ("d", Arc::new(Date32Array::from(vec![0, 59, -1]))),
            (
                "e",
                Arc::new(StringArray::from(vec![Some("a\tb\\N"), None, Some("")])),
            ),
        ];
        let rows = RecordBatch::try_from_iter(columns).expect("of one length");
        let mut out = Vec::new();
        load_data(&rows, &mut out).expect("known types");
        let lines = [
            "1\t2016-01-01 00:00:00.25\t2016-01-01 00:00:00.25\t1970-01-01\ta\\tb\\\\N",
            "0\t\\N\t1969-12-31 23:59:59.999999\t1970-03-01\t\\N",
            "\\N\t1970-01-01 00:00:00\t1970-01-01 00:00:00\t1969-12-31\t",
            "",
        ];
        assert_eq!(String::from_utf8(out).expect("text"), lines.join("\n"));
    }
}
