//! TLS: the configuration libpq's options mean, and the tunnel inside a session.

mod verify;

use std::fmt;
use std::io::{BufRead as _, ErrorKind, Write as _};
use std::net::Ipv4Addr;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    ClientConfig, ClientConnection, Connection, InconsistentKeys, ServerConfig, ServerConnection,
};

use super::certificate::Parsed;
use super::{Password, TlsMode, WireError};
use verify::Verifier;

/// A cipher buffer that held more than this is given back when it runs empty.
const KEPT_BYTES_MAX: usize = 32 * 1024;

/// Why no TLS configuration could be made.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// `verify-ca` or `verify-full` without anything to verify against.
    #[error("sslmode={mode} needs root certificates: set sslrootcert to a file, or to \"system\"")]
    RootMissing {
        /// libpq's name of the mode.
        mode: &'static str,
    },
    /// The system's authorities vouch for names only, so a weaker check would mean nothing.
    #[error("sslrootcert=system needs sslmode=verify-full, not {mode}")]
    SystemNeedsVerifyFull {
        /// libpq's name of the mode.
        mode: &'static str,
    },
    /// No certificate in a PEM file.
    #[error(
        "{what} contains no usable certificate: it must be PEM text with BEGIN CERTIFICATE ({reason})"
    )]
    BadCertificate {
        /// Which option.
        what: &'static str,
        /// What the parser says.
        reason: String,
    },
    /// No private key in a PEM file.
    #[error("sslkey contains no usable private key: it must be unencrypted PEM text ({reason})")]
    BadKey {
        /// What the parser says.
        reason: String,
    },
    /// Only one of certificate and key.
    #[error("sslcert and sslkey belong together: set both or none")]
    HalfIdentity,
    /// The TLS library refuses.
    #[error("TLS cannot be set up: {0}")]
    Library(#[from] rustls::Error),
}

/// Whom to trust, as PEM text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RootCertificates {
    /// Authorities (or the server's own certificate) that the user named: `sslrootcert=FILE`.
    Given(Vec<u8>),
    /// The operating system's authorities: `sslrootcert=system`.
    System(Vec<u8>),
}

/// The contents of libpq's certificate files. The caller reads the files.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// `sslrootcert`.
    pub root: Option<RootCertificates>,
    /// `sslcert`, PEM: our certificate, then those between it and its authority.
    pub client_certificate: Option<Vec<u8>>,
    /// `sslkey`, PEM.
    pub client_key: Option<Password>,
}

impl TlsFiles {
    /// What `mode` means with these files. As in libpq, root certificates that are given are always
    /// used: `require` then checks as `verify-ca` does.
    pub fn client_config(&self, mode: TlsMode) -> Result<Arc<ClientConfig>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = self.verifier(mode, provider.signature_verification_algorithms)?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match self.identity(&provider)? {
            Some(identity) => builder.with_client_cert_resolver(Arc::new(identity)),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        // As libpq: every connection proves itself again. It also saves memory per connection.
        config.resumption = Resumption::disabled();
        Ok(Arc::new(config))
    }

    fn verifier(
        &self,
        mode: TlsMode,
        algorithms: rustls::crypto::WebPkiSupportedAlgorithms,
    ) -> Result<Verifier, TlsError> {
        let name = mode.name();
        let roots = match &self.root {
            Some(RootCertificates::System(_)) if mode != TlsMode::VerifyFull => {
                return Err(TlsError::SystemNeedsVerifyFull { mode: name });
            }
            Some(RootCertificates::Given(pem) | RootCertificates::System(pem)) => {
                certificates("sslrootcert", pem)?
            }
            None if matches!(mode, TlsMode::VerifyCa | TlsMode::VerifyFull) => {
                return Err(TlsError::RootMissing { mode: name });
            }
            None => return Ok(Verifier::trusting(algorithms)),
        };
        Verifier::new(roots, mode == TlsMode::VerifyFull, algorithms)
    }

    fn identity(&self, provider: &CryptoProvider) -> Result<Option<SingleCertAndKey>, TlsError> {
        match (&self.client_certificate, &self.client_key) {
            (None, None) => Ok(None),
            (Some(chain), Some(key)) => {
                identity(certificates("sslcert", chain)?, key.bytes(), provider).map(Some)
            }
            _ => Err(TlsError::HalfIdentity),
        }
    }
}

