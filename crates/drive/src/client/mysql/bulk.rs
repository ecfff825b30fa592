//! Messages of rows: `LOAD DATA LOCAL`, and INSERT with values as texts.
//!
//! Source: <https://mariadb.com/kb/en/load-data-infile/>. With LOCAL, the server turns wrong values and duplicate keys
//! into warnings, so whoever loads has to look at what arrived.

use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::load_data;
use loadstone_wire::mysql::{MysqlError, frames};

use super::Mysql;
use crate::protocol::{Bulk, RowFormat, RowsError, Unencodable};

/// About how long one piece of data is: a packet of its own, far below every `max_allowed_packet`.
const PIECE_BYTES: usize = 64 * 1024;
/// Lies before a value of [`Bulk::put_values`] that is NULL, where others have their length.
const NULL: [u8; 4] = [0xFF; 4];

impl From<MysqlError> for RowsError {
    fn from(error: MysqlError) -> Self {
        Self::Unencodable(error.into())
    }
}

impl Bulk for Mysql {
    /// All that depends on the session's modes and character set is said; bytes as numbers mean the same in every mode.
    fn rows_statement(table: &str, columns: &str, _format: RowFormat) -> String {
        format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4 \
             FIELDS TERMINATED BY x'09' ENCLOSED BY '' ESCAPED BY x'5C' \
             LINES STARTING BY '' TERMINATED BY x'0A' {columns}"
        )
    }

    fn put_query(sql: &str, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(frames::query(sql.as_bytes(), out)?)
    }

    fn put_prepare(name: &str, sql: &str, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(frames::prepare_text(name, sql.as_bytes(), out)?)
    }

    fn put_rows(
        _format: RowFormat,
        rows: &DictionaryBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), RowsError> {
        let mut text = Vec::new();
        load_data(rows, &mut text)?;
        Self::put_data(&text, out)?;
        frames::data_end(out);
        Ok(())
    }

    fn put_data_begin(_format: RowFormat, _out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(())
    }

    fn put_data(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Unencodable> {
        for piece in bytes.chunks(PIECE_BYTES) {
            frames::data::<MysqlError>(out, |out| {
                out.extend_from_slice(piece);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn put_data_end(_format: RowFormat, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        frames::data_end(out);
        Ok(())
    }

    /// Each value as text behind its length.
    fn put_values(rows: &DictionaryBatch, out: &mut Vec<u8>) -> Result<(), RowsError> {
        let mut text = Vec::new();
        load_data(rows, &mut text)?;
        for field in text.split_inclusive(|byte| matches!(byte, b'\t' | b'\n')) {
            put_value(&field[..field.len() - 1], out)?;
        }
        Ok(())
    }

    fn put_execute<'v>(
        name: &str,
        columns: usize,
        rows: usize,
        values: &'v [u8],
        out: &mut Vec<u8>,
    ) -> Result<&'v [u8], Unencodable> {
        let mut rest = values;
        let parameters = (0..columns * rows).map_while(|_| take_value(&mut rest));
        frames::execute(name, false, parameters, out)?;
        Ok(rest)
    }

    fn put_sync(out: &mut Vec<u8>) {
        frames::sync(out);
    }
}

/// One field of [`load_data`], without its escapes.
fn put_value(field: &[u8], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let begin = out.len();
    out.extend_from_slice(&NULL);
    if field == b"\\N" {
        return Ok(());
    }
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        out.push(match byte {
            b'\\' => match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(&other) => other,
                None => byte,
            },
            _ => byte,
        });
    }
    let length = u32::try_from(out.len() - begin - NULL.len());
    let length = length.map_err(|_| Unencodable("a value of more than 4 GiB".to_owned()))?;
    out[begin..begin + NULL.len()].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// The first of the values that [`put_value`] wrote, `Some(None)` for NULL; it is taken away.
#[expect(
    clippy::option_option,
    reason = "no value is left, or the value is NULL"
)]
fn take_value<'v>(values: &mut &'v [u8]) -> Option<Option<&'v [u8]>> {
    let (head, rest) = values.split_first_chunk::<4>()?;
    if *head == NULL {
        *values = rest;
        return Some(None);
    }
    let length = usize::try_from(u32::from_le_bytes(*head)).ok()?;
    let (value, rest) = rest.split_at_checked(length)?;
    *values = rest;
    Some(Some(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        text.replace('\\', "\\\\")
            .replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r")
    }

    proptest! {
        #[test]
        fn values_are_the_fields_without_their_escapes(
            fields in prop::collection::vec(prop::option::of(any::<String>()), 0..8)
        ) {
            let mut out = Vec::new();
            for field in &fields {
                let text = field.as_deref().map_or_else(|| "\\N".to_owned(), escaped);
                put_value(text.as_bytes(), &mut out).expect("short");
            }
            let mut rest = out.as_slice();
            for field in &fields {
                prop_assert_eq!(take_value(&mut rest), Some(field.as_deref().map(str::as_bytes)));
            }
            prop_assert_eq!(take_value(&mut rest), None);
        }
    }
}
