//! Cutting a script into SQL statements and backslash commands, by psql's rules.

use std::ops::Range;

use crate::error::ScriptError;
use crate::number::is_c_space;
use crate::source::Source;
use crate::symbols::{is_name_byte, is_name_start};

/// Why a piece of SQL ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Semicolon,
    /// At a backslash command; the scanner is behind the backslash.
    Backslash,
    End,
}

/// One piece of SQL, as it is sent: without leading white space and `--` comments, `\;` and `\:`
/// replaced by what they stand for.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) sql: String,
    /// Offset of its first byte.
    pub(crate) start: usize,
    /// Offset of its first byte that is no comment; none where all of it is.
    pub(crate) first: Option<usize>,
    /// Each name behind a single colon, without it.
    pub(crate) names: Vec<Range<usize>>,
    /// Statements in it: one more than there are `\;`.
    pub(crate) statements: u32,
    pub(crate) stop: Stop,
}

pub(crate) struct SqlScanner<'a> {
    source: &'a Source<'a>,
    pub(crate) at: usize,
    /// It is not a script: a backslash begins nothing.
    is_plain: bool,
    parentheses: u32,
    body: Body,
    piece: Piece,
}

impl Piece {
    fn at(start: usize) -> Self {
        Self {
            sql: String::new(),
            start,
            first: None,
            names: Vec::new(),
            statements: 1,
            stop: Stop::End,
        }
    }
}

/// Follows whether a statement is `CREATE [OR REPLACE] FUNCTION | PROCEDURE`, in whose
/// `BEGIN … END` a semicolon ends nothing. Only the first words decide, as in psql.
#[derive(Debug, Default)]
struct Body {
    /// First letters of the leading words that matter.
    leading: [u8; 4],
    words: usize,
    depth: u32,
}

impl Body {
    fn start_statement(&mut self) {
        self.words = 0;
    }

    fn word(&mut self, word: &str, in_parentheses: bool) {
        if self.words == 0 {
            self.leading = [0; 4];
        }
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        if ["create", "function", "procedure", "or", "replace"]
            .into_iter()
            .any(is)
            && let Some(slot) = self.leading.get_mut(self.words)
        {
            *slot = word.as_bytes()[0].to_ascii_lowercase();
        }
        self.words += 1;
        let creates = matches!(
            self.leading,
            [b'c', b'f' | b'p', ..] | [b'c', b'o', b'r', b'f' | b'p']
        );
        if !creates || in_parentheses {
            return;
        }
        if is("begin") || (is("case") && self.depth > 0) {
            self.depth += 1;
        } else if is("end") {
            self.depth = self.depth.saturating_sub(1);
        }
    }
}

