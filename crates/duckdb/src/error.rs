//! What DuckDB said, and under which name it is counted.

use std::ffi::{CString, NulError};
use std::fmt;

use loadstone_drive::library::LibraryError;

/// Kinds of errors by their number in `duckdb.h`, as the exceptions of DuckDB's Python package are called.
const NAMES: [(u32, &str); 23] = [
    (1, "OutOfRangeException"),
    (2, "ConversionException"),
    (5, "TypeMismatchException"),
    (8, "InvalidTypeException"),
    (9, "SerializationException"),
    (10, "TransactionException"),
    (11, "NotImplementedException"),
    (13, "CatalogException"),
    (14, "ParserException"),
    (18, "ConstraintException"),
    (21, "ConnectionException"),
    (22, "SyntaxException"),
    (24, "BinderException"),
    (28, "IOException"),
    (29, "InterruptException"),
    (30, "FatalException"),
    (31, "InternalException"),
    (32, "InvalidInputException"),
    (33, "OutOfMemoryException"),
    (34, "PermissionException"),
    (37, "DependencyException"),
    (38, "HTTPException"),
    (41, "SequenceException"),
];
const OTHER: &str = "Error";

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuckError {
    /// The name of the exception of DuckDB's Python package that stands for this kind of error.
    pub state: String,
    /// What DuckDB said.
    pub message: String,
}

impl DuckError {
    pub(crate) fn new(state: &str, message: impl Into<String>) -> Self {
        Self {
            state: state.to_owned(),
            message: message.into(),
        }
    }

    /// By the number of its kind.
    pub(crate) fn of(kind: u32, message: String) -> Self {
        let name = NAMES.iter().find(|(number, _)| *number == kind);
        Self::new(name.map_or(OTHER, |(_, name)| name), message)
    }

    /// By the words that the message begins with (`Catalog Error: …`), where nothing else tells.
    pub(crate) fn told(message: String) -> Self {
        let kind: String = message
            .split_once(" Error:")
            .map_or("", |(kind, _)| kind)
            .split(' ')
            .collect();
        let wanted = format!("{kind}Exception");
        let name = NAMES
            .iter()
            .find(|(_, name)| name.eq_ignore_ascii_case(&wanted));
        Self::new(name.map_or(OTHER, |(_, name)| name), message)
    }

    pub(crate) fn no_connection() -> Self {
        Self::new("ConnectionException", "no connection was made")
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(
            "InterruptException",
            "INTERRUPT Error: the call was interrupted",
        )
    }
}

impl fmt::Display for DuckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DuckError {}

impl From<DuckError> for LibraryError {
    fn from(error: DuckError) -> Self {
        Self::new(&error.state, &error.message)
    }
}

/// A text for the library, which ends texts with a zero byte.
pub(crate) fn c_text(text: &str) -> Result<CString, DuckError> {
    CString::new(text).map_err(|error: NulError| {
        let place = error.nul_position();
        DuckError::new(
            "ParserException",
            format!("Parser Error: a zero byte at place {place}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_comes_from_the_number_or_the_begin_of_the_message() {
        assert_eq!(
            DuckError::of(33, String::new()).state,
            "OutOfMemoryException"
        );
        assert_eq!(DuckError::of(999, String::new()).state, "Error");
        let told = |words: &str| DuckError::told(words.to_owned()).state;
        assert_eq!(told("Invalid Input Error: no"), "InvalidInputException");
        assert_eq!(
            told("IO Error: Cannot open file: Catalog Error: x"),
            "IOException"
        );
        assert_eq!(told("Catalog said: Error"), "Error");
    }
}
