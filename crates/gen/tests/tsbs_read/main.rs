//! TSBS's text read back.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what is not as expected must fail the test"
)]

mod damage;
mod round_trip;

use std::io::{self, Cursor, Read};

use loadstone_gen::dataset::{Chunk, Source, SourceError};
use loadstone_gen::tsbs::TextSource;

/// Gives so many bytes at a time.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.1);
        self.0.read(&mut buffer[..length])
    }
}

fn open(text: impl Into<Vec<u8>>, piece: usize) -> Result<TextSource, SourceError> {
    TextSource::new(Pieces(Cursor::new(text.into()), piece))
}

fn chunks(source: &mut dyn Source, rows: usize) -> Result<Vec<Chunk>, SourceError> {
    std::iter::from_fn(|| source.next(rows).transpose()).collect()
}

/// Reads to the end.
fn read(text: impl Into<Vec<u8>>, piece: usize, rows: usize) -> Result<Vec<Chunk>, SourceError> {
    chunks(&mut open(text, piece)?, rows)
}

/// The line and the byte of a fault in a format, after checking that both belong together.
fn fault(text: &[u8], error: &SourceError) -> Option<(u64, u64)> {
    let SourceError::Format {
        line,
        byte,
        message,
        hint,
    } = error
    else {
        panic!("{error}");
    };
    assert!(!message.is_empty() && !hint.is_empty());
    let before = usize::try_from(*byte)
        .ok()
        .and_then(|byte| text.get(..byte))?;
    let lines = before.split(|&byte| byte == b'\n').count() as u64;
    assert_eq!(
        (*line, before.last().is_none_or(|&last| last == b'\n')),
        (lines, true),
        "{error}"
    );
    Some((*line, *byte))
}
