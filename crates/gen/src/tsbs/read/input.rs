//! Bytes from a reader, in blocks that end at the end of a line.

use std::io::{ErrorKind, Read};

use crate::dataset::SourceError;

/// Bytes asked for at once.
const BLOCK: usize = 1 << 18;
/// Bytes after the last line that may be looked at.
const SLACK: usize = 16;
/// No line may be longer, its end not counted.
pub(super) const LINE_MAX: usize = 16 << 20;

/// What [`Input::more`] found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum More {
    /// At least one more line.
    Lines,
    /// The end; what is left is no whole line.
    End,
    /// A line that is too long.
    LongLine,
}

pub(super) struct Input {
    reader: Box<dyn Read + Send>,
    /// Whole lines from `at` to `complete`; then what was read of the next one, and some bytes that mean nothing.
    pub(super) bytes: Vec<u8>,
    /// The first byte that is still to be used.
    pub(super) at: usize,
    /// After the last line end.
    pub(super) complete: usize,
    end: usize,
    /// Bytes of the input before `bytes`.
    base: u64,
    ended: bool,
}

impl Input {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Self {
        Self {
            reader,
            bytes: vec![0; BLOCK + SLACK],
            at: 0,
            complete: 0,
            end: 0,
            base: 0,
            ended: false,
        }
    }

    /// What is left after the last whole line.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.complete..self.end]
    }

    /// Where a byte of the buffer is in the input.
    pub(super) fn position(&self, at: usize) -> u64 {
        self.base + at as u64
    }

    /// Reads once, after making room; false at the end.
    fn read(&mut self) -> Result<bool, SourceError> {
        if self.at > 0 {
            self.bytes.copy_within(self.at..self.end, 0);
            self.base += self.at as u64;
            self.complete -= self.at;
            self.end -= self.at;
            self.at = 0;
        }
        if self.bytes.len() - SLACK - self.end < BLOCK / 2 {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
        let room = self.bytes.len() - SLACK;
        loop {
            match self.reader.read(&mut self.bytes[self.end..room]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    let fresh = self.end..self.end + count;
                    if let Some(last) = memchr::memrchr(b'\n', &self.bytes[fresh]) {
                        self.complete = self.end + last + 1;
                    }
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(SourceError::Input {
                        bytes: self.position(self.end),
                        source,
                    });
                }
            }
        }
    }

    /// Reads until there is one more whole line. The buffer moves: positions in it change, but for `at`.
    pub(super) fn more(&mut self) -> Result<More, SourceError> {
        let known = self.position(self.complete);
        loop {
            if self.end - self.complete > LINE_MAX {
                return Ok(More::LongLine);
            }
            if self.ended || !self.read()? {
                return Ok(More::End);
            }
            if self.position(self.complete) > known {
                return Ok(More::Lines);
            }
        }
    }

    /// The first bytes of the input, as many as there are up to `count`.
    pub(super) fn peek(&mut self, count: usize) -> Result<&[u8], SourceError> {
        while self.end - self.at < count && !self.ended && self.read()? {}
        Ok(&self.bytes[self.at..self.end.min(self.at + count)])
    }

    /// The next line without its end; none if there is no whole line.
    pub(super) fn line(&mut self) -> Result<Result<&[u8], More>, SourceError> {
        if self.at == self.complete {
            match self.more()? {
                More::Lines => {}
                other => return Ok(Err(other)),
            }
        }
        let lines = &self.bytes[self.at..self.complete];
        let length = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
        self.at += length + 1;
        Ok(Ok(&lines[..length]))
    }
}
