//! How a connection is to be made.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

/// A password that is never printed, and wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes the password's bytes as they are.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Plain only.
    Disable,
    /// Plain first; TLS when the server refuses that.
    Allow,
    /// TLS first; plain when that does not work.
    #[default]
    Prefer,
    /// TLS only; the certificate is checked only when root certificates are given.
    Require,
    /// TLS only, with a certificate of a trusted authority.
    VerifyCa,
    /// TLS only, with a certificate of a trusted authority for this host name.
    VerifyFull,
}

impl TlsMode {
    /// Whether a connection without TLS is out of the question.
    #[must_use]
    pub fn demands_tls(self) -> bool {
        matches!(self, Self::Require | Self::VerifyCa | Self::VerifyFull)
    }

    /// The name as libpq spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Allow => "allow",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl FromStr for TlsMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [
            Self::Disable,
            Self::Allow,
            Self::Prefer,
            Self::Require,
            Self::VerifyCa,
            Self::VerifyFull,
        ];
        all.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            format!(
                "sslmode {name:?} is unknown: use disable, allow, prefer, require, verify-ca or verify-full"
            )
        })
    }
}

/// libpq's `channel_binding`: ties the SCRAM exchange to the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where the server offers it.
    #[default]
    Prefer,
    /// Refuse to log in without it.
    Require,
}

impl ChannelBinding {
    /// The name as libpq spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
        }
    }
}

impl FromStr for ChannelBinding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let all = [Self::Disable, Self::Prefer, Self::Require];
        all.into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| {
                format!("channel_binding {name:?} is unknown: use disable, prefer or require")
            })
    }
}

/// Who connects to what, and how. Shared by all sessions of a target.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The role to log in as.
    pub user: String,
    /// The database.
    pub database: String,
    /// The password, where one is known.
    pub password: Option<Password>,
    /// Shown in `pg_stat_activity`; empty for none.
    pub application_name: String,
    /// Further run-time parameters for the start-up message (`options`, `search_path`, …).
    pub parameters: Vec<(String, String)>,
    /// Whether and how to use TLS.
    pub tls: TlsMode,
    /// Whether to use channel binding.
    pub channel_binding: ChannelBinding,
    /// The server's name or address, for SNI and for `verify-full`.
    pub host: String,
    /// The connection is a unix socket: `tls` is ignored, as in libpq.
    pub unix_socket: bool,
}
