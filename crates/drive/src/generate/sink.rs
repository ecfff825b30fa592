//! Where bytes go: a new file that is complete or not there, or one that is open already.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::OutputSpec;
use crate::error::DriveError;
use crate::files::duplicate;

/// A pipe's buffer as we want it: fewer changes of context.
const PIPE_BYTES: i32 = 1 << 20;

/// A file under construction.
pub(super) struct Sink {
    file: File,
    name: String,
    bytes: u64,
    /// What happens to it when it cannot be completed.
    fate: &'static str,
    /// What is renamed to what at the end.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Sink {
    /// The new file that `output` names, or the open one: standard output unless it says another.
    pub(super) fn open(output: &OutputSpec) -> Result<Self, DriveError> {
        match &output.path {
            Some(path) => Self::create(path, output.overwrite),
            None => Self::from_fd(output.fd.unwrap_or(1)),
        }
    }

    /// A new file at `path`; until [`Sink::finish`] it is called `path` with `.part` behind it.
    ///
    /// Devices and named pipes are written to as they are.
    fn create(path: &Path, overwrite: bool) -> Result<Self, DriveError> {
        let name = path.display().to_string();
        if is_special(path) {
            let file = OpenOptions::new().write(true).open(path);
            return Ok(Self::opened(
                file.map_err(|source| cannot(&name, source))?,
                name,
            ));
        }
        refuse_existing(path, overwrite)?;
        let part = sibling(path, ".part");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&part)
            .map_err(|source| cannot(&part.display().to_string(), source))?;
        lock(&file, &part)?;
        file.set_len(0).map_err(|source| cannot(&name, source))?;
        Ok(Self {
            file,
            name,
            bytes: 0,
            fate: "; the incomplete file was removed",
            rename: Some((part, path.to_owned())),
        })
    }

    /// A file that our caller has opened.
    fn from_fd(fd: i32) -> Result<Self, DriveError> {
        let name = match fd {
            1 => "standard output".to_owned(),
            fd => format!("file descriptor {fd}"),
        };
        let file = duplicate(fd).map_err(|source| cannot(&name, source))?;
        Ok(Self::opened(file, name))
    }

    fn opened(file: File, name: String) -> Self {
        // Not every file is a pipe, and not every user may have such a buffer: it is only a wish.
        let _ = fcntl(&file, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES));
        Self {
            file,
            name,
            bytes: 0,
            fate: "",
            rename: None,
        }
    }

    /// Writes all of it, in as few calls as the system lets us.
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<(), DriveError> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(written) => {
                    self.bytes += written as u64;
                    bytes = &bytes[written..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait()?,
                Err(error) => return Err(self.trouble(error)),
            }
        }
        Ok(())
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the complete file its name.
    pub(super) fn finish(mut self) -> Result<(), DriveError> {
        if let Some((part, path)) = self.rename.take() {
            let done = self
                .file
                .sync_data()
                .and_then(|()| fs::rename(&part, &path));
            return done.map_err(|source| {
                drop(fs::remove_file(&part));
                self.trouble(source)
            });
        }
        Ok(())
    }

    /// Somebody else made our output non-blocking: wait until it takes more.
    fn wait(&self) -> Result<(), DriveError> {
        let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(self.trouble(error.into())),
        }
    }

    fn trouble(&self, source: io::Error) -> DriveError {
        DriveError::System {
            what: format!("writing {} after {} bytes", self.name, self.bytes),
            hint: format!("check that the disk has enough space{}", self.fate),
            source,
        }
    }
}

/// A new folder of files, complete or not there.
pub(super) struct Folder {
    sinks: Vec<Sink>,
    path: PathBuf,
    /// What the folder is called until it is complete.
    part: Option<PathBuf>,
}

impl Folder {
    /// A folder with files of these names. One that is there is replaced only when it holds nothing else.
    pub(super) fn create(
        path: &Path,
        names: Vec<String>,
        overwrite: bool,
    ) -> Result<Self, DriveError> {
        let mut folder = Self::begin(path, &names, overwrite)?;
        for name in names {
            folder.open(&name)?;
        }
        Ok(folder)
    }

