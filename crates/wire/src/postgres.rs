//! The PostgreSQL frontend/backend protocol, version 3.0.
//!
//! [`Session`] is the client's side, [`Responder`] a server's side that answers at once.
//! Source of the formats: PostgreSQL's documentation, chapter "Frontend/Backend Protocol".

mod auth;
mod backend;
pub mod bulk;
mod certificate;
mod error;
mod frontend;
mod parameters;
mod responder;
mod scram_server;
mod server_error;
mod session;
mod settings;
mod sha256_challenge;
mod startup;
pub(crate) mod tls;

pub use auth::Authentication;
pub use backend::{
    Column, Columns, DataRow, Message, RowDescription, TransactionStatus, Values, decode,
};
pub use error::WireError;
pub use frontend::{Frontend, cancel_request, tls_request};
pub use responder::{Action, Behaviour, Fault, Reply, Responder, ResponderAuth, ServerTls};
pub use rustls::ClientConfig;
pub use server_error::{ServerError, ServerErrorOwned};
pub use session::{Event, Session};
pub use settings::{ChannelBinding, Password, Settings, TlsMode};
pub use tls::{RootCertificates, TlsError, TlsFiles, server_name};
