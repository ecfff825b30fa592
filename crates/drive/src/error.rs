//! What can stop a drive before it begins.

use std::path::PathBuf;

use loadstone_gen::dataset::SourceError;

/// Trouble before the first transaction; what happens later is data, counted by class.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The specification is impossible.
    #[error("{message}")]
    BadSpec {
        /// What is wrong.
        message: String,
        /// How to mend it.
        hint: String,
    },
    /// A script does not parse.
    #[error(transparent)]
    Script(#[from] loadstone_script::ScriptError),
    /// The server cannot be reached or refuses the log-in.
    #[error("cannot connect to {address}: {message}")]
    Connect {
        /// Where.
        address: String,
        /// Why.
        message: String,
        /// How to mend it.
        hint: String,
    },
    /// A file of the run folder cannot be written.
    #[error("cannot write {path}: {source}")]
    Output {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The rows cannot be made or read.
    #[error("{0}")]
    Data(SourceError),
    /// The operating system refuses what the driver needs.
    #[error("{what}: {source}")]
    System {
        /// What was asked of it.
        what: String,
        /// Its answer.
        source: std::io::Error,
        /// How to mend it.
        hint: String,
    },
}

impl DriveError {
    /// An impossible specification.
    pub(crate) fn bad_spec(message: String, hint: &str) -> Self {
        Self::BadSpec {
            message,
            hint: hint.to_owned(),
        }
    }

    /// The operating system starts no more threads.
    pub(crate) fn thread(source: std::io::Error) -> Self {
        Self::System {
            what: "starting a thread".to_owned(),
            source,
            hint: "raise the limit of processes (ulimit -u), or use fewer threads".to_owned(),
        }
    }

    /// How to mend it; empty when the message says it all.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::BadSpec { hint, .. } | Self::Connect { hint, .. } | Self::System { hint, .. } => {
                hint.clone()
            }
            Self::Script(error) => error.hint.clone(),
            Self::Data(SourceError::Format { hint, .. }) => (*hint).to_owned(),
            Self::Data(_) => String::new(),
            Self::Output { .. } => {
                "free space there, or choose another folder for the results with --out".to_owned()
            }
        }
    }
}
