//! How a connection is to be made.

use crate::postgres::{Password, TlsMode};

/// Who connects to what, and how. Shared by all sessions of a target.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The user to log in as.
    pub user: String,
    /// The database to begin in; empty for none.
    pub database: String,
    /// The password, where one is known.
    pub password: Option<Password>,
    /// Shown as `program_name` among the connection's attributes; empty for none.
    pub program_name: String,
    /// A statement that every session runs before it is ready; empty for none.
    pub first_statement: String,
    /// Whether to use TLS. `Allow` means the same as `Prefer`: TLS where the server offers it.
    pub tls: TlsMode,
    /// The server's name or address, for SNI and for `verify-full`.
    pub host: String,
    /// The connection is a unix socket: `tls` is ignored, and passwords may go as they are.
    pub unix_socket: bool,
}
