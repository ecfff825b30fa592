//! Rows that are tuples: a number of values, and each after its length.

use super::{Fault, Row};
use crate::encode::copy_binary::TRAILER;

/// The first bytes of every file.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Signature, flags, length of what may follow.
const FIXED_BYTES: usize = SIGNATURE.len() + 4 + 4;
/// Longest extension that is gone past: nobody writes one.
const EXTENSION_BYTES_MAX: usize = 1 << 20;

const MAKE: &str = "write the file with COPY … (FORMAT binary), or set its format";

/// The length of what comes before the first tuple, once it is whole.
pub(super) fn header(bytes: &[u8], last: bool) -> Result<Option<usize>, Fault> {
    let known = bytes.len().min(SIGNATURE.len());
    if bytes[..known] != SIGNATURE[..known] {
        let message = "the file does not begin like COPY's binary format".to_owned();
        return Err((message, MAKE));
    }
    let (Some(flags), Some(extension)) = (word(bytes, 11), word(bytes, 15)) else {
        return if last { Err(cut_off()) } else { Ok(None) };
    };
    if flags != 0 {
        let message = format!("the file has unknown flags ({flags:#x})");
        return Err((message, "write it without object identifiers"));
    }
    let extension = usize::try_from(extension).unwrap_or(usize::MAX);
    if extension > EXTENSION_BYTES_MAX {
        let message = "the file has a header that is too long".to_owned();
        return Err((message, MAKE));
    }
    let length = FIXED_BYTES + extension;
    if bytes.len() < length {
        return if last { Err(cut_off()) } else { Ok(None) };
    }
    Ok(Some(length))
}

/// The tuple at the begin of these bytes. One of another shape is told at once: where it ends, nobody knows.
#[inline]
pub(super) fn tuple(bytes: &[u8], last: bool, columns: usize) -> Result<Row, Fault> {
    let part = || if last { Err(cut_off()) } else { Ok(Row::Part) };
    let Some(count) = bytes.first_chunk() else {
        return part();
    };
    if *count == TRAILER {
        return Ok(Row::End { bytes: 2 });
    }
    let fields = usize::try_from(i16::from_be_bytes(*count)).map_err(|_| {
        let message = "it has a negative number of fields".to_owned();
        (message, MAKE)
    })?;
    let mut at = count.len();
    // The one who called refuses another number.
    for field in 0..if fields == columns { fields } else { 0 } {
        let Some(length) = word(bytes, at) else {
            return part();
        };
        at += 4 + match length {
            -1 => 0,
            length => usize::try_from(length).map_err(|_| {
                let message = format!("field {} has the length {length}", field + 1);
                (message, MAKE)
            })?,
        };
    }
    if at > bytes.len() {
        return part();
    }
    Ok(Row::Whole { bytes: at, fields })
}

fn word(bytes: &[u8], at: usize) -> Option<i32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_be_bytes(*word))
}

fn cut_off() -> Fault {
    let message = "the file ends in the middle, before the mark that ends the data".to_owned();
    (message, "write it again: it is incomplete")
}
