//! Runs the built-in server as the first line of standard input asks (JSON), prints its port,
//! and serves until another line comes or the input ends.

use std::io::{BufRead, Write};

use loadstone_drive::null_server::{NullServer, NullSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let spec = lines
        .next()
        .ok_or("give the specification in one line of JSON")??;
    let server = NullServer::from_spec(&NullSpec::from_json(&spec)?)?;
    writeln!(std::io::stdout(), "{}", server.port())?;
    let _ = lines.next();
    Ok(())
}
