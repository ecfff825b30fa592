//! Parameters are `$1`, `$2`, … in the texts that come here, and `?` in those that the server prepares.

/// A statement as the server takes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) sql: Vec<u8>,
    /// For each `?` the number of its parameter, from 0.
    pub(super) order: Vec<u16>,
}

/// Replaces `$n` by `?` outside of quotes and comments. A `?` that stands there already stays: the server counts it.
pub(super) fn translate(sql: &[u8], out: &mut Translated) {
    out.sql.clear();
    out.order.clear();
    let mut rest = sql;
    while let Some(&byte) = rest.first() {
        let length = match byte {
            b'\'' | b'"' | b'`' => quoted(rest, byte),
            b'#' => line(rest),
            b'-' if is_dash_comment(rest) => line(rest),
            b'/' if rest.starts_with(b"/*") => block(rest),
            b'$' => match number(&rest[1..]) {
                Some((parameter, digits)) => {
                    out.sql.push(b'?');
                    out.order.push(parameter);
                    rest = &rest[1 + digits..];
                    continue;
                }
                None => 1,
            },
            // A name may contain dollars.
            byte if is_word(byte) => rest
                .iter()
                .position(|byte| !is_word(*byte) && *byte != b'$')
                .unwrap_or(rest.len()),
            _ => 1,
        };
        out.sql.extend_from_slice(&rest[..length]);
        rest = &rest[length..];
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// `--` begins a comment only before white space, or at the end.
fn is_dash_comment(rest: &[u8]) -> bool {
    matches!(rest, [b'-', b'-', ..]) && rest.get(2).is_none_or(u8::is_ascii_whitespace)
}

/// Length of a quoted text. A backslash hides the byte behind it, but in names.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        at += 1;
        if byte == b'\\' && quote != b'`' {
            at += 1;
        } else if byte == quote {
            return at;
        }
    }
    rest.len()
}

fn line(rest: &[u8]) -> usize {
    let end = rest.iter().position(|&byte| byte == b'\n');
    end.unwrap_or(rest.len())
}

fn block(rest: &[u8]) -> usize {
    let end = rest[2..].windows(2).position(|pair| pair == b"*/");
    end.map_or(rest.len(), |end| 2 + end + 2)
}

/// The number of a parameter, from 0, and how many digits it has.
fn number(rest: &[u8]) -> Option<(u16, usize)> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = std::str::from_utf8(&rest[..digits]).ok()?;
    let number: u16 = text.parse().ok()?;
    Some((number.checked_sub(1)?, digits))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn translated(sql: &str) -> (String, Vec<u16>) {
        let mut out = Translated::default();
        translate(sql.as_bytes(), &mut out);
        (String::from_utf8(out.sql).unwrap(), out.order)
    }

    #[test]
    fn parameters_are_found_where_they_are_parameters() {
        let cases: [(&str, &str, &[u16]); 8] = [
            ("SELECT $1", "SELECT ?", &[0]),
            (
                "UPDATE t SET a=$2+$1 WHERE b=$12",
                "UPDATE t SET a=?+? WHERE b=?",
                &[1, 0, 11],
            ),
            (
                "SELECT '$1', \"$2\", `$3`, $4",
                "SELECT '$1', \"$2\", `$3`, ?",
                &[3],
            ),
            (
                r"SELECT 'it''s \' $1', $1",
                r"SELECT 'it''s \' $1', ?",
                &[0],
            ),
            (
                "SELECT 1 -- $1\n, $1 # $2",
                "SELECT 1 -- $1\n, ? # $2",
                &[0],
            ),
            ("SELECT 3--$1 /* $2 */", "SELECT 3--? /* $2 */", &[0]),
            ("SELECT a$1, $x, $, $0", "SELECT a$1, $x, $, $0", &[]),
            ("SELECT 'open $1", "SELECT 'open $1", &[]),
        ];
        for (sql, expected, order) in cases {
            assert_eq!(
                translated(sql),
                (expected.to_owned(), order.to_vec()),
                "{sql}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_and_nothing_but_parameters_changes(sql in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut out = Translated::default();
            translate(&sql, &mut out);
            if out.order.is_empty() {
                prop_assert_eq!(out.sql, sql);
            } else {
                prop_assert!(out.sql.len() < sql.len());
            }
        }
    }
}
