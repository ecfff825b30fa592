//! Rows that are lines: text with backslashes, CSV with quotes.

use memchr::{memchr, memchr_iter, memchr2};

use super::{Fault, Row};

/// The line that ends the data of `COPY`'s text format.
const END: &[u8] = b"\\.";

/// The row of text at the begin of these bytes: a backslash takes away the meaning of the byte after it.
#[inline]
pub(super) fn text(bytes: &[u8], last: bool) -> Row {
    let (mut at, mut escaped) = (0, false);
    let (line, length) = loop {
        match memchr2(b'\n', b'\\', &bytes[at..]).map(|found| at + found) {
            Some(end) if bytes[end] == b'\n' => break (&bytes[..end], end + 1),
            // What follows the mark may be the end of its line.
            Some(back) if bytes[..back].is_empty() && is_end(bytes) => {
                let end = memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
                return Row::End { bytes: end };
            }
            Some(back) if back + 1 < bytes.len() => (at, escaped) = (back + 2, true),
            _ if !last || bytes.is_empty() => return Row::Part,
            _ => break (bytes, bytes.len()),
        }
    };
    if last && line.strip_suffix(b"\r").unwrap_or(line) == END {
        return Row::End { bytes: length };
    }
    let tabs = if escaped {
        unescaped_tabs(line)
    } else {
        memchr_iter(b'\t', line).count()
    };
    Row::Whole {
        bytes: length,
        fields: tabs + 1,
    }
}

/// The bytes begin with the mark and the end of its line.
fn is_end(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\\.\n") || bytes.starts_with(b"\\.\r\n")
}

fn unescaped_tabs(line: &[u8]) -> usize {
    let (mut tabs, mut at) = (0, 0);
    while let Some(found) = memchr2(b'\t', b'\\', &line[at..]) {
        let is_tab = line[at + found] == b'\t';
        tabs += usize::from(is_tab);
        at += found + if is_tab { 1 } else { 2 };
        if at >= line.len() {
            break;
        }
    }
    tabs
}

/// The row of CSV at the begin of these bytes: between quotes, commas and ends of lines mean nothing.
#[inline]
pub(super) fn csv(bytes: &[u8], last: bool) -> Result<Row, Fault> {
    let (mut at, mut quoted) = (0, false);
    let (line, length) = loop {
        match memchr2(b'\n', b'"', &bytes[at..]).map(|found| at + found) {
            Some(end) if bytes[end] == b'\n' => break (&bytes[..end], end + 1),
            Some(quote) => match memchr(b'"', &bytes[quote + 1..]) {
                Some(close) => (at, quoted) = (quote + close + 2, true),
                None if last => {
                    let message = "a quoted field does not end".to_owned();
                    return Err((message, "close the quote, or write quotes in a field twice"));
                }
                None => return Ok(Row::Part),
            },
            None if !last || bytes.is_empty() => return Ok(Row::Part),
            None => break (bytes, bytes.len()),
        }
    };
    if line.strip_suffix(b"\r").unwrap_or(line) == END {
        // Servers before version 18 end there, and pass over all that follows.
        let message = "a line contains nothing but \\.".to_owned();
        return Err((message, "quote it if it is a value, or end the file there"));
    }
    let commas = if quoted {
        unquoted_commas(line)
    } else {
        memchr_iter(b',', line).count()
    };
    Ok(Row::Whole {
        bytes: length,
        fields: commas + 1,
    })
}

fn unquoted_commas(line: &[u8]) -> usize {
    let (mut commas, mut at) = (0, 0);
    while let Some(found) = memchr2(b',', b'"', &line[at..]) {
        at += found + 1;
        if line[at - 1] == b',' {
            commas += 1;
        } else {
            at += memchr(b'"', &line[at..]).map_or(line.len() - at, |close| close + 1);
        }
    }
    commas
}
