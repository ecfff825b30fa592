//! What can be wrong with a text, and how to mend it.

use crate::dataset::SourceError;

use super::input::LINE_MAX;

pub(super) const CUT: &str =
    "the text is incomplete; generate or copy it again, and check that the disk was not full";
pub(super) const DAMAGED: &str = "TSBS writes no such line; generate or copy the text again";
pub(super) const NOT_TSBS: &str =
    "use what tsbs_generate_data --format=timescaledb writes, from its first byte";
pub(super) const SEPARATORS: &str =
    "a tag is name=value; in this format a value cannot contain a comma";
const LINE_FEEDS: &str = "TSBS ends lines with a line feed alone; remove the carriage returns, for example with tr -d '\\r'";

/// What is wrong, in the line that is looked at.
#[derive(Debug)]
pub(super) struct Fault {
    message: String,
    hint: &'static str,
    /// The line after the one that is looked at.
    pub(super) next_line: bool,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>, hint: &'static str) -> Self {
        Self {
            message: message.into(),
            hint,
            next_line: false,
        }
    }

    /// The same of the second line of a row.
    pub(super) fn of_row(mut self) -> Self {
        self.next_line = true;
        self
    }

    pub(super) fn long_line() -> Self {
        let message = format!("the line is longer than {} MiB", LINE_MAX >> 20);
        Self::new(message, NOT_TSBS)
    }

    pub(super) fn carriage_return() -> Self {
        Self::new("the line ends with a carriage return", LINE_FEEDS)
    }

    pub(super) fn at(self, line: u64, byte: u64) -> SourceError {
        SourceError::Format {
            line,
            byte,
            message: self.message,
            hint: self.hint,
        }
    }
}

/// The beginning of a text, for messages.
pub(super) fn excerpt(text: &[u8]) -> String {
    const SHOWN: usize = 40;
    let shown = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
    let more = if text.len() > SHOWN { "…" } else { "" };
    format!("{:?}", format!("{shown}{more}"))
}

/// Beginnings of files that are something else, what they are, and what to do.
const MAGIC: [(&[u8], &str, &str); 7] = [
    (
        b"\x1f\x8b",
        "the data is compressed with gzip",
        "pipe it through zcat",
    ),
    (
        b"\x28\xb5\x2f\xfd",
        "the data is compressed with zstd",
        "pipe it through zstdcat",
    ),
    (
        b"\xfd7zXZ\0",
        "the data is compressed with xz",
        "pipe it through xzcat",
    ),
    (
        b"BZh",
        "the data is compressed with bzip2",
        "pipe it through bzcat",
    ),
    (b"PAR1", "the data is a Parquet file, not text", NOT_TSBS),
    (b"ARROW1", "the data is an Arrow file, not text", NOT_TSBS),
    (
        b"PGCOPY\n",
        "the data is in PostgreSQL's COPY format, not text",
        NOT_TSBS,
    ),
];

/// Bytes that tell what a file is.
pub(super) const MAGIC_BYTES: usize = 8;

/// What is wrong with data that begins like this, if that can be told.
pub(super) fn wrong_magic(first: &[u8]) -> Option<Fault> {
    if first.is_empty() {
        return Some(Fault::new("there is no data", NOT_TSBS));
    }
    let known = MAGIC.iter().find(|(magic, ..)| first.starts_with(magic));
    known.map(|(_, message, hint)| Fault::new(*message, hint))
}
