//! Prepared statements and their executions.

use crate::mysql::frames::Parameters;
use crate::mysql::reader::lenenc_bytes;

const COM_STMT_EXECUTE: u8 = 0x17;

const TYPE_LONGLONG: u8 = 8;
const TYPE_NULL: u8 = 6;
const TYPE_VAR_STRING: u8 = 253;

/// The id of no statement: the server says that it does not know it.
pub(super) const NO_STATEMENT: u32 = 0;

/// A prepared statement.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) id: u32,
    /// For each `?` the number of its parameter.
    pub(super) order: Vec<u16>,
    /// It can be run as text only.
    pub(super) text: Option<Vec<u8>>,
}

pub(super) fn put_execute_head(id: u32, out: &mut Vec<u8>) {
    out.push(COM_STMT_EXECUTE);
    out.extend_from_slice(&id.to_le_bytes());
    // No cursor; once.
    out.extend_from_slice(&[0, 1, 0, 0, 0]);
}

/// The execution of a statement: which parameters are NULL, the type of each, the values.
pub(super) fn put_execute(statement: &Statement, parameters: &Parameters<'_>, out: &mut Vec<u8>) {
    let count = statement.order.len();
    let in_order = statement
        .order
        .iter()
        .zip(0..)
        .all(|(a, b): (_, u16)| *a == b);
    let given = parameters.clone().count();
    if statement.order.iter().any(|&n| usize::from(n) >= given) {
        return put_execute_head(NO_STATEMENT, out);
    }
    put_execute_head(statement.id, out);
    if count == 0 {
        return;
    }
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    // The types follow.
    out.push(1);
    let types = out.len();
    out.resize(types + 2 * count, 0);
    let mut next = parameters.clone();
    for (at, &number) in statement.order.iter().enumerate() {
        let value = if in_order {
            next.next()
        } else {
            parameters.clone().nth(number.into())
        };
        let kind = match value.flatten() {
            None => {
                out[nulls + at / 8] |= 1 << (at % 8);
                TYPE_NULL
            }
            Some(text) => put_value(text, out),
        };
        out[types + 2 * at] = kind;
    }
}

/// A value, and the type under which it is sent. Whole numbers go as such: a text would be compared with a column of
/// numbers as a double.
fn put_value(text: &[u8], out: &mut Vec<u8>) -> u8 {
    if let Some(number) = whole_number(text) {
        out.extend_from_slice(&number.to_le_bytes());
        return TYPE_LONGLONG;
    }
    lenenc_bytes(text, out);
    TYPE_VAR_STRING
}

/// A number that is written as we would write it.
fn whole_number(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', rest @ ..] => rest.len() < 19 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let text = is_plain.then(|| std::str::from_utf8(text).ok())??;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_those_that_read_back_the_same() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("007", None),
            ("-0", None),
            ("+1", None),
            ("1.5", None),
            ("", None),
            ("-", None),
            (" 1", None),
        ] {
            assert_eq!(whole_number(text.as_bytes()), number, "{text}");
        }
    }
}
