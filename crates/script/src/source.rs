//! The text of a script and how places in it are named.

use std::ops::Range;

use crate::error::ScriptError;

/// Longest piece of a script that an error quotes, in bytes.
const QUOTE_BYTES_MAX: usize = 60;

/// A script's name and text.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// Mistakes that pgbench finds only when the command is run are left for the run.
    pub(crate) late: bool,
    line_starts: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|&(_, b)| b == b'\n');
        let line_starts = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at + 1))
            .collect();
        Self {
            name,
            text,
            late: false,
            line_starts,
        }
    }

    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// If a backslash at `at` joins this line with the next, the length of that marker.
    pub(crate) fn continuation(&self, at: usize) -> Option<usize> {
        match self.text.as_bytes().get(at..)? {
            [b'\\', b'\n', ..] => Some(2),
            [b'\\', b'\r', b'\n', ..] => Some(3),
            _ => None,
        }
    }

    /// Line of the byte at `offset`, from 1.
    pub(crate) fn line(&self, offset: usize) -> u32 {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        u32::try_from(line).unwrap_or(u32::MAX)
    }

    /// Offset of the first byte of a line, from 1.
    pub(crate) fn line_start(&self, line: u32) -> usize {
        let index = (line as usize).saturating_sub(1);
        self.line_starts.get(index).copied().unwrap_or(0)
    }

    /// Column of the first occurrence of `text` in `line`, both from 1.
    pub(crate) fn column_of_line(&self, line: u32, text: &str) -> u32 {
        let start = self.line_start(line);
        let before = self.text[start..]
            .find(text)
            .map_or(0, |length| self.text[start..start + length].chars().count());
        u32::try_from(before + 1).unwrap_or(u32::MAX)
    }

    /// An error at `range`, which is also the text found there.
    pub(crate) fn error(
        &self,
        range: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> ScriptError {
        let start = self.text.floor_char_boundary(range.start);
        let line = self.line_starts.partition_point(|&at| at <= start);
        let line_start = self.line_starts[line - 1];
        let column = self.text[line_start..start].chars().count() + 1;
        let end = range.end.clamp(start, start + QUOTE_BYTES_MAX);
        let found = self.text[start..self.text.floor_char_boundary(end)].trim();
        ScriptError {
            file: self.name.to_owned(),
            line: self.line(start),
            column: u32::try_from(column).unwrap_or(u32::MAX),
            message: message.into(),
            found: found.to_owned(),
            hint: hint.into(),
        }
    }
}
