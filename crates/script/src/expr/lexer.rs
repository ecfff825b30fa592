//! Tokens of an expression. An expression ends with its line, unless a backslash joins the next.

use std::ops::Range;

use crate::error::ScriptError;
use crate::source::Source;
use crate::symbols::{is_name_byte, is_name_start};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Int(i64),
    /// 2^63, which only a unary minus makes a valid integer.
    MinimumMagnitude,
    Double(f64),
    Variable(String),
    Name(String),
    Symbol(&'static str),
    End,
}

/// Longest first, so that the first match is the right one.
const SYMBOLS: [&str; 21] = [
    "<<", ">>", "<=", ">=", "<>", "!=", "+", "-", "*", "/", "%", "(", ")", ",", "<", ">", "=", "|",
    "&", "#", "~",
];

const I64_MIN_DIGITS: &str = "9223372036854775808";

/// A token and where it stands.
pub(crate) type Placed = (Token, Range<usize>);

/// The tokens from `at` to the end of the line, the last one [`Token::End`], and the offset behind
/// the line.
pub(crate) fn tokens(
    source: &Source<'_>,
    mut at: usize,
) -> Result<(Vec<Placed>, usize), ScriptError> {
    let mut tokens = Vec::new();
    loop {
        if let Some(length) = source.continuation(at) {
            at += length;
            continue;
        }
        match source.byte(at) {
            None => {
                tokens.push((Token::End, at..at));
                return Ok((tokens, at));
            }
            Some(b'\n') => {
                tokens.push((Token::End, at..at));
                return Ok((tokens, at + 1));
            }
            Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c) => at += 1,
            Some(first) => {
                let (token, end) = token(source, at, first)?;
                tokens.push((token, at..end));
                at = end;
            }
        }
    }
}

fn token(source: &Source<'_>, at: usize, first: u8) -> Result<(Token, usize), ScriptError> {
    let next = source.byte(at + 1);
    if first == b':' && next.is_some_and(is_name_byte) {
        let end = run(source, at + 1, is_name_byte);
        return Ok((Token::Variable(source.text[at + 1..end].to_owned()), end));
    }
    if is_name_start(first) {
        let end = run(source, at, is_name_byte);
        return Ok((Token::Name(source.text[at..end].to_owned()), end));
    }
    if first.is_ascii_digit() || (first == b'.' && next.is_some_and(|b| b.is_ascii_digit())) {
        return number(source, at);
    }
    if let Some(symbol) = SYMBOLS.iter().find(|s| source.text[at..].starts_with(**s)) {
        return Ok((Token::Symbol(symbol), at + symbol.len()));
    }
    let end = at + source.text[at..].chars().next().map_or(1, char::len_utf8);
    let hint = match first {
        b';' => "a backslash command ends with its line: leave the semicolon out",
        _ => "an expression consists of numbers, :variables, operators and function calls",
    };
    let message = format!("unexpected character \"{}\"", &source.text[at..end]);
    Err(source.error(at..end, message, hint))
}

/// End of the run of bytes from `at` that satisfy `wanted`.
fn run(source: &Source<'_>, at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    at + source.text.as_bytes()[at..]
        .iter()
        .take_while(|&&b| wanted(b))
        .count()
}

fn number(source: &Source<'_>, at: usize) -> Result<(Token, usize), ScriptError> {
    let digits = |at| run(source, at, |b| b.is_ascii_digit());
    let whole = digits(at);
    let mut end = whole;
    if source.byte(end) == Some(b'.') {
        end = digits(end + 1);
    }
    if matches!(source.byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(source.byte(end + 1), Some(b'+' | b'-')));
        let exponent_end = digits(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            end = exponent_end;
        }
    }
    let text = &source.text[at..end];
    if end > whole {
        let value = text
            .parse::<f64>()
            .ok()
            .filter(|v| v.is_finite())
            .map(Token::Double);
        let hint = "write a number below 1.8e308";
        return value
            .map(|token| (token, end))
            .ok_or_else(|| source.error(at..end, "double constant overflow", hint));
    }
    if let Ok(value) = text.parse() {
        return Ok((Token::Int(value), end));
    }
    if text == I64_MIN_DIGITS {
        return Ok((Token::MinimumMagnitude, end));
    }
    let hint = "an integer has 64 bits; write a decimal point to make it a double";
    Err(source.error(at..end, "bigint constant overflow", hint))
}
