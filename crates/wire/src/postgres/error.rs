//! What can go wrong on a connection.

use super::ServerErrorOwned;

/// Why a session ended. The session is unusable afterwards.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The server did not accept who we are (SQLSTATE class 28).
    #[error("the server refused the log-in: {0}")]
    AuthFailed(Box<ServerErrorOwned>),
    /// The server asks for a password and there is none.
    #[error("the server requires a password for user {user:?}, but there is none")]
    PasswordMissing {
        /// The user that wanted to log in.
        user: String,
    },
    /// The server has TLS switched off, and the settings demand it.
    #[error("the server does not support TLS, but sslmode requires it")]
    TlsRefused,
    /// The settings demand TLS and the caller gave no TLS configuration.
    #[error("sslmode requires TLS, but there is no TLS configuration")]
    TlsNotConfigured,
    /// The TLS layer failed.
    #[error("TLS with {host:?} failed: {reason}")]
    TlsFailed {
        /// The server's name, as the user gave it.
        host: String,
        /// What the TLS library says.
        reason: String,
    },
    /// The server sent plain bytes where only TLS may follow: somebody may be in between.
    #[error("the server sent unencrypted bytes after it had agreed to TLS")]
    UnencryptedBytes,
    /// The server asks for a way to log in that is not supported.
    #[error(
        "the server requires authentication method {name} (code {code}), which is not supported"
    )]
    UnsupportedAuth {
        /// Code of the authentication request.
        code: i32,
        /// Its name, as far as known.
        name: String,
    },
    /// `channel_binding=require` cannot be met.
    #[error("channel_binding=require is not possible: {reason}")]
    ChannelBinding {
        /// Why.
        reason: &'static str,
    },
    /// The SCRAM exchange failed on our side: the server could not prove that it knows us.
    #[error("the server failed the SCRAM exchange: {reason}")]
    ScramFailed {
        /// Why.
        reason: String,
    },
    /// A server that signs its challenge has signed it with another password than ours.
    #[error("the server's challenge is not signed with our password")]
    ChallengeFailed,
    /// The server refused the connection for another reason: no such database, too many clients.
    #[error("the server refused the connection: {0}")]
    ServerRefused(Box<ServerErrorOwned>),
    /// The server closed the connection.
    #[error("the server closed the connection {when}")]
    Closed {
        /// At what moment.
        when: &'static str,
    },
    /// Bytes that are not the protocol.
    #[error("the server sent a malformed {what} (at byte {at} of the message)")]
    Malformed {
        /// Which message.
        what: &'static str,
        /// Offset inside the message, in bytes.
        at: usize,
    },
    /// A message announces more than 1 GiB.
    #[error("the server announced a message of {len} bytes")]
    MessageTooLarge {
        /// Announced length in bytes.
        len: u32,
    },
    /// A message that has no place in this state.
    #[error("the server sent message {:?} {state}", char::from(*.tag))]
    UnexpectedMessage {
        /// Type byte of the message.
        tag: u8,
        /// Where the session stood.
        state: &'static str,
    },
    /// The caller asked for a message that cannot be encoded.
    #[error("cannot encode {what}: {reason}")]
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

const NOT_POSTGRES: &str =
    "check that host and port lead to a PostgreSQL server, not to another service or proxy";

impl WireError {
    /// How to mend it, in words for the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::AuthFailed(_) => {
                "check user, password and database, and the server's pg_hba.conf"
            }
            Self::PasswordMissing { .. } => {
                "set it in the URL, in PGPASSWORD or in ~/.pgpass (whose mode must be 0600)"
            }
            Self::TlsRefused => {
                "set ssl = on at the server, or use sslmode=prefer or sslmode=disable"
            }
            Self::TlsNotConfigured => {
                "build the TLS configuration from the target's certificates first"
            }
            Self::TlsFailed { .. } => {
                "check sslrootcert and the server's certificate (X.509 version 3, in date, issued for this \
                 host name), or choose a weaker sslmode"
            }
            Self::UnencryptedBytes => "do not trust this network path; look for a proxy in between",
            Self::UnsupportedAuth { .. } => {
                "set scram-sha-256, md5, password or trust for this user and address in pg_hba.conf"
            }
            Self::ChannelBinding { .. } => {
                "use TLS and scram-sha-256 at the server, or channel_binding=prefer"
            }
            Self::ChallengeFailed => {
                "check the password; if it is right, this is not the right server"
            }
            Self::ScramFailed { .. } => {
                "check that this is the right server; a wrong password is reported by the server itself"
            }
            Self::ServerRefused(error) => refusal_hint(error.sqlstate),
            Self::Closed { .. } => {
                "check the server's log: it may have crashed, been stopped or refused the connection"
            }
            Self::Malformed { .. }
            | Self::MessageTooLarge { .. }
            | Self::UnexpectedMessage { .. } => NOT_POSTGRES,
            Self::Unencodable { .. } => {
                "correct the statement, name or parameter that is named here"
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

    /// SQLSTATE to count this failure under: the server's own, or class 08 (connection) of ours.
    #[must_use]
    pub fn sqlstate(&self) -> [u8; 5] {
        match self {
            Self::AuthFailed(error) | Self::ServerRefused(error) => error.sqlstate,
            Self::ChallengeFailed => *b"28P01",
            Self::Closed { .. } | Self::AlreadyFailed => *b"08006",
            Self::Malformed { .. }
            | Self::MessageTooLarge { .. }
            | Self::UnexpectedMessage { .. }
            | Self::Unencodable { .. } => *b"08P01",
            _ => *b"08001",
        }
    }
}

fn refusal_hint(sqlstate: [u8; 5]) -> &'static str {
    match &sqlstate {
        b"3D000" => "create the database, or name an existing one",
        b"53300" => "raise max_connections at the server, or use fewer clients",
        b"57P03" => {
            "wait until the server has started up (or has finished recovery), then try again"
        }
        b"42704" | b"22023" => "check the run-time parameters that the connection sets",
        _ => "the server's own message says why; its log may say more",
    }
}
