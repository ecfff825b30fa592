//! From the specification of a connection to PostgreSQL's settings: log-in, TLS, certificates.

use std::sync::Arc;

use loadstone_wire::postgres::{
    ChannelBinding, Password, RootCertificates, Settings, TlsFiles, TlsMode,
};

use super::Postgres;
use crate::error::DriveError;
use crate::spec::Connection;

/// Check the settings, and read the files that they name.
pub(super) fn read(connection: &Connection, unix_socket: bool) -> Result<Postgres, DriveError> {
    let tls: TlsMode = connection.sslmode.parse().map_err(|_| {
        DriveError::bad_spec(
            format!("unknown sslmode {:?}", connection.sslmode),
            "use disable, allow, prefer, require, verify-ca or verify-full",
        )
    })?;
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
        let files = TlsFiles {
            root: root_certificates(connection)?,
            client_certificate: read_pem("sslcert", connection.sslcert.as_deref())?,
            client_key: read_pem("sslkey", connection.sslkey.as_deref())?.map(Password::new),
        };
        Some(
            files
                .client_config(tls)
                .map_err(|e| DriveError::bad_spec(e.to_string(), ""))?,
        )
    };
    Ok(Postgres {
        settings: Arc::new(settings),
        tls,
    })
}

fn root_certificates(connection: &Connection) -> Result<Option<RootCertificates>, DriveError> {
    if connection.sslrootcert.as_deref() != Some("system") {
        let given = read_pem("sslrootcert", connection.sslrootcert.as_deref())?;
        return Ok(given.map(RootCertificates::Given));
    }
    let Some(file) = openssl_probe::probe().cert_file else {
        return Err(DriveError::bad_spec(
            "sslrootcert=system, but this system has no file of trusted authorities".to_owned(),
            "install the package ca-certificates, or use a file",
        ));
    };
    let text = read_pem("sslrootcert", file.to_str())?;
    Ok(text.map(RootCertificates::System))
}

fn read_pem(option: &str, path: Option<&str>) -> Result<Option<Vec<u8>>, DriveError> {
    let Some(path) = path else { return Ok(None) };
    std::fs::read(path).map(Some).map_err(|error| {
        DriveError::bad_spec(
            format!("{option}={path} cannot be read: {error}"),
            "use a readable PEM file",
        )
    })
}
