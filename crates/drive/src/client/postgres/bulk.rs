//! Messages of rows: COPY by the simple protocol, INSERT by the extended one.

use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::{copy_binary, copy_text};
use loadstone_wire::postgres::{WireError, bulk};

use super::Postgres;
use crate::protocol::{Bulk, RowFormat, RowsError, Unencodable};

/// About how long one piece of COPY data is: the server reads each whole into its memory.
const PIECE_BYTES: usize = 64 * 1024;
/// About how long one value is, with its length.
const VALUE_BYTES: usize = 12;

/// int2, int4, int8, float4, float8, numeric, text, char and varchar, by the numbers that `pg_type.dat` gives them.
const PLAIN_TYPES: &str = "21, 23, 20, 700, 701, 1700, 25, 1042, 1043";

impl From<WireError> for RowsError {
    fn from(error: WireError) -> Self {
        Self::Unencodable(error.into())
    }
}

impl Bulk for Postgres {
    const STREAMS: bool = true;

    fn rows_statement(table: &str, columns: &str, format: RowFormat) -> String {
        let format = match format {
            RowFormat::Binary => " (FORMAT binary)",
            RowFormat::Csv => " (FORMAT csv)",
            RowFormat::Text => "",
        };
        format!("COPY {table} {columns} FROM STDIN{format}")
    }

    /// COPY goes around rules, row security and `GENERATED ALWAYS`, and takes texts for every type, where an INSERT
    /// casts whole numbers to few; triggers may look at the statement. What is left are plain tables of types that
    /// read a whole number as its cast does.
    fn same_as_insert(table: &str) -> Option<String> {
        Some(format!(
            "select case when not c.relhasrules and not c.relhastriggers and not c.relrowsecurity \
             and current_setting('client_encoding') = 'UTF8' \
             and bool_and(a.attidentity <> 'a' and a.attgenerated = '' and a.atttypid in ({PLAIN_TYPES})) \
             then count(*) end \
             from pg_catalog.pg_class c join pg_catalog.pg_attribute a on a.attrelid = c.oid \
             where c.oid = to_regclass('{table}') and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped \
             group by c.oid"
        ))
    }

    fn put_query(sql: &str, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(bulk::query(sql, out)?)
    }

    fn put_prepare(name: &str, sql: &str, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        Ok(bulk::parse(name, sql, out)?)
    }

    /// In pieces, with what begins and ends them.
    fn put_rows(
        format: RowFormat,
        rows: &DictionaryBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), RowsError> {
        let binary = format == RowFormat::Binary;
        let step = (PIECE_BYTES / (2 + VALUE_BYTES * rows.num_columns())).max(1);
        for first in (0..rows.num_rows()).step_by(step) {
            let count = step.min(rows.num_rows() - first);
            let slice = rows.slice(first, count);
            bulk::copy_data::<RowsError>(out, |out| {
                if !binary {
                    return Ok(copy_text(&slice, out)?);
                }
                if first == 0 {
                    out.extend_from_slice(copy_binary::HEADER);
                }
                copy_binary(&slice, out)?;
                if first + count == rows.num_rows() {
                    out.extend_from_slice(&copy_binary::TRAILER);
                }
                Ok(())
            })?;
        }
        bulk::copy_done(out);
        Ok(())
    }

    fn put_part(
        format: RowFormat,
        rows: &DictionaryBatch,
        out: &mut Vec<u8>,
    ) -> Result<(), RowsError> {
        bulk::copy_data::<RowsError>(out, |out| match format {
            RowFormat::Binary => Ok(copy_binary(rows, out)?),
            RowFormat::Text | RowFormat::Csv => Ok(copy_text(rows, out)?),
        })
    }

    fn put_data_begin(format: RowFormat, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        if format == RowFormat::Binary {
            Self::put_data(copy_binary::HEADER, out)?;
        }
        Ok(())
    }

    fn put_data(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Unencodable> {
        for piece in bytes.chunks(PIECE_BYTES) {
            bulk::copy_data::<WireError>(out, |out| {
                out.extend_from_slice(piece);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn put_data_end(format: RowFormat, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        if format == RowFormat::Binary {
            Self::put_data(&copy_binary::TRAILER, out)?;
        }
        bulk::copy_done(out);
        Ok(())
    }

    fn put_values(rows: &DictionaryBatch, out: &mut Vec<u8>) -> Result<(), RowsError> {
        Ok(copy_binary(rows, out)?)
    }

    fn put_execute<'v>(
        name: &str,
        columns: usize,
        rows: usize,
        values: &'v [u8],
        out: &mut Vec<u8>,
    ) -> Result<&'v [u8], Unencodable> {
        let parameters = u16::try_from(rows * columns).unwrap_or(u16::MAX);
        let mut rest = values;
        bulk::bind_binary::<WireError>(name, parameters, out, |out| {
            rest = put_tuples(values, columns, rows, out);
            Ok(())
        })?;
        bulk::execute(out);
        Ok(rest)
    }

    fn put_flush(out: &mut Vec<u8>) {
        bulk::flush(out);
    }

    fn put_sync(out: &mut Vec<u8>) {
        bulk::sync(out);
    }
}

/// The values of the first `rows` tuples of COPY as Bind has them: the same, without each tuple's count of columns.
/// Returns the tuples after them.
fn put_tuples<'t>(tuples: &'t [u8], columns: usize, rows: usize, out: &mut Vec<u8>) -> &'t [u8] {
    let (mut rest, mut put) = (tuples, 0);
    while rest.len() > 2 && put < rows {
        rest = &rest[2..];
        let mut length = 0;
        for _ in 0..columns {
            let value = rest.get(length..length + 4).and_then(|l| l.first_chunk());
            let bytes = value.map_or(-1, |bytes| i32::from_be_bytes(*bytes));
            length += 4 + usize::try_from(bytes).unwrap_or(0);
        }
        out.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
        put += 1;
    }
    rest
}
