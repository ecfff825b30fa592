//! What a library said, and under which name it is counted.

use std::collections::BTreeMap;
use std::fmt;

use adbc_core::error::Error;
use arrow_schema::ArrowError;
use serde::Deserialize;

/// What Arrow puts before the words of whoever makes a stream.
const PRODUCER: &str = "Producer error: ";

/// How kinds of errors are called in results.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorNames {
    /// Key of the error detail that holds the kind; without that detail it is what precedes ` Error:` in the message.
    pub detail: String,
    /// Kind, in lower-case letters and digits only, to its name.
    pub names: BTreeMap<String, String>,
    /// The name of all other kinds.
    pub other: String,
}

impl ErrorNames {
    fn name(&self, kind: &str) -> Option<String> {
        let plain: String = kind.chars().filter(char::is_ascii_alphanumeric).collect();
        self.names.get(&plain.to_ascii_lowercase()).cloned()
    }

    fn of(&self, details: Option<&[(String, Vec<u8>)]>, message: &str) -> String {
        self.detailed(details)
            .or_else(|| self.name(message.split_once(" Error:")?.0))
            .unwrap_or_else(|| self.other.clone())
    }

    fn detailed(&self, details: Option<&[(String, Vec<u8>)]>) -> Option<String> {
        let (_, kind) = details?.iter().find(|(key, _)| *key == self.detail)?;
        self.name(&String::from_utf8_lossy(kind))
    }

    pub(crate) fn error(&self, error: &Error) -> AdbcError {
        AdbcError {
            state: self.of(error.details.as_deref(), &error.message),
            message: error.message.clone(),
        }
    }

    /// An error in the middle of an answer: Arrow hands on the library's text alone.
    pub(crate) fn arrow(&self, error: &ArrowError) -> AdbcError {
        let said = error.to_string();
        let (_, told) = said.split_once(PRODUCER).unwrap_or(("", &said));
        let message = told.to_owned();
        AdbcError {
            state: self.of(None, &message),
            message,
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdbcError {
    /// The kind of the error, by one of [`ErrorNames`].
    pub state: String,
    /// What the library said.
    pub message: String,
}

impl fmt::Display for AdbcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AdbcError {}

#[cfg(test)]
mod tests {
    use adbc_core::error::Status;

    use super::*;

    fn names() -> ErrorNames {
        let document = r#"{"detail":"x:type","names":{"outofmemory":"Memory","catalog":"Catalog"},"other":"Any"}"#;
        serde_json::from_str(document).unwrap()
    }

    fn state(message: &str, detail: Option<&str>) -> String {
        let mut error = Error::with_message_and_status(message, Status::Internal);
        error.details = detail.map(|kind| vec![("x:type".to_owned(), kind.as_bytes().to_vec())]);
        names().error(&error).state
    }

    #[test]
    fn the_kind_comes_from_the_detail_or_the_begin_of_the_message() {
        assert_eq!(state("failed to allocate", Some("OutOfMemory")), "Memory");
        assert_eq!(state("Out of Memory Error: no room", None), "Memory");
        assert_eq!(
            state("Catalog Error: no table", Some("of no name")),
            "Catalog"
        );
        assert_eq!(state("Catalog said: Error", None), "Any");
    }

    #[test]
    fn an_error_amid_an_answer_is_told_in_the_librarys_words() {
        let said = format!("no next batch. {PRODUCER}Catalog Error: gone");
        let error = names().arrow(&ArrowError::CDataInterface(said));
        assert_eq!(
            (error.state.as_str(), error.to_string().as_str()),
            ("Catalog", "Catalog Error: gone")
        );
    }
}
