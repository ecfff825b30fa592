//! The run-time parameters that a server reports, in as few bytes as ten thousand sessions deserve.

use std::ops::Range;

use super::WireError;
use super::backend::two_texts;

/// `name NUL value NUL` for each parameter.
#[derive(Default)]
pub(crate) struct Parameters {
    entries: Vec<u8>,
}

impl Parameters {
    /// Takes the body of a `ParameterStatus`.
    pub(crate) fn remember(&mut self, body: &[u8]) -> Result<(), WireError> {
        let (name, value) = two_texts(body)?;
        if let Some((entry, _)) = self.find(name) {
            self.entries.drain(entry);
        }
        for text in [name, value] {
            self.entries.extend_from_slice(text);
            self.entries.push(0);
        }
        Ok(())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let (_, value) = self.find(name.as_bytes())?;
        std::str::from_utf8(&self.entries[value]).ok()
    }

    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Where a parameter's entry, and its value, lie.
    fn find(&self, wanted: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
        let text_end = |from: usize| {
            self.entries[from..]
                .iter()
                .position(|byte| *byte == 0)
                .map(|len| from + len)
        };
        let mut from = 0;
        while let Some(name_end) = text_end(from) {
            let value_end = text_end(name_end + 1)?;
            if self.entries[from..name_end] == *wanted {
                return Some((from..value_end + 1, name_end + 1..value_end));
            }
            from = value_end + 1;
        }
        None
    }
}