    /// The same with no file yet.
    pub(super) fn begin(
        path: &Path,
        names: &[String],
        overwrite: bool,
    ) -> Result<Self, DriveError> {
        refuse_existing(path, overwrite)?;
        refuse_others(path, names)?;
        let part = sibling(path, ".part");
        fs::create_dir(&part).map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => DriveError::bad_spec(
                format!(
                    "{} exists: another process is writing it, or one was killed",
                    part.display()
                ),
                "remove it, or choose another folder",
            ),
            _ => cannot(&part.display().to_string(), source),
        })?;
        Ok(Self {
            sinks: Vec::new(),
            path: path.to_owned(),
            part: Some(part),
        })
    }

    fn open(&mut self, name: &str) -> Result<(), DriveError> {
        let part = self.part.as_deref().unwrap_or(&self.path).join(name);
        let file = File::create_new(part).map_err(|e| cannot(name, e))?;
        let mut sink = Sink::opened(file, self.path.join(name).display().to_string());
        sink.fate = "; the incomplete folder was removed";
        self.sinks.push(sink);
        Ok(())
    }

    /// Begins a file in the place of the one before, which is complete: one at a time, however many there are.
    pub(super) fn turn_to(&mut self, name: &str) -> Result<(), DriveError> {
        for sink in self.sinks.drain(..) {
            sink.file.sync_data().map_err(|e| sink.trouble(e))?;
        }
        self.open(name)
    }

    /// Number of files.
    pub(super) fn files(&self) -> usize {
        self.sinks.len()
    }

    /// Writes to the file of this number.
    pub(super) fn write(&mut self, file: usize, bytes: &[u8]) -> Result<(), DriveError> {
        self.sinks[file].write(bytes)
    }

    /// Gives the complete folder its name.
    pub(super) fn finish(mut self) -> Result<(), DriveError> {
        for sink in &self.sinks {
            sink.file.sync_data().map_err(|e| sink.trouble(e))?;
        }
        let name = self.path.display().to_string();
        let Some(part) = &self.part else {
            return Ok(());
        };
        if self.path.is_dir() {
            // `create` has seen that it holds nothing but an older data set.
            fs::remove_dir_all(&self.path).map_err(|source| cannot(&name, source))?;
        }
        fs::rename(part, &self.path).map_err(|source| cannot(&name, source))?;
        self.part = None;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            drop(fs::remove_dir_all(part));
        }
    }
}

/// A folder with other things in it is not ours to replace.
fn refuse_others(path: &Path, names: &[String]) -> Result<(), DriveError> {
    let refuse = |what: &Path| {
        Err(DriveError::bad_spec(
            format!("{} is not a file of this data set", what.display()),
            "choose a new folder: one with other files in it is not replaced",
        ))
    };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotADirectory => return refuse(path),
        Err(error) => return Err(cannot(&path.display().to_string(), error)),
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !names.iter().any(|known| name == known.as_str()) {
            return refuse(&entry.path());
        }
    }
    Ok(())
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some((part, _)) = &self.rename {
            drop(fs::remove_file(part));
        }
    }
}

/// The path with something behind its last name.
pub(super) fn sibling(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
}

/// Unless it may be overwritten, what is there stays.
pub(super) fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), DriveError> {
    if !overwrite && path.symlink_metadata().is_ok() {
        return Err(DriveError::bad_spec(
            format!("{} already exists", path.display()),
            "choose a new one, or allow it to be overwritten",
        ));
    }
    Ok(())
}

fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| {
        let kind = found.file_type();
        kind.is_char_device() || kind.is_fifo() || kind.is_block_device() || kind.is_socket()
    })
}

/// Two that write the same file would mix their bytes.
fn lock(file: &File, part: &Path) -> Result<(), DriveError> {
    match file.try_lock() {
        // A file system without locks has none to respect.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(DriveError::bad_spec(
            format!("{} is being written by another process", part.display()),
            "wait for it, or choose another file",
        )),
    }
}

fn cannot(name: &str, source: io::Error) -> DriveError {
    DriveError::System {
        what: format!("opening {name}"),
        source,
        hint: "choose a file that can be written".to_owned(),
    }
}
