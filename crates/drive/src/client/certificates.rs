//! The certificate files that a connection's settings name.

use std::sync::Arc;

use loadstone_wire::postgres::{ClientConfig, Password, RootCertificates, TlsFiles, TlsMode};

use crate::error::DriveError;
use crate::spec::Connection;

/// `sslmode` as it is spelled in the settings.
pub(super) fn tls_mode(connection: &Connection) -> Result<TlsMode, DriveError> {
    connection.sslmode.parse().map_err(|_| {
        DriveError::bad_spec(
            format!("unknown sslmode {:?}", connection.sslmode),
            "use disable, allow, prefer, require, verify-ca or verify-full",
        )
    })
}

/// Reads the files; what they mean together with the mode.
pub(super) fn client_config(
    connection: &Connection,
    mode: TlsMode,
) -> Result<Arc<ClientConfig>, DriveError> {
    let files = TlsFiles {
        root: root_certificates(connection)?,
        client_certificate: read_pem("sslcert", connection.sslcert.as_deref())?,
        client_key: read_pem("sslkey", connection.sslkey.as_deref())?.map(Password::new),
    };
    files
        .client_config(mode)
        .map_err(|e| DriveError::bad_spec(e.to_string(), ""))
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
