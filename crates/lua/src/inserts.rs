//! Inserts of many rows with plain values, read so that they can be sent as data.

/// Rows of an insert as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainRows<'s> {
    /// The table as it was written, with its schema.
    pub table: &'s str,
    /// The columns in parentheses as they were written; empty where none are named.
    pub columns: &'s str,
    /// How many rows there are.
    pub rows: usize,
    /// How many values each of them has.
    pub width: usize,
}

/// Reads an insert, and makes `rows` its rows in the text format of PostgreSQL's COPY, which is also that of MySQL's
/// LOAD DATA: fields end with a tab, lines with a newline.
///
/// `None` where the statement is anything but whole numbers, quoted texts and NULLs for a table, the same number in
/// each row: whoever sent it then sends it as it is. Texts with a backslash are not read, for what they mean depends
/// on the session.
#[must_use]
pub fn plain_rows<'s>(sql: &'s [u8], rows: &mut Vec<u8>) -> Option<PlainRows<'s>> {
    let (table, columns, mut rest) = split(sql)?;
    rows.clear();
    let (mut count, mut width) = (0, 0);
    loop {
        let (found, after) = row(rest, rows)?;
        if count > 0 && found != width {
            return None;
        }
        (count, width) = (count + 1, found);
        match after.trim_ascii_start() {
            [] => break,
            [b',', more @ ..] => rest = more,
            _ => return None,
        }
    }
    let named = columns.split(',').count();
    (columns.is_empty() || named == width).then_some(PlainRows {
        table,
        columns,
        rows: count,
        width,
    })
}

/// The table, its columns, and what comes after VALUES.
fn split(sql: &[u8]) -> Option<(&str, &str, &[u8])> {
    let quote = sql.iter().position(|&byte| byte == b'\'');
    let head = quote.unwrap_or(sql.len()).min(HEAD_MAX);
    let words = ascii(&sql[..head]);
    let upper = words.to_ascii_uppercase();
    let begin = upper.starts_with(INTO).then_some(INTO.len())?;
    let end = upper.find(VALUES)?;
    let target = words.get(begin..end)?;
    // Otherwise the word is the end of a longer one.
    if !target.ends_with([' ', '\t', '\n', ')']) {
        return None;
    }
    let (table, columns) = target.split_at(target.find('(').unwrap_or(target.len()));
    let (table, columns) = (table.trim(), columns.trim());
    (is_table(table) && is_columns(columns)).then(|| (table, columns, &sql[end + VALUES.len()..]))
}

const INTO: &str = "INSERT INTO ";
const VALUES: &str = "VALUES";
/// The longest head that is read.
const HEAD_MAX: usize = 4096;

/// What comes before the first byte that is not ASCII.
fn ascii(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|byte| !byte.is_ascii());
    std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).unwrap_or_default()
}

/// A name with its schema: nothing that is quoted, and no alias.
fn is_table(table: &str) -> bool {
    !table.is_empty() && table.bytes().all(|byte| is_name(byte) || byte == b'.')
}

/// Names in parentheses, or nothing.
fn is_columns(columns: &str) -> bool {
    if columns.is_empty() {
        return true;
    }
    let inner = columns.strip_prefix('(').and_then(|c| c.strip_suffix(')'));
    inner.is_some_and(|inner| inner.split(',').all(is_column))
}

fn is_column(text: &str) -> bool {
    let name = text.trim_matches(' ');
    !name.is_empty() && name.bytes().all(is_name)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// Appends one row; returns the number of its values, and what follows it.
fn row<'s>(text: &'s [u8], rows: &mut Vec<u8>) -> Option<(usize, &'s [u8])> {
    let mut rest = text.trim_ascii_start().strip_prefix(b"(")?;
    let mut width = 0;
    loop {
        rest = value(rest.trim_ascii_start(), rows)?.trim_ascii_start();
        width += 1;
        let (&end, after) = rest.split_first()?;
        rest = after;
        match end {
            b',' => rows.push(b'\t'),
            b')' => break,
            _ => return None,
        }
    }
    rows.push(b'\n');
    Some((width, rest))
}

fn value<'s>(text: &'s [u8], rows: &mut Vec<u8>) -> Option<&'s [u8]> {
    match text.first()? {
        b'\'' => quoted(&text[1..], rows),
        b'n' | b'N' if text.len() > 4 && text[..4].eq_ignore_ascii_case(b"null") => {
            rows.extend_from_slice(b"\\N");
            Some(&text[4..])
        }
        _ => whole(text, rows),
    }
}

/// A whole number as the server itself would write it: of others, a column of texts would show the difference.
fn whole<'s>(text: &'s [u8], rows: &mut Vec<u8>) -> Option<&'s [u8]> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let digits = text[sign..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let is_canonical = digits == 1 || (digits > 1 && text[sign] != b'0');
    if !is_canonical || digits > DIGITS_MAX || (sign == 1 && text[sign] == b'0') {
        return None;
    }
    let (number, rest) = text.split_at(sign + digits);
    rows.extend_from_slice(number);
    Some(rest)
}

const DIGITS_MAX: usize = 18;

/// A text up to its closing quote. What a server may read in two ways is left to it: a backslash, and a zero byte.
/// A second text after it goes on where the first ends, which is left to the server as well.
fn quoted<'s>(mut text: &'s [u8], rows: &mut Vec<u8>) -> Option<&'s [u8]> {
    loop {
        let end = text
            .iter()
            .position(|byte| matches!(byte, b'\'' | b'\\' | 0 | b'\t' | b'\n' | b'\r'))?;
        rows.extend_from_slice(&text[..end]);
        let (byte, rest) = (text[end], &text[end + 1..]);
        match byte {
            b'\t' => rows.extend_from_slice(b"\\t"),
            b'\n' => rows.extend_from_slice(b"\\n"),
            b'\r' => rows.extend_from_slice(b"\\r"),
            b'\'' if rest.first() != Some(&b'\'') => return Some(rest),
            b'\'' => {
                rows.push(b'\'');
                text = &rest[1..];
                continue;
            }
            _ => return None,
        }
        text = rest;
    }
}

#[cfg(test)]
mod tests;
