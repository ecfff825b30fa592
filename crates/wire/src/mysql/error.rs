//! What can go wrong on a connection, and what a server reports.

use std::fmt;

use super::reader::Reader;
use crate::postgres::WireError;

/// Why a session ended. The session is unusable afterwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MysqlError {
    /// The server did not accept who we are.
    #[error("the server refused the log-in: {0}")]
    AuthFailed(Box<ServerErrorOwned>),
    /// The server refused the connection for another reason: no such database, too many connections.
    #[error("the server refused the connection: {0}")]
    ServerRefused(Box<ServerErrorOwned>),
    /// The server has TLS switched off, and the settings demand it.
    #[error("the server does not offer TLS, and the settings demand it")]
    TlsRefused,
    /// The settings demand TLS and the caller gave no TLS configuration.
    #[error("the settings demand TLS, and no TLS configuration was given")]
    TlsNotConfigured,
    /// The TLS layer failed.
    #[error("{0}")]
    Tls(Box<WireError>),
    /// The server sent plain bytes where only TLS may follow: somebody may be in between.
    #[error("the server sent unencrypted bytes where TLS begins")]
    UnencryptedBytes,
    /// The server asks for a way to log in that is not supported.
    #[error("the server asks for the authentication plugin {name:?}, which is not supported")]
    UnsupportedAuth {
        /// The plugin's name.
        name: String,
    },
    /// The server asks for a password in a form that others on the network could read.
    #[error(
        "the server asks for the authentication plugin {name:?}, which would show the password to the network"
    )]
    InsecureAuth {
        /// The plugin's name.
        name: String,
    },
    /// A step of the log-in went wrong.
    #[error("the log-in with the authentication plugin {name:?} failed: {reason}")]
    LogIn {
        /// The plugin's name.
        name: String,
        /// Why.
        reason: String,
    },
    /// The server closed the connection.
    #[error("the server closed the connection {when}")]
    Closed {
        /// At what moment.
        when: &'static str,
    },
    /// Bytes that are not the protocol.
    #[error("the server sent a malformed {what}")]
    Malformed {
        /// Which packet.
        what: &'static str,
    },
    /// A packet that has no place in this state.
    #[error("the server sent a packet that begins with {first:#04x} {state}")]
    UnexpectedPacket {
        /// First byte of the payload.
        first: u8,
        /// Where the session stood.
        state: &'static str,
    },
    /// A packet is missing, or came twice.
    #[error("the server sent packet {got} where packet {expected} was due")]
    OutOfOrder {
        /// The number that was due.
        expected: u8,
        /// The number that came.
        got: u8,
    },
    /// The server announces more than we take.
    #[error("the server sent a message of more than 1 GiB")]
    MessageTooLarge,
    /// The caller asked for a message that cannot be encoded.
    #[error("cannot send {what}: {reason}")]
    Unencodable {
        /// Which message.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// The session was used after an error.
    #[error("the session has already failed")]
    AlreadyFailed,
}

const NOT_MYSQL: &str =
    "check that host and port lead to a MySQL or MariaDB server, not to another service or proxy";

impl MysqlError {
    /// How to correct it, in words for the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::AuthFailed(_) => {
                "check user, password and the host that the account may log in from (mysql.user)"
            }
            Self::ServerRefused(error) => match error.code {
                1049 => "create the database, or name an existing one",
                1040 | 1203 => "raise max_connections at the server, or use fewer clients",
                1129 => "run FLUSH HOSTS at the server",
                _ => "the server's own message says why; its log may say more",
            },
            Self::TlsRefused => "set up TLS at the server, or choose a weaker sslmode",
            Self::TlsNotConfigured => {
                "build the TLS configuration from the target's certificates first"
            }
            Self::Tls(_) => {
                "check sslrootcert and the server's certificate (X.509 version 3, in date, issued for this \
                 host name), or choose a weaker sslmode"
            }
            Self::UnencryptedBytes => "do not trust this network path; look for a proxy in between",
            Self::UnsupportedAuth { .. } => {
                "let the account use mysql_native_password, caching_sha2_password, ed25519 or unix_socket"
            }
            Self::InsecureAuth { .. } => "use TLS (sslmode=require) or the server's unix socket",
            Self::LogIn { .. } => "check that this is the right server; its log may say more",
            Self::Closed { .. } => {
                "look into the server's log: it may have crashed, been stopped or refused us"
            }
            Self::Malformed { .. }
            | Self::UnexpectedPacket { .. }
            | Self::OutOfOrder { .. }
            | Self::MessageTooLarge => NOT_MYSQL,
            Self::Unencodable { .. } => {
                "correct the statement, name or parameter that the message names"
            }
            Self::AlreadyFailed => "open a new connection",
        }
    }

    /// The server's own error, where it sent one.
    #[must_use]
    pub fn server_error(&self) -> Option<&ServerErrorOwned> {
        match self {
            Self::AuthFailed(error) | Self::ServerRefused(error) => Some(error),
            _ => None,
        }
    }
}

impl From<WireError> for MysqlError {
    fn from(error: WireError) -> Self {
        Self::Tls(Box::new(error))
    }
}

/// An error of the server, still in the bytes it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerError<'a> {
    /// The server's own number: 1213 is a deadlock.
    pub code: u16,
    /// SQLSTATE; `HY000` where the server sent none.
    pub sqlstate: [u8; 5],
    /// What the server says.
    pub message: &'a [u8],
}

impl<'a> ServerError<'a> {
    /// From the payload of an error packet.
    pub(super) fn read(payload: &'a [u8]) -> Option<Self> {
        let mut reader = Reader(payload);
        reader.take(1)?;
        let code = reader.u16()?;
        let mut sqlstate = *b"HY000";
        // Before the log-in the state is left out.
        if let [b'#', a, b, c, d, e, ..] = *reader.0 {
            sqlstate = [a, b, c, d, e];
            reader.take(6)?;
        }
        Some(Self {
            code,
            sqlstate,
            message: reader.0,
        })
    }

    /// Whether the server ends the connection with it: shutdown, a packet too large, killed, idle for too long.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.code, 1053 | 1153 | 1927 | 3169 | 4031)
    }

    /// A copy that outlives the bytes.
    #[must_use]
    pub fn to_owned(&self) -> ServerErrorOwned {
        ServerErrorOwned {
            code: self.code,
            sqlstate: self.sqlstate,
            message: String::from_utf8_lossy(self.message).into_owned(),
        }
    }
}

/// An error of the server that owns its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerErrorOwned {
    /// The server's own number.
    pub code: u16,
    /// SQLSTATE.
    pub sqlstate: [u8; 5],
    /// What the server says.
    pub message: String,
}

impl fmt::Display for ServerErrorOwned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sqlstate = String::from_utf8_lossy(&self.sqlstate);
        write!(
            f,
            "{} (error {}, SQLSTATE {sqlstate})",
            self.message, self.code
        )
    }
}
