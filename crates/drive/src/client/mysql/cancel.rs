//! A statement is cancelled by `KILL QUERY` in a session of its own.

use std::io::{self, ErrorKind, Read, Write};

use loadstone_wire::mysql::{Event, Session};
use socket2::Socket;

use super::Mysql;
use crate::protocol::Protocol;

/// Logs in as the drive's sessions do, and says which connection's statement is to end.
pub(super) fn request(server: &Mysql, connection_id: u32, mut socket: Socket) -> io::Result<()> {
    let mut session = server
        .session()
        .map_err(|failure| io::Error::other(failure.message))?;
    wait_for(&mut session, &mut socket, |event| {
        matches!(event, Event::Ready)
    })?;
    let sql = format!("KILL QUERY {connection_id}");
    let mut frontend = session.frontend();
    frontend.query(sql.as_bytes()).map_err(io::Error::other)?;
    wait_for(&mut session, &mut socket, |event| {
        matches!(event, Event::Answered { .. })
    })?;
    session.frontend().terminate();
    send(&mut session, &mut socket)
}

/// Carries bytes both ways until that has been told.
fn wait_for(
    session: &mut Session,
    socket: &mut Socket,
    is_it: impl Fn(&Event<'_>) -> bool,
) -> io::Result<()> {
    let mut bytes = [0; 4096];
    let mut told = false;
    while !told {
        send(session, socket)?;
        let count = socket.read(&mut bytes)?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let mut refused = false;
        session
            .receive(&bytes[..count], &mut |event| {
                told |= is_it(&event);
                refused |= matches!(event, Event::Error(_));
            })
            .map_err(io::Error::other)?;
        if refused {
            return Err(ErrorKind::PermissionDenied.into());
        }
    }
    Ok(())
}

fn send(session: &mut Session, socket: &mut Socket) -> io::Result<()> {
    loop {
        let pending = session.pending().map_err(io::Error::other)?;
        if pending.is_empty() {
            return Ok(());
        }
        let count = socket.write(pending)?;
        session.consumed(count);
    }
}
