//! Messages for the user while a drive runs: why a client ended, what the server remarks, and, where
//! that is requested, each error and each step.

use std::sync::{Condvar, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// So many lines wait for their reader; then whoever has another waits, too. There are none in a
/// transaction that is measured and goes well.
const LINES_MAX: usize = 65_536;

/// What is written besides the ends of clients and the remarks of the server.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the user's"
)]
pub struct MessageSpec {
    /// Every error that is tried again or passed over.
    pub errors: bool,
    /// Every statement that is sent, and every answer.
    pub steps: bool,
    /// Failures are counted by their kind, per script and statement.
    pub counts: bool,
    /// The commands of scripts that need no server are measured; `counts` too.
    pub times: bool,
}

/// What kind of line it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Something that ends a client.
    Error,
    /// More about the line before.
    Detail,
    /// Something that went on.
    Note,
    /// The server's own words.
    Server,
    /// What a script prints: a text as it is, with the ends of its lines.
    Output,
    /// What became of all clients together.
    Summary,
}

/// One line, or what belongs together of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

impl Line {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { kind, text }
    }
}

/// The lines that wait for their reader, from all threads.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) spec: MessageSpec,
    lines: Mutex<Waiting>,
    room: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<Line>,
    closed: bool,
}

impl Messages {
    pub(crate) fn new(spec: MessageSpec) -> Self {
        Self {
            spec,
            lines: Mutex::default(),
            room: Condvar::new(),
        }
    }

    /// Add a line; waits while too many are unread.
    pub(crate) fn push(&self, line: Line) {
        let mut waiting = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.lines.len() >= LINES_MAX && !waiting.closed {
            waiting = self
                .room
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if !waiting.closed {
            waiting.lines.push(line);
        }
    }

    /// All that was not read yet.
    pub(crate) fn take(&self) -> Vec<Line> {
        let mut waiting = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.notify_all();
        std::mem::take(&mut waiting.lines)
    }

    /// Nobody will read any more: nobody waits for that.
    pub(crate) fn close(&self) {
        let mut waiting = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.closed = true;
        self.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn who_writes_too_much_waits_until_it_is_read_or_never_will_be() {
        let messages = Arc::new(Messages::new(MessageSpec::default()));
        let writer = {
            let messages = Arc::clone(&messages);
            thread::spawn(move || {
                for number in 0..3 * LINES_MAX {
                    messages.push(Line::new(Kind::Note, number.to_string()));
                }
            })
        };
        let mut read = 0;
        while read < LINES_MAX + 1 {
            let lines = messages.take();
            assert!(lines.len() <= LINES_MAX);
            for line in &lines {
                assert_eq!(line.text, read.to_string());
                read += 1;
            }
            thread::yield_now();
        }
        messages.close();
        writer.join().unwrap();
    }
}
