//! What a server has answered to a script's statement.

use loadstone_lua::{Answer, ResultRows, Script};

use super::link::{GENERAL, as_sent, ends_connection};
use crate::clock::now_ns;
use crate::protocol::{Columns as _, Message, Protocol, Row as _, SqlState};
use crate::record::{ErrorClass, Operations, count_error};

/// The end of one statement, or its failure.
#[derive(Debug, Default)]
pub(super) struct Heard {
    affected: u64,
    failed: Option<(SqlState, u16)>,
    /// The connection was lost over it, and is a new one.
    is_reconnected: bool,
    words: String,
    in_transaction: bool,
    /// All that the server said of an error, where that is told.
    pub(super) report: String,
}

impl Heard {
    /// Another statement is sent.
    pub(super) fn clear(&mut self) {
        self.affected = 0;
        self.failed = None;
        self.is_reconnected = false;
    }

    /// The statement has no connection any more: an error of the client library, unless the server said why.
    pub(super) fn lose(&mut self, (number, words): (u16, &str)) {
        self.in_transaction = false;
        if self.failed.is_none() {
            self.failed = Some((GENERAL, number));
            words.clone_into(&mut self.words);
        }
    }

    /// By its error the connection is made again, in this run.
    pub(super) fn connects_again(&mut self, script: &Script) -> bool {
        self.is_reconnected = (self.failed).is_some_and(|(state, number)| {
            ends_connection(number) && script.is_ignorable(text(&state), number.into())
        });
        self.is_reconnected
    }

    pub(super) fn message<P: Protocol>(
        &mut self,
        message: &Message<'_, P>,
        result: &mut ResultRows,
    ) {
        match message {
            Message::Columns(columns) => result.begin(columns.columns().count()),
            Message::Row(row) => {
                result.row();
                row.values().for_each(|value| result.value(value));
            }
            Message::Done(end) if !result.has_columns() => self.affected = end.rows(),
            Message::Error(error) => {
                self.failed = Some((error.state, error.number));
                self.words.clear();
                self.words.push_str(&String::from_utf8_lossy(error.message));
            }
            Message::Answered { in_transaction } => self.in_transaction = *in_transaction,
            _ => {}
        }
    }

    /// The session was in a transaction after the last answer.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// The server's words about a failure.
    pub(super) fn words(&self) -> &str {
        &self.words
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Count it as what it was.
    pub(super) fn count(&self, result: &ResultRows, operations: &mut Operations) {
        match self.failed {
            Some((state, _)) => {
                let class = ErrorClass::Server(state);
                count_error(&mut operations.ignored, class, now_ns(), || {
                    self.words.clone()
                });
            }
            None if result.has_columns() => operations.reads += 1,
            None if self.affected > 0 => operations.writes += 1,
            None => operations.others += 1,
        }
    }

    /// As the script is to know it.
    pub(super) fn answer<'a>(&'a self, script: &Script) -> Answer<'a> {
        let Some((state, number)) = &self.failed else {
            return Answer::Done {
                affected: self.affected,
            };
        };
        let state = text(as_sent(state, *number));
        Answer::Error {
            is_ignorable: script.is_ignorable(state, (*number).into()),
            number: (*number).into(),
            state,
            message: &self.words,
            report: &self.report,
            is_reconnected: self.is_reconnected,
        }
    }
}

fn text(state: &SqlState) -> &str {
    std::str::from_utf8(state).unwrap_or("")
}

/// Add what a script has counted by itself: others, reads, writes, errors, reconnections.
pub(super) fn count_by_script(counted: [u32; 5], operations: &mut Operations) {
    let [others, reads, writes, errors, reconnects] = counted;
    operations.others += u64::from(others);
    operations.reads += u64::from(reads);
    operations.writes += u64::from(writes);
    operations.reconnects += u64::from(reconnects);
    for _ in 0..errors {
        count_error(
            &mut operations.ignored,
            ErrorClass::Script,
            now_ns(),
            || "counted by the script".to_owned(),
        );
    }
}