/// A certificate chain with its key. The other side judges the chain; rustls need not be able to read
/// it (version 1), and refuses it only when the key is certainly another's.
pub(crate) fn identity(
    chain: Vec<CertificateDer<'static>>,
    key_pem: &[u8],
    provider: &CryptoProvider,
) -> Result<SingleCertAndKey, TlsError> {
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|error| TlsError::BadKey {
        reason: error.to_string(),
    })?;
    let identity = CertifiedKey::new(chain, provider.key_provider.load_private_key(key)?);
    match identity.keys_match() {
        Err(error @ rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            Err(error.into())
        }
        _ => Ok(SingleCertAndKey::from(identity)),
    }
}

/// All certificates of a PEM text; at least one.
pub(crate) fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bad = |reason: String| TlsError::BadCertificate { what, reason };
    let all = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| bad(error.to_string()))?;
    if all.is_empty() {
        Err(bad("none found".to_owned()))
    } else {
        Ok(all)
    }
}

/// The name that a server's certificate is checked against.
///
/// A name that cannot be in a certificate still works where names are not checked.
#[must_use]
pub fn server_name(host: &str) -> ServerName<'static> {
    ServerName::try_from(host.to_owned())
        .unwrap_or_else(|_| ServerName::IpAddress(Ipv4Addr::UNSPECIFIED.into()))
}

/// The TLS layer of one connection, at either end.
pub(crate) struct Tunnel {
    connection: Connection,
    host: String,
    cipher: Vec<u8>,
    sent: usize,
}

impl Tunnel {
    pub(crate) fn client(config: &Arc<ClientConfig>, host: &str) -> Result<Self, WireError> {
        let connection = ClientConnection::new(Arc::clone(config), server_name(host));
        Self::over(connection.map(Connection::Client), host)
    }

    pub(crate) fn server(config: &Arc<ServerConfig>) -> Result<Self, WireError> {
        let connection = ServerConnection::new(Arc::clone(config));
        Self::over(connection.map(Connection::Server), "the client")
    }

    fn over(connection: Result<Connection, rustls::Error>, host: &str) -> Result<Self, WireError> {
        let mut connection = connection.map_err(|error| failed(host, &error))?;
        // The caller bounds what it appends; a limit here would only lose bytes.
        connection.set_buffer_limit(None);
        Ok(Self {
            connection,
            host: host.to_owned(),
            cipher: Vec::new(),
            sent: 0,
        })
    }

    pub(crate) fn is_established(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// Data for channel binding, where the server's certificate has it.
    pub(crate) fn server_end_point(&self) -> Option<Vec<u8>> {
        Parsed::new(self.connection.peer_certificates()?.first()?)?.server_end_point()
    }

    /// Takes as many encrypted bytes as it can; returns the rest.
    pub(crate) fn receive<'i>(&mut self, input: &'i [u8]) -> Result<&'i [u8], WireError> {
        let mut rest = input;
        let taken = self
            .connection
            .read_tls(&mut rest)
            .map_err(|error| failed(&self.host, &error))?;
        self.connection
            .process_new_packets()
            .map_err(|error| failed(&self.host, &error))?;
        // After the server's farewell nothing more is taken.
        Ok(if taken == 0 { &[] } else { rest })
    }

    /// Hands over all decrypted bytes, in place.
    pub(crate) fn decrypted(
        &mut self,
        take: &mut dyn FnMut(&[u8]) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        let mut reader = self.connection.reader();
        loop {
            match reader.fill_buf() {
                Ok([]) => return Ok(()),
                Ok(plain) => {
                    take(plain)?;
                    let len = plain.len();
                    reader.consume(len);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(failed(&self.host, &error)),
            }
        }
    }

    pub(crate) fn encrypt(&mut self, plain: &[u8]) -> Result<(), WireError> {
        self.connection
            .writer()
            .write_all(plain)
            .map_err(|error| failed(&self.host, &error))
    }

    pub(crate) fn pending(&mut self) -> Result<&[u8], WireError> {
        while self.connection.wants_write() {
            self.connection
                .write_tls(&mut self.cipher)
                .map_err(|error| failed(&self.host, &error))?;
        }
        Ok(&self.cipher[self.sent..])
    }

    pub(crate) fn consumed(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.cipher.len());
        if self.sent == self.cipher.len() {
            self.sent = 0;
            self.cipher.clear();
            self.cipher.shrink_to(KEPT_BYTES_MAX);
        }
    }
}

fn failed(host: &str, reason: &dyn fmt::Display) -> WireError {
    WireError::TlsFailed {
        host: host.to_owned(),
        reason: reason.to_string(),
    }
}
