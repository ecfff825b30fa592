//! Connects over a blocking socket and runs one query: a check of the protocol against a real server.
//!
//! `connect tcp:HOST:PORT|unix:PATH sslmode=… user=… dbname=… password=… sslrootcert=FILE
//! channel_binding=… query=…`
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use loadstone_wire::postgres::{
    Event, Message, Password, RootCertificates, Session, Settings, TlsFiles, TransactionStatus,
};

trait Socket: Read + Write {}
impl<T: Read + Write> Socket for T {}

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .ok_or("the address is missing: tcp:HOST:PORT or unix:PATH")?;
    let (mut settings, files, query) = parse(arguments)?;
    if let Some(host) = address.strip_prefix("tcp:") {
        host.rsplit_once(':')
            .ok_or("the port is missing")?
            .0
            .clone_into(&mut settings.host);
    }
    settings.unix_socket = address.starts_with("unix:");
    // A second try is made at most once, on a new connection, as sslmode=allow and prefer say.
    let Some(settings) = talk(&address, settings, &files, &query)? else {
        return Ok(());
    };
    println!("second try with sslmode={}", settings.tls.name());
    talk(&address, settings, &files, &query).map(|_| ())
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<(Settings, TlsFiles, String), Failure> {
    let mut settings = Settings {
        application_name: "connect".to_owned(),
        ..Settings::default()
    };
    let mut files = TlsFiles::default();
    let mut query = "SELECT version()".to_owned();
    for argument in arguments {
        let (name, value) = argument.split_once('=').ok_or("arguments are name=value")?;
        match name {
            "user" => value.clone_into(&mut settings.user),
            "dbname" => value.clone_into(&mut settings.database),
            "password" => settings.password = Some(Password::new(value)),
            "sslmode" => settings.tls = value.parse()?,
            "channel_binding" => settings.channel_binding = value.parse()?,
            "sslrootcert" => files.root = Some(RootCertificates::Given(std::fs::read(value)?)),
            "sslcert" => files.client_certificate = Some(std::fs::read(value)?),
            "sslkey" => files.client_key = Some(Password::new(std::fs::read(value)?)),
            "query" => value.clone_into(&mut query),
            other => return Err(format!("{other} is unknown").into()),
        }
    }
    Ok((settings, files, query))
}

fn open(address: &str) -> Result<Box<dyn Socket>, Failure> {
    if let Some(path) = address.strip_prefix("unix:") {
        return Ok(Box::new(UnixStream::connect(path)?));
    }
    let host = address
        .strip_prefix("tcp:")
        .ok_or("the address begins with tcp: or unix:")?;
    Ok(Box::new(TcpStream::connect(host)?))
}

/// Logs in and queries; settings for a second try where one is due.
fn talk(
    address: &str,
    settings: Settings,
    files: &TlsFiles,
    query: &str,
) -> Result<Option<Settings>, Failure> {
    let mut socket = open(address)?;
    let tls = files.client_config(settings.tls)?;
    let mut session = Session::new(Arc::new(settings), Some(tls))?;
    if let Err(error) = exchange(&mut session, &mut *socket) {
        println!("failed: {error}");
        return match session.retry_settings() {
            Some(settings) => Ok(Some(settings)),
            None => Err(error),
        };
    }
    println!(
        "connected: server {:?}, process {:?}, TLS {}, log-in {:?}, channel binding {}",
        session.parameter("server_version").unwrap_or("?"),
        session.backend_key().map(|(process_id, _)| process_id),
        session.tls_in_use(),
        session.authentication(),
        session.channel_binding_used(),
    );
    session.frontend().query(query.as_bytes())?;
    exchange(&mut session, &mut *socket)?;
    let mut frontend = session.frontend();
    frontend.parse("s", b"SELECT $1::int + 1, $2::text, NULL")?;
    frontend.bind_text("s", [Some(&b"41"[..]), Some(b"text")])?;
    frontend.describe_portal();
    frontend.execute();
    frontend.close_statement("s")?;
    frontend.sync();
    exchange(&mut session, &mut *socket)?;
    session.frontend().terminate();
    send(&mut session, &mut *socket)?;
    Ok(None)
}

/// Sends what is pending and reads until the server is ready for a query.
fn exchange(session: &mut Session, socket: &mut dyn Socket) -> Result<(), Failure> {
    let mut input = vec![0; 16 * 1024];
    let mut done = false;
    send(session, socket)?;
    while !done {
        let count = socket.read(&mut input)?;
        if count == 0 {
            return Err(session.closed().into());
        }
        let outcome = session.receive(&input[..count], &mut |event| match event {
            Event::Ready | Event::Message(Message::ReadyForQuery(TransactionStatus::Idle)) => {
                done = true;
            }
            Event::Message(message) => show(message),
        });
        send(session, socket)?;
        outcome?;
    }
    Ok(())
}

fn send(session: &mut Session, socket: &mut dyn Socket) -> Result<(), Failure> {
    loop {
        let pending = session.pending()?;
        if pending.is_empty() {
            return Ok(());
        }
        let count = socket.write(pending)?;
        session.consumed(count);
    }
}

fn show(message: Message<'_>) {
    match message {
        Message::DataRow(row) => {
            let values = row.values().map(|value| match value {
                Ok(Some(text)) => String::from_utf8_lossy(text).into_owned(),
                Ok(None) => "NULL".to_owned(),
                Err(error) => error.to_string(),
            });
            println!("  row: {}", values.collect::<Vec<_>>().join(" | "));
        }
        Message::ParameterStatus => {}
        Message::CommandComplete(tag) => println!("  done: {}", String::from_utf8_lossy(tag)),
        Message::RowDescription(columns) => println!("  {} columns", columns.len()),
        other => println!("  {other:?}"),
    }
}