impl<'a> SqlScanner<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            at: 0,
            is_plain: false,
            parentheses: 0,
            body: Body::default(),
            piece: Piece::at(0),
        }
    }

    /// A scanner of SQL alone.
    pub(crate) fn plain(source: &'a Source<'a>) -> Self {
        Self {
            is_plain: true,
            ..Self::new(source)
        }
    }

    /// The next piece; empty SQL where only white space and comments were found.
    pub(crate) fn next(&mut self) -> Result<Piece, ScriptError> {
        self.piece = Piece::at(self.at);
        while let Some(byte) = self.source.byte(self.at) {
            if let Some(stop) = self.step(byte)? {
                self.piece.stop = stop;
                break;
            }
        }
        Ok(std::mem::replace(&mut self.piece, Piece::at(self.at)))
    }

    /// Takes one token that begins with `byte`.
    fn step(&mut self, byte: u8) -> Result<Option<Stop>, ScriptError> {
        match byte {
            b';' => return Ok(self.semicolon()),
            b'-' if self.rest().starts_with("--") => {
                let length = self.rest().find(['\n', '\r']);
                self.space(length.unwrap_or(self.rest().len()));
            }
            b'/' if self.rest().starts_with("/*") => self.comment()?,
            _ if is_c_space(byte) => {
                let length = self.rest().bytes().take_while(|&b| is_c_space(b)).count();
                self.space(length);
            }
            b'\\' if !self.is_plain => return Ok(self.backslash()),
            _ => {
                self.piece.first.get_or_insert(self.at);
                self.token(byte)?;
            }
        }
        Ok(None)
    }

    /// Takes one token that is neither white space nor a comment, and ends nothing.
    fn token(&mut self, byte: u8) -> Result<(), ScriptError> {
        match byte {
            b'\\' => return Err(self.command()),
            b'\'' => self.quoted(b'\'', false)?,
            b'"' => self.quoted(b'"', false)?,
            b'$' => self.dollar()?,
            b':' if self.rest().starts_with(":{?") && !self.is_plain => self.variable_test(),
            b':' if self.rest().starts_with("::") => self.emit(2),
            b':' => self.variable(),
            b'(' => {
                self.parentheses += 1;
                self.emit(1);
            }
            b')' => {
                self.parentheses = self.parentheses.saturating_sub(1);
                self.emit(1);
            }
            _ if is_name_start(byte) => self.word()?,
            _ if byte.is_ascii_digit() => self.emit(number_length(self.rest())),
            _ => self.emit(1),
        }
        Ok(())
    }

    fn rest(&self) -> &'a str {
        &self.source.text[self.at..]
    }

    /// Moves over `length` bytes that belong to the statement.
    fn emit(&mut self, length: usize) {
        if self.piece.sql.is_empty() {
            self.piece.start = self.at;
        }
        let end = self.at + length;
        self.piece.sql.push_str(&self.source.text[self.at..end]);
        self.at = end;
    }

    /// White space or a line comment: dropped before a statement, kept inside it.
    fn space(&mut self, length: usize) {
        if self.piece.sql.is_empty() {
            self.at += length;
        } else {
            self.emit(length);
        }
    }

    fn semicolon(&mut self) -> Option<Stop> {
        self.emit(1);
        if self.parentheses > 0 || self.body.depth > 0 {
            return None;
        }
        self.body.start_statement();
        Some(Stop::Semicolon)
    }

    fn backslash(&mut self) -> Option<Stop> {
        let escaped = self.source.byte(self.at + 1);
        self.at += 1;
        if !matches!(escaped, Some(b';' | b':')) {
            return Some(Stop::Backslash);
        }
        if escaped == Some(b';') {
            self.piece.statements += 1;
            self.body.start_statement();
        }
        self.emit(1);
        None
    }

    fn word(&mut self) -> Result<(), ScriptError> {
        let rest = self.rest();
        let length = identifier_length(rest);
        let word = &rest[..length];
        let quoted = rest.as_bytes().get(length) == Some(&b'\'');
        if quoted && word.eq_ignore_ascii_case("e") {
            self.emit(length);
            return self.quoted(b'\'', true);
        }
        self.body.word(word, self.parentheses > 0);
        self.emit(length);
        Ok(())
    }

    /// A quoted string or name from its opening quote. A doubled quote needs no care: it closes
    /// and opens again. `escapes` says that a backslash takes the next character with it.
    fn quoted(&mut self, quote: u8, escapes: bool) -> Result<(), ScriptError> {
        let opening = self.at;
        let mut end = opening + 1;
        loop {
            match self.source.byte(end) {
                None if self.source.late => break,
                None if quote == b'"' => return Err(self.unterminated(opening, "quoted name")),
                None => return Err(self.unterminated(opening, "quoted string")),
                Some(b'\\') if escapes => end += 2,
                Some(byte) if byte == quote => {
                    end += 1;
                    // After a line break the same string may go on, escapes included.
                    let Some(next) = continued_quote(self.source, end).filter(|_| escapes) else {
                        break;
                    };
                    end = next;
                }
                Some(_) => end += 1,
            }
        }
        self.emit(end.min(self.source.text.len()) - opening);
        if escapes && self.source.byte(self.at) == Some(quote) {
            return self.quoted(quote, true);
        }
        Ok(())
    }

    /// A dollar-quoted string, or any other use of `$`.
    fn dollar(&mut self) -> Result<(), ScriptError> {
        let opening = self.at;
        let rest = self.rest();
        let tag_length = name_length(&rest[1..]);
        let closed = rest.as_bytes().get(1 + tag_length) == Some(&b'$');
        if !closed || rest.as_bytes()[1].is_ascii_digit() {
            let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
            let junk = if digits > 0 {
                identifier_length(&rest[1 + digits..])
            } else {
                0
            };
            self.emit(1 + digits + junk);
            return Ok(());
        }
        let delimiter = &rest[..tag_length + 2];
        let Some(length) = rest[delimiter.len()..].find(delimiter) else {
            if self.source.late {
                self.emit(rest.len());
                return Ok(());
            }
            return Err(self.unterminated(opening, "dollar-quoted string"));
        };
        self.emit(length + 2 * delimiter.len());
        Ok(())
    }

    /// A block comment; they nest.
    fn comment(&mut self) -> Result<(), ScriptError> {
        let rest = self.rest().as_bytes();
        let (mut depth, mut length) = (0_u32, 0);
        loop {
            match rest.get(length..length + 2) {
                None if self.source.late => {
                    self.emit(rest.len());
                    return Ok(());
                }
                None => return Err(self.unterminated(self.at, "comment")),
                Some(b"/*") => (depth, length) = (depth + 1, length + 2),
                Some(b"*/") => (depth, length) = (depth - 1, length + 2),
                Some(_) => length += 1,
            }
            if depth == 0 {
                self.emit(length);
                return Ok(());
            }
        }
    }

    fn variable(&mut self) {
        let begin = self.at + 1;
        let end = begin + name_length(&self.rest()[1..]);
        if self.source.byte(begin).is_some_and(is_name_start) {
            self.piece.names.push(begin..end);
        }
        self.emit(end - self.at);
    }

    fn command(&self) -> ScriptError {
        let hint = "write SQL statements only; pgbench's commands belong in a .pgbench script";
        self.source.error(
            self.at..self.at + 1,
            "`\\` begins a command of psql, not SQL",
            hint,
        )
    }

    /// psql's `:{?name}`: pgbench has no psql variables, so the answer is always no.
    fn variable_test(&mut self) {
        let name = &self.rest()[3..];
        let length = name_length(name);
        if length == 0 || name.as_bytes().get(length) != Some(&b'}') {
            return self.emit(1);
        }
        if self.piece.sql.is_empty() {
            self.piece.start = self.at;
        }
        self.piece.sql.push_str("FALSE");
        self.at += length + 4;
    }

    fn unterminated(&self, opening: usize, what: &str) -> ScriptError {
        let end = self
            .rest()
            .find('\n')
            .map_or(self.source.text.len(), |at| self.at + at);
        let hint = format!("close the {what} that begins here");
        self.source
            .error(opening..end, format!("unterminated {what}"), hint)
    }
}

