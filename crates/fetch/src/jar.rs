//! Jars that are used as they are: one file, whole or not at all.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::FetchError;
use crate::source::{Artifact, Sums};
use crate::unpack::Site;

/// Download and verify the jar of Maven coordinates (`org.questdb:questdb:9.3.4`) into the file `destination`.
///
/// A file that exists is returned as it is, without any network. `mirror` is the base address of a Maven
/// repository, a folder of jars, or a jar; `None` is the public repository.
pub fn fetch_jar(
    coordinates: &str,
    destination: &Path,
    mirror: Option<&str>,
) -> Result<PathBuf, FetchError> {
    fetch_jar_while(coordinates, destination, mirror, &mut || true)
}

/// As [`fetch_jar`], asking `go_on` ten times a second while it waits for the network or another process.
pub fn fetch_jar_while(
    coordinates: &str,
    destination: &Path,
    mirror: Option<&str>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<PathBuf, FetchError> {
    let artifact = Artifact::at(coordinates)?;
    if destination.is_file() {
        return Ok(destination.to_owned());
    }
    let jar = artifact.jar();
    let site = Site::new(&jar, destination)?;
    let _lock = site.lock(go_on)?;
    if !destination.is_file() {
        let bytes = artifact.read(mirror, Sums::Strongest, go_on)?;
        site.keep(&bytes)?;
    }
    Ok(destination.to_owned())
}

impl Site<'_> {
    /// Write beside the destination and rename as the last step. Needs the lock.
    pub(crate) fn keep(&self, bytes: &[u8]) -> Result<(), FetchError> {
        self.remove_leftovers();
        let trouble = |error| self.trouble(self.destination(), error);
        let mut partial = tempfile::Builder::new()
            .prefix(&self.partial_prefix())
            .tempfile_in(self.parent())
            .map_err(trouble)?;
        partial.write_all(bytes).map_err(trouble)?;
        partial.as_file().sync_all().map_err(trouble)?;
        let kept = partial
            .persist(self.destination())
            .map_err(|failed| self.trouble(self.destination(), failed.error))?;
        drop(kept);
        crate::unpack::add_mode(self.destination(), 0o444).map_err(trouble)
    }
}

/// Remove a file or folder; one that cannot be removed costs space and harms nobody.
pub(crate) fn remove(path: &Path) {
    drop(fs::remove_file(path).or_else(|_| fs::remove_dir_all(path)));
}
