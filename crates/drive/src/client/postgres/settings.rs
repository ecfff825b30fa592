//! From the specification of a connection to PostgreSQL's settings: log-in, TLS.

use std::sync::Arc;

use loadstone_wire::postgres::{ChannelBinding, Password, Settings, TlsMode};

use super::Postgres;
use crate::client::certificates;
use crate::error::DriveError;
use crate::spec::Connection;

/// Check the settings, and read the files that they name.
pub(super) fn read(connection: &Connection, unix_socket: bool) -> Result<Postgres, DriveError> {
    let tls = certificates::tls_mode(connection)?;
    let channel_binding: ChannelBinding = connection.channel_binding.parse().map_err(|_| {
        DriveError::bad_spec(
            format!("unknown channel_binding {:?}", connection.channel_binding),
            "use disable, prefer or require",
        )
    })?;
    let settings = Settings {
        user: connection.user.clone(),
        database: connection.database.clone(),
        password: connection
            .password
            .as_ref()
            .map(|p| Password::new(p.0.clone())),
        application_name: connection.application_name.clone(),
        parameters: connection.parameters.clone().into_iter().collect(),
        tls,
        channel_binding,
        host: connection.host.clone(),
        unix_socket,
    };
    let tls = if unix_socket || tls == TlsMode::Disable {
        None
    } else {
        Some(certificates::client_config(connection, tls)?)
    };
    Ok(Postgres {
        settings: Arc::new(settings),
        tls,
    })
}
