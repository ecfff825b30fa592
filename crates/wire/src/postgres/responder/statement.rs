//! What kind of statement a text is: as much of SQL as the shape of a session depends on.

/// A statement, as far as its answer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    Empty,
    Begin,
    Commit,
    Rollback,
    RollbackToSavepoint,
    CopyIn,
    /// Returns the behaviour's reply.
    Rows,
    /// Returns only a tag.
    Tag(&'static str),
}

/// First words and their tags; everything else returns rows.
const TAGS: &[(&str, &str)] = &[
    ("insert", "INSERT 0 1"),
    ("update", "UPDATE 1"),
    ("delete", "DELETE 1"),
    ("merge", "MERGE 1"),
    ("set", "SET"),
    ("reset", "RESET"),
    ("savepoint", "SAVEPOINT"),
    ("release", "RELEASE"),
    ("vacuum", "VACUUM"),
    ("analyze", "ANALYZE"),
    ("truncate", "TRUNCATE TABLE"),
    ("create", "CREATE TABLE"),
    ("alter", "ALTER TABLE"),
    ("drop", "DROP TABLE"),
    ("lock", "LOCK TABLE"),
    ("checkpoint", "CHECKPOINT"),
    ("discard", "DISCARD ALL"),
    ("deallocate", "DEALLOCATE"),
];

impl Statement {
    pub(super) fn of(sql: &[u8]) -> Self {
        let sql = skip_blank(sql);
        let (word, rest) = first_word(sql);
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        if word.is_empty() && sql.is_empty() {
            Self::Empty
        } else if is("begin") || is("start") {
            Self::Begin
        } else if is("commit") || is("end") {
            Self::Commit
        } else if is("rollback") || is("abort") {
            let to = first_word(skip_blank(rest)).0.eq_ignore_ascii_case(b"to");
            if to {
                Self::RollbackToSavepoint
            } else {
                Self::Rollback
            }
        } else if is("copy") && has_word(rest, b"from") {
            Self::CopyIn
        } else if has_word(rest, b"returning") {
            Self::Rows
        } else {
            let tag = TAGS.iter().find(|(name, _)| is(name));
            tag.map_or(Self::Rows, |(_, tag)| Self::Tag(tag))
        }
    }

    /// The statements of a simple query. A text with no statement at all counts as one empty one.
    pub(super) fn all_of(sql: &[u8]) -> Vec<Self> {
        let mut all: Vec<Self> = pieces(sql)
            .map(Self::of)
            .filter(|each| *each != Self::Empty)
            .collect();
        if all.is_empty() {
            all.push(Self::Empty);
        }
        all
    }

    /// Whether it may run in a failed transaction.
    pub(super) fn ends_failure(self) -> bool {
        matches!(
            self,
            Self::Commit | Self::Rollback | Self::RollbackToSavepoint | Self::Empty
        )
    }
}

/// How many parameters a statement has: the highest `$n` outside quotes.
pub(super) fn parameter_count(sql: &[u8]) -> u16 {
    let mut highest = 0;
    let mut quote = None;
    for (at, byte) in sql.iter().enumerate() {
        track_quote(&mut quote, *byte);
        if *byte == b'$' && quote.is_none() {
            let digits = sql[at + 1..]
                .iter()
                .take(5)
                .take_while(|byte| byte.is_ascii_digit());
            let number = digits.fold(0u32, |sum, digit| sum * 10 + u32::from(digit - b'0'));
            highest = highest.max(u16::try_from(number).unwrap_or(u16::MAX));
        }
    }
    highest
}

/// Splits at semicolons outside quotes.
fn pieces(sql: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut quote = None;
    sql.split(move |byte| {
        track_quote(&mut quote, *byte);
        *byte == b';' && quote.is_none()
    })
}

fn track_quote(quote: &mut Option<u8>, byte: u8) {
    match (*quote, byte) {
        (None, b'\'' | b'"') => *quote = Some(byte),
        (Some(open), byte) if open == byte => *quote = None,
        _ => {}
    }
}

/// Skips white space, semicolons and comments.
fn skip_blank(sql: &[u8]) -> &[u8] {
    let mut rest = sql;
    loop {
        rest = match rest {
            [byte, tail @ ..] if byte.is_ascii_whitespace() || *byte == b';' => tail,
            [b'-', b'-', tail @ ..] => {
                let end = tail.iter().position(|byte| *byte == b'\n');
                &tail[end.unwrap_or(tail.len())..]
            }
            [b'/', b'*', tail @ ..] => {
                let end = tail.windows(2).position(|pair| pair == b"*/");
                &tail[end.map_or(tail.len(), |end| end + 2)..]
            }
            _ => return rest,
        }
    }
}

fn first_word(sql: &[u8]) -> (&[u8], &[u8]) {
    let end = sql
        .iter()
        .position(|byte| !byte.is_ascii_alphabetic())
        .unwrap_or(sql.len());
    sql.split_at(end)
}

fn has_word(sql: &[u8], word: &[u8]) -> bool {
    sql.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        .any(|each| each.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_statements_by_their_first_word() {
        let check = |sql: &str, expected: Statement| {
            assert_eq!(Statement::of(sql.as_bytes()), expected, "{sql}");
        };
        check(" -- why\n/* x */ BEGIN", Statement::Begin);
        check("end;", Statement::Commit);
        check("ROLLBACK TO sp", Statement::RollbackToSavepoint);
        check("rollback", Statement::Rollback);
        check("  ; ", Statement::Empty);
        check("insert into t values (1)", Statement::Tag("INSERT 0 1"));
        check("insert into t values (1) RETURNING id", Statement::Rows);
        check("copy t from stdin", Statement::CopyIn);
        check("(select 1)", Statement::Rows);
    }

    #[test]
    fn splits_simple_queries_outside_quotes() {
        use Statement::{Begin, Commit, Empty, Rows};
        assert_eq!(
            Statement::all_of(b"begin; select ';'; commit;"),
            [Begin, Rows, Commit]
        );
        assert_eq!(Statement::all_of(b" ; "), [Empty]);
    }

    #[test]
    fn counts_parameters_outside_quotes() {
        assert_eq!(parameter_count(b"select $1, $12, '$99'"), 12);
        assert_eq!(parameter_count(b"select 1"), 0);
    }
}
