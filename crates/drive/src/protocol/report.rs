//! All that a server says of an error, a line for each part.

use std::fmt::Write as _;

/// What belongs to an error besides its code and its message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Report<'a> {
    /// `ERROR`, `WARNING`, …, in the server's language.
    pub(crate) severity: &'a [u8],
    pub(crate) message: &'a [u8],
    /// Where in the statement, in characters from 1.
    pub(crate) position: Option<usize>,
    /// A statement inside a function, with the place in it.
    pub(crate) inner: Option<(&'a [u8], Option<usize>)>,
    pub(crate) detail: Option<&'a [u8]>,
    pub(crate) hint: Option<&'a [u8]>,
    pub(crate) context: Option<&'a [u8]>,
}

/// Characters of a statement's line that are shown, and how many of them before the place at least.
const SHOWN_MAX: usize = 60;
const SHOWN_BEFORE: usize = 40;

impl Report<'_> {
    /// `ERROR:  …`, and on lines of their own the place in the statement `sql`, detail, hint and context.
    pub(crate) fn text(&self, sql: &[u8]) -> String {
        let mut out = format!("{}:  {}", lossy(self.severity), lossy(self.message));
        match (self.position, self.inner) {
            (Some(position), _) => put_place(&mut out, &lossy(sql), position),
            (None, Some((inner, Some(position)))) => put_place(&mut out, &lossy(inner), position),
            _ => {}
        }
        put(&mut out, "DETAIL", self.detail);
        put(&mut out, "HINT", self.hint);
        if let Some((inner, None)) = self.inner {
            put(&mut out, "QUERY", Some(inner));
        }
        put(&mut out, "CONTEXT", self.context);
        out
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn put(out: &mut String, name: &str, field: Option<&[u8]>) {
    if let Some(field) = field {
        let _ = write!(out, "\n{name}:  {}", lossy(field));
    }
}

/// The statement's line with that character, cut where it is long, and a mark below.
fn put_place(out: &mut String, sql: &str, position: usize) {
    let Some(at) = position.checked_sub(1) else {
        return;
    };
    let mut line: Vec<char> = Vec::new();
    let (mut number, mut column) = (1, None);
    for (index, character) in sql.chars().enumerate() {
        if index == at {
            column = Some(line.len());
        }
        if character == '\n' {
            if column.is_some() {
                break;
            }
            number += 1;
            line.clear();
        } else {
            line.push(if character.is_control() {
                ' '
            } else {
                character
            });
        }
    }
    // An error may be behind the last character.
    let column = column.unwrap_or(line.len());
    let begin = if line.len() > SHOWN_MAX {
        column.saturating_sub(SHOWN_BEFORE)
    } else {
        0
    };
    let end = line.len().min(begin + SHOWN_MAX);
    let cut = |is_cut: bool| if is_cut { "..." } else { "" };
    let mut shown = format!("LINE {number}: {}", cut(begin > 0));
    let before = shown.chars().count() + column - begin;
    shown.extend(&line[begin..end]);
    shown.push_str(cut(end < line.len()));
    let _ = write!(out, "\n{shown}\n{}^", " ".repeat(before));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(position: Option<usize>) -> Report<'static> {
        Report {
            severity: b"ERROR",
            message: b"no such thing",
            position,
            ..Report::default()
        }
    }

    #[test]
    fn all_parts_follow_each_on_its_line() {
        let report = Report {
            detail: Some(b"it is gone"),
            hint: Some(b"make it"),
            context: Some(b"function f()"),
            inner: Some((b"SELECT thing", None)),
            ..error(None)
        };
        assert_eq!(
            report.text(b""),
            "ERROR:  no such thing\nDETAIL:  it is gone\nHINT:  make it\nQUERY:  SELECT thing\nCONTEXT:  function f()"
        );
    }

    #[test]
    fn the_place_is_marked_in_its_line() {
        let text = error(Some(12)).text("SELECT ü,\n\tthing;".as_bytes());
        assert_eq!(text, "ERROR:  no such thing\nLINE 2:  thing;\n         ^");
        let behind = error(Some(9)).text(b"SELECT 1");
        assert_eq!(
            behind,
            "ERROR:  no such thing\nLINE 1: SELECT 1\n                ^"
        );
    }

    proptest! {
        #[test]
        fn the_mark_stands_below_the_character(sql in "[a-zü \n]{0,200}", at in 0_usize..200) {
            let text = error(Some(at + 1)).text(sql.as_bytes());
            let lines: Vec<&str> = text.lines().collect();
            let column = lines[2].chars().count() - 1;
            prop_assert!(lines[1].chars().count() <= 60 + "LINE 999: ......".len());
            if let Some(character) = sql.chars().nth(at).filter(|c| *c != '\n') {
                prop_assert_eq!(lines[1].chars().nth(column), Some(character));
            }
        }
    }
}
