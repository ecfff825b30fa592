//! From the specification of a connection to a socket that is being connected.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::DriveError;
use crate::protocol::Protocol;
use crate::spec::Connection;

/// Where the server is, and how one speaks to it.
#[derive(Debug)]
pub(crate) struct Connector<P> {
    pub(crate) endpoint: Endpoint,
    pub(crate) protocol: P,
    /// Other servers, which clients take in turns with this one.
    others: Vec<Self>,
}

impl<P: Protocol> Connector<P> {
    /// Resolve the address, and check the settings.
    pub(crate) fn new(connection: &Connection) -> Result<Self, DriveError> {
        Self::of_all(connection, Endpoint::resolve::<P>)
    }

    /// The same for clients that connect when they want to: that the address is unknown is theirs to hear.
    pub(crate) fn late(connection: &Connection) -> Result<Self, DriveError> {
        Self::of_all(connection, |connection| {
            match Endpoint::resolve::<P>(connection) {
                Err(DriveError::Connect {
                    address, message, ..
                }) => Ok(Endpoint {
                    unknown: Some(message),
                    ..Endpoint::unix(address)?
                }),
                resolved => resolved,
            }
        })
    }

    fn of_all(
        connection: &Connection,
        resolve: impl Fn(&Connection) -> Result<Endpoint, DriveError>,
    ) -> Result<Self, DriveError> {
        let one = |connection: &Connection| -> Result<Self, DriveError> {
            let endpoint = resolve(connection)?;
            let protocol = P::new(connection, endpoint.unix)?;
            let others = Vec::new();
            Ok(Self {
                endpoint,
                protocol,
                others,
            })
        };
        let mut connector = one(connection)?;
        for (host, port) in &connection.also {
            let mut connection = connection.clone();
            (connection.host, connection.port) = (host.clone(), *port);
            connector.others.push(one(&connection)?);
        }
        Ok(connector)
    }

    /// The server of those that take this turn.
    pub(crate) fn in_turn(&self, turn: u32) -> &Self {
        match turn as usize % (self.others.len() + 1) {
            0 => self,
            other => &self.others[other - 1],
        }
    }
}

/// An address that has been resolved once, so that no client waits for a name server.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    address: SockAddr,
    domain: Domain,
    /// For messages.
    pub(crate) text: String,
    /// The folder of a unix socket was given.
    unix: bool,
    /// Why nothing can be reached.
    unknown: Option<String>,
}

/// What a connection attempt came to at once.
pub(crate) enum Attempt {
    /// Connected, or on the way: the socket's writability tells.
    Started(Socket),
    /// The server's queue is full: try again shortly.
    Busy,
}

impl Endpoint {
    /// Resolve; of several addresses the first that accepts a connection is taken, as libpq does.
    fn resolve<P: Protocol>(connection: &Connection) -> Result<Self, DriveError> {
        if connection.host.starts_with('/') {
            return Self::unix(P::unix_socket(&connection.host, connection.port));
        }
        let text = format!("{}:{}", connection.host, connection.port);
        let failed = |message: String| DriveError::Connect {
            address: text.clone(),
            message,
            hint: "check the host's name and the port in the target".to_owned(),
        };
        let found: Vec<SocketAddr> = (connection.host.as_str(), connection.port)
            .to_socket_addrs()
            .map_err(|error| failed(error.to_string()))?
            .collect();
        let timeout = Duration::from_secs_f64(connection.connect_timeout_s);
        let first = match found.as_slice() {
            [] => return Err(failed("the name has no address".to_owned())),
            [only] => *only,
            [first, ..] => found
                .iter()
                .copied()
                .find(|a| TcpStream::connect_timeout(a, timeout).is_ok())
                .unwrap_or(*first),
        };
        Ok(Self {
            address: first.into(),
            domain: Domain::for_address(first),
            text,
            unix: false,
            unknown: None,
        })
    }

    fn unix(text: String) -> Result<Self, DriveError> {
        let address = SockAddr::unix(&text).map_err(|error| DriveError::Connect {
            address: text.clone(),
            message: error.to_string(),
            hint: "the path of a unix socket may have at most 107 bytes: use a shorter folder"
                .to_owned(),
        })?;
        Ok(Self {
            address,
            domain: Domain::UNIX,
            text,
            unix: true,
            unknown: None,
        })
    }

    /// Connect, waiting for at most `limit` for it and for each later step on the socket.
    pub(crate) fn connect_within(&self, limit: Duration) -> io::Result<Socket> {
        let socket = Socket::new(self.domain, Type::STREAM.cloexec(), None)?;
        socket.set_read_timeout(Some(limit))?;
        // Linux bounds a connect by it too, also one to a unix socket whose queue is full.
        socket.set_write_timeout(Some(limit))?;
        socket.connect(&self.address)?;
        Ok(socket)
    }

    /// Begin to connect; never waits.
    pub(crate) fn connect(&self) -> io::Result<Attempt> {
        if let Some(why) = &self.unknown {
            return Err(io::Error::other(why.clone()));
        }
        let socket = Socket::new(self.domain, Type::STREAM.cloexec().nonblocking(), None)?;
        if !self.unix {
            socket.set_tcp_nodelay(true)?;
        }
        match socket.connect(&self.address) {
            Ok(()) => Ok(Attempt::Started(socket)),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINPROGRESS) => Ok(Attempt::Started(socket)),
                // A unix socket whose queue is full says EAGAIN at once.
                Some(libc::EAGAIN) => Ok(Attempt::Busy),
                _ => Err(error),
            },
        }
    }
}
