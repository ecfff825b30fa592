//! From the first byte to the first `ReadyForQuery`.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::auth::{Authenticator, Context};
use super::{Settings, TlsMode, WireError};

/// Where the start-up stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// `SSLRequest` was sent; one byte will answer it.
    TlsReply,
    /// The TLS handshake is running.
    TlsHandshake,
    /// The start-up message was sent; the server wants to know who we are.
    Authentication,
    /// The server let us in and tells us its parameters.
    Settling,
}

/// What is needed until the session is ready, and dropped then.
pub(crate) struct StartUp {
    pub(crate) phase: Phase,
    pub(crate) authenticator: Authenticator,
    pub(crate) server_end_point: Option<Vec<u8>>,
}

impl StartUp {
    /// Puts the first message into `out`.
    pub(crate) fn begin(
        settings: &Settings,
        tls_available: bool,
        out: &mut BytesMut,
    ) -> Result<Self, WireError> {
        let mode = if settings.unix_socket {
            TlsMode::Disable
        } else {
            settings.tls
        };
        if mode.demands_tls() && !tls_available {
            return Err(WireError::TlsNotConfigured);
        }
        let phase = if tls_available && (mode.demands_tls() || mode == TlsMode::Prefer) {
            frontend::ssl_request(out);
            Phase::TlsReply
        } else {
            send_startup_message(settings, out)?;
            Phase::Authentication
        };
        Ok(Self {
            phase,
            authenticator: Authenticator::default(),
            server_end_point: None,
        })
    }

    pub(crate) fn context<'a>(&'a self, settings: &'a Settings, tls_in_use: bool) -> Context<'a> {
        Context {
            settings,
            tls_in_use,
            server_end_point: self.server_end_point.as_deref(),
        }
    }
}

/// libpq's second chance: which mode to try on a new connection after `error`, if any.
pub(crate) fn retry_mode(
    settings: &Settings,
    phase: Phase,
    tls_in_use: bool,
    tls_available: bool,
    error: &WireError,
) -> Option<TlsMode> {
    if settings.unix_socket || phase == Phase::Settling || !tls_available {
        return None;
    }
    // What the server itself answered, or silence: pg_hba.conf may think otherwise of the other kind.
    let refused = matches!(
        error,
        WireError::AuthFailed(_) | WireError::ServerRefused(_) | WireError::Closed { .. }
    );
    match settings.tls {
        TlsMode::Allow if refused => Some(TlsMode::Require),
        TlsMode::Prefer if tls_in_use && refused => Some(TlsMode::Disable),
        TlsMode::Prefer if matches!(phase, Phase::TlsReply | Phase::TlsHandshake) => {
            Some(TlsMode::Disable)
        }
        _ => None,
    }
}

/// The start-up message: who we are and what we want.
pub(crate) fn send_startup_message(
    settings: &Settings,
    out: &mut BytesMut,
) -> Result<(), WireError> {
    let named = [
        ("user", settings.user.as_str()),
        ("database", settings.database.as_str()),
        ("application_name", settings.application_name.as_str()),
    ];
    let further = settings
        .parameters
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let all = named
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .chain(further);
    // An empty name would end the list early.
    if let Some((name, _)) = all
        .clone()
        .find(|(name, value)| name.is_empty() || value.contains('\0'))
    {
        let reason = format!("parameter {name:?} has an empty name or a NUL byte");
        return Err(WireError::Unencodable {
            what: "StartupMessage",
            reason,
        });
    }
    frontend::startup_message(all, out).map_err(|error| WireError::Unencodable {
        what: "StartupMessage",
        reason: error.to_string(),
    })
}
