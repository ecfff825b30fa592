//! Errors under load: counted by class, with the first one's words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What kind of trouble ended a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// The server's five-character SQLSTATE.
    Server([u8; 5]),
    /// The connection was lost.
    Connection,
    /// No answer within the time limit.
    Timeout,
    /// The script could not go on (an expression failed, `\gset` found no row).
    Script,
    /// The server sent bytes that are not the protocol.
    Protocol,
    /// The driver itself could not go on.
    Internal,
    /// A query gave another answer than before.
    Answer,
    /// What another driver calls it.
    Named(&'static str),
}

impl ErrorClass {
    /// The text under which it is counted: the SQLSTATE, or a word for what has none.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Server(state) => String::from_utf8_lossy(state).into_owned(),
            Self::Connection => "connection".to_owned(),
            Self::Timeout => "timeout".to_owned(),
            Self::Script => "script".to_owned(),
            Self::Protocol => "protocol".to_owned(),
            Self::Internal => "internal".to_owned(),
            Self::Answer => "answer".to_owned(),
            Self::Named(name) => (*name).to_owned(),
        }
    }
}

impl ErrorClass {
    /// The class of an error by its SQLSTATE, or a library's own word for it.
    #[must_use]
    pub fn of_library(state: &str) -> Self {
        match state {
            "timeout" => Self::Timeout,
            "connection" => Self::Connection,
            "answer" => Self::Answer,
            "internal" => Self::Internal,
            _ => match <[u8; 5]>::try_from(state.as_bytes()) {
                Ok(code)
                    if code
                        .iter()
                        .all(|c| c.is_ascii_digit() || c.is_ascii_uppercase()) =>
                {
                    Self::Server(code)
                }
                _ => Self::Named(named(state)),
            },
        }
    }
}

impl Serialize for ErrorClass {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.label())
    }
}

impl<'de> Deserialize<'de> for ErrorClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let label = String::deserialize(deserializer)?;
        Ok(match label.as_str() {
            "script" => Self::Script,
            "protocol" => Self::Protocol,
            other => Self::of_library(other),
        })
    }
}

/// Names of errors that are kept; the rest is counted as one.
const NAMES_MAX: usize = 1024;

/// Names of errors live as long as the program, each once: they are few, being names of exceptions.
fn named(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    if names.len() >= NAMES_MAX {
        return "other";
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

/// Errors of one class: how many, the first one's words, when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorTally {
    /// The first message.
    pub message: String,
    /// How many.
    pub count: u64,
    /// Time of the first.
    pub first_ns: u64,
    /// Time of the last.
    pub last_ns: u64,
}

/// Errors by class.
pub type Errors = BTreeMap<ErrorClass, ErrorTally>;

/// At most this many classes of errors are kept apart; SQLSTATE has a few hundred, so only garbage exceeds it.
const ERROR_CLASSES_MAX: usize = 256;

/// Count one error; `message` is only called for the first of its class.
pub fn count_error(
    errors: &mut Errors,
    class: ErrorClass,
    at_ns: u64,
    message: impl FnOnce() -> String,
) {
    if let Some(tally) = errors.get_mut(&class) {
        tally.count += 1;
        tally.last_ns = at_ns;
    } else if errors.len() < ERROR_CLASSES_MAX {
        let tally = ErrorTally {
            message: message(),
            count: 1,
            first_ns: at_ns,
            last_ns: at_ns,
        };
        errors.insert(class, tally);
    }
}

/// Add another part's errors.
pub fn merge_errors(errors: &mut Errors, other: &Errors) {
    for (class, tally) in other {
        errors
            .entry(*class)
            .and_modify(|mine| {
                if tally.first_ns < mine.first_ns {
                    mine.message.clone_from(&tally.message);
                }
                mine.count += tally.count;
                mine.first_ns = mine.first_ns.min(tally.first_ns);
                mine.last_ns = mine.last_ns.max(tally.last_ns);
            })
            .or_insert_with(|| tally.clone());
    }
}

/// Move the times of errors by so many nanoseconds.
pub fn shift_errors(errors: &mut Errors, by_ns: i64) {
    for tally in errors.values_mut() {
        tally.first_ns = tally.first_ns.saturating_add_signed(by_ns);
        tally.last_ns = tally.last_ns.saturating_add_signed(by_ns);
    }
}
