//! What a responder is told to do.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;

use crate::postgres::tls::{certificates, identity};
use crate::postgres::{Password, TlsError};

/// How all connections of a built-in server behave.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Who may come in.
    pub auth: ResponderAuth,
    /// TLS, where it is offered.
    pub tls: Option<ServerTls>,
    /// The answer to every statement that returns rows.
    pub reply: Reply,
    /// What goes wrong, each counted per connection.
    pub faults: Vec<Fault>,
}

/// How a client has to prove who it is. Passwords are ASCII.
#[derive(Debug, Clone, Default)]
pub enum ResponderAuth {
    /// Everybody may come in.
    #[default]
    Trust,
    /// The password itself.
    Cleartext {
        /// The only user.
        user: String,
        /// Its password.
        password: Password,
    },
    /// Salted MD5.
    Md5 {
        /// The only user.
        user: String,
        /// Its password.
        password: Password,
    },
    /// One SHA-256 challenge, as openGauss poses it.
    Sha256 {
        /// The only user.
        user: String,
        /// Its password.
        password: Password,
    },
    /// SCRAM-SHA-256, and -PLUS under TLS.
    Scram {
        /// The only user.
        user: String,
        /// Its password.
        password: Password,
    },
}

/// A server's certificate and key.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub(super) config: Arc<ServerConfig>,
    pub(super) certificate: CertificateDer<'static>,
}

impl ServerTls {
    /// From PEM texts: the certificate and those up to its authority, and the key.
    pub fn new(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates("the server's certificate", certificate_pem)?;
        let certificate = chain[0].clone();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let identity = identity(chain, key_pem, &provider)?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(identity));
        Ok(Self {
            config: Arc::new(config),
            certificate,
        })
    }
}

/// The answer to a statement that returns rows, encoded once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// `RowDescription`, or `NoData`.
    pub(super) description: Vec<u8>,
    pub(super) has_rows: bool,
    /// The rows and `CommandComplete`.
    pub(super) rows: Vec<u8>,
}

impl Default for Reply {
    /// One row with one column: `SELECT 1`.
    fn default() -> Self {
        Self::rows(&["?column?"], &[&[Some("1")]])
    }
}

impl Reply {
    /// These columns (of type text) and rows (`None`: NULL).
    #[must_use]
    pub fn rows(columns: &[&str], rows: &[&[Option<&str>]]) -> Self {
        let mut description = Vec::new();
        message(&mut description, b'T', |out| {
            put_count(out, columns.len());
            for column in columns {
                out.extend_from_slice(column.as_bytes());
                // NUL, table 0, column 0, type text (25) of variable size, no modifier, as text
                out.extend_from_slice(b"\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0");
            }
        });
        let mut encoded = Vec::new();
        for row in rows {
            message(&mut encoded, b'D', |out| put_row(out, row));
        }
        put_tag(&mut encoded, &format!("SELECT {}", rows.len()));
        Self {
            description,
            has_rows: true,
            rows: encoded,
        }
    }

    /// No rows, only a tag such as `INSERT 0 1`.
    #[must_use]
    pub fn tag(tag: &str) -> Self {
        let mut rows = Vec::new();
        put_tag(&mut rows, tag);
        Self {
            description: b"n\0\0\0\x04".to_vec(),
            has_rows: false,
            rows,
        }
    }
}

/// Something that goes wrong. Queries are counted per connection, each statement of a simple query
/// and each Execute; `queries: 3` lets three of them pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Every n-th query fails.
    ErrorEvery {
        /// How often.
        n: u64,
        /// SQLSTATE.
        sqlstate: [u8; 5],
        /// Text of the error.
        message: String,
    },
    /// The connection is closed instead of an answer.
    CloseAfter {
        /// Queries that are answered before.
        queries: u64,
    },
    /// Bytes that are not the protocol come instead of an answer.
    GarbageAfter {
        /// Queries that are answered before.
        queries: u64,
    },
    /// No answer comes any more, and the connection stays open.
    SilentAfter {
        /// Queries that are answered before.
        queries: u64,
    },
    /// Half an answer comes, then the connection is closed.
    HalfMessageAfter {
        /// Queries that are answered before.
        queries: u64,
    },
    /// Every n-th query is answered late.
    DelayEvery {
        /// How often.
        n: u64,
        /// How late, in nanoseconds.
        ns: u64,
    },
    /// The connection is refused with this error.
    RefuseStartup {
        /// SQLSTATE.
        sqlstate: [u8; 5],
        /// Text of the error.
        message: String,
    },
    /// The start-up is answered with bytes that are not the protocol.
    GarbageAtStartup,
    /// The start-up is never answered.
    SilentAtStartup,
}

/// What the caller does after it has sent the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Go on reading.
    Continue,
    /// Close the connection.
    Close,
    /// Close the connection, which was made to cancel the statement of another.
    Cancel {
        /// Of the other connection.
        process_id: i32,
        /// The request came through TLS.
        tls: bool,
    },
    /// Leave the connection open and never answer again.
    Silent,
    /// Hold this answer back.
    Delay {
        /// For how long, in nanoseconds.
        ns: u64,
    },
}

/// Appends a message whose body `fill` writes.
pub(super) fn message(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let len = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start..start + 4].copy_from_slice(&len.to_be_bytes());
}

pub(super) fn put_tag(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| {
        out.extend_from_slice(tag.as_bytes());
        out.push(0);
    });
}

fn put_row(out: &mut Vec<u8>, row: &[Option<&str>]) {
    put_count(out, row.len());
    for value in row {
        let len = value.map_or(-1, |text| i32::try_from(text.len()).unwrap_or(i32::MAX));
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(value.unwrap_or_default().as_bytes());
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}
