//! Runs one drive from a JSON specification on standard input and prints its account: the driver without Python.

use std::io::{Read, Write};
use std::time::Duration;

use loadstone_drive::{Drive, DriveSpec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let drive = Drive::new(DriveSpec::from_json(&text)?)?;
    drive.start()?;
    loop {
        if let Some(account) = drive.wait(Duration::from_secs(1)) {
            std::io::stdout().write_all(account?.as_bytes())?;
            return Ok(());
        }
    }
}
