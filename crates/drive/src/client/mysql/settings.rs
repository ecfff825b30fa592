//! From the specification of a connection to MySQL's settings: log-in, TLS, variables of the session.

use std::sync::Arc;

use loadstone_wire::mysql::Settings;
use loadstone_wire::postgres::{ClientConfig, Password, TlsMode};

use super::Mysql;
use crate::client::certificates;
use crate::error::DriveError;
use crate::spec::Connection;

/// Check the settings, and read the files that they name.
pub(super) fn read(connection: &Connection, unix_socket: bool) -> Result<Mysql, DriveError> {
    let mode = certificates::tls_mode(connection)?;
    let tls = if unix_socket || mode == TlsMode::Disable {
        None
    } else {
        let config = certificates::client_config(connection, mode)?;
        let mut config = ClientConfig::clone(&config);
        // The name of another protocol; this one has none.
        config.alpn_protocols.clear();
        Some(Arc::new(config))
    };
    let settings = Settings {
        user: connection.user.clone(),
        database: connection.database.clone(),
        password: connection
            .password
            .as_ref()
            .map(|p| Password::new(p.0.clone())),
        program_name: connection.application_name.clone(),
        first_statement: set_variables(connection)?,
        tls: mode,
        host: connection.host.clone(),
        unix_socket,
    };
    Ok(Mysql {
        settings: Arc::new(settings),
        tls,
    })
}

/// The statement that sets the variables of a session; empty when there are none.
fn set_variables(connection: &Connection) -> Result<String, DriveError> {
    let mut parts = Vec::new();
    for (name, value) in &connection.parameters {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(DriveError::bad_spec(
                format!("{name:?} cannot be the name of a session variable"),
                "use letters, digits and underscores",
            ));
        }
        let literal = if value.parse::<f64>().is_ok_and(f64::is_finite) {
            value.clone()
        } else {
            format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
        };
        parts.push(format!("SESSION {name} = {literal}"));
    }
    Ok(match parts.as_slice() {
        [] => String::new(),
        parts => format!("SET {}", parts.join(", ")),
    })
}