fn name_length(text: &str) -> usize {
    text.bytes().take_while(|&b| is_name_byte(b)).count()
}

/// Length of the number at the start of `text`. As in psql, an exponent's sign belongs to it even
/// if no digits follow, and so does a name directly behind it.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        from + bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1) != Some(&b'.') {
        end = digits(end + 1);
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let signed = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        let exponent = end + 1 + usize::from(signed);
        if signed || digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    end + identifier_length(&text[end..])
}

/// Length of the unquoted name at the start of `text`; 0 if there is none.
fn identifier_length(text: &str) -> usize {
    if !text.bytes().next().is_some_and(is_name_start) {
        return 0;
    }
    text.bytes()
        .take_while(|&b| is_name_byte(b) || b == b'$')
        .count()
}

/// SQL lets a string go on after white space with a line break in it: the offset behind the quote
/// that reopens it.
fn continued_quote(source: &Source<'_>, mut at: usize) -> Option<usize> {
    let mut broken = false;
    loop {
        match source.byte(at)? {
            b'\n' | b'\r' => (broken, at) = (true, at + 1),
            byte if is_c_space(byte) => at += 1,
            b'-' if source.text[at..].starts_with("--") => {
                at += source.text[at..].find('\n')?;
            }
            b'\'' if broken => return Some(at + 1),
            _ => return None,
        }
    }
}
