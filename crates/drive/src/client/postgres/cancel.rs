//! Requests to cancel a statement.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use loadstone_wire::postgres::{Session, cancel_request, server_name, tls_request};
use rustls::{ClientConnection, StreamOwned};
use socket2::Socket;

use super::Postgres;

/// Whose statement is to be cancelled.
#[derive(Debug)]
pub(crate) struct Key {
    process_id: i32,
    secret: Box<[u8]>,
    tls: bool,
}

impl Key {
    /// `None` where the server gave no key: it cannot cancel.
    pub(super) fn of(session: &Session) -> Option<Self> {
        let (process_id, secret) = session.backend_key()?;
        Some(Self {
            process_id,
            secret: secret.into(),
            tls: session.tls_in_use(),
        })
    }
}

/// As libpq's `PQcancelBlocking`: encrypted and verified where the session was, and never plain then.
pub(super) fn request(server: &Postgres, key: &Key, mut socket: Socket) -> io::Result<()> {
    let request = cancel_request(key.process_id, &key.secret);
    if !key.tls {
        return say(&mut socket, &request);
    }
    let tls = server.tls.as_ref().ok_or(ErrorKind::Unsupported)?;
    socket.write_all(&tls_request())?;
    let mut reply = [0];
    socket.read_exact(&mut reply)?;
    if reply != *b"S" {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let name = server_name(&server.settings.host);
    let connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
    say(&mut StreamOwned::new(connection, socket), &request)
}

/// Send the request; the server closes the connection when it has passed it on.
fn say(stream: &mut (impl Read + Write), request: &[u8]) -> io::Result<()> {
    stream.write_all(request)?;
    stream.flush()?;
    match stream.read(&mut [0]) {
        // Closed without the farewell of TLS, or with the request's last bytes unread.
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}
