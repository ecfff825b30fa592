//! The backing directory: what is durable, as ordinary files.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::{AT_FDCWD, Flock, FlockArg};
use nix::sys::stat::{Mode, SFlag, UtimensatFlags, mknod, utimensat};
use nix::sys::statvfs::{Statvfs, statvfs};
use nix::sys::time::TimeSpec;

use crate::attr::{Attr, Kind};
use crate::inode::Inode;
use crate::pages::{Flush, PAGE, length};
use crate::tree::{STORE, Step};

/// Pages that are written by one call.
const RUN: usize = 256;

/// The directory, which no other power disk can have at the same time.
#[derive(Debug)]
pub(crate) struct Backing {
    root: PathBuf,
    _lock: Flock<File>,
}

/// What was found in it.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it is.
    pub(crate) kind: Kind,
    /// Owner, permissions, times.
    pub(crate) attr: Attr,
    /// Bytes.
    pub(crate) size: u64,
    /// Device and inode, for hard links.
    pub(crate) identity: (u64, u64),
    /// Where a symbolic link points to.
    pub(crate) target: PathBuf,
}

impl Backing {
    /// Take the directory; removes what an earlier power disk left in its store.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let lock = Flock::lock(File::open(root)?, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, error)| io::Error::from(error))?;
        let backing = Self {
            root: root.to_owned(),
            _lock: lock,
        };
        backing.empty_store()?;
        Ok(backing)
    }

    fn path(&self, relative: &Path) -> PathBuf {
        self.root.join(relative)
    }

    /// Remove what nobody refers to any more.
    pub(crate) fn empty_store(&self) -> io::Result<()> {
        self.remove_store()?;
        fs::DirBuilder::new()
            .mode(0o700)
            .create(self.path(Path::new(STORE)))
    }

    /// Remove the store, at the end.
    pub(crate) fn remove_store(&self) -> io::Result<()> {
        match fs::remove_dir_all(self.path(Path::new(STORE))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Names of a directory and what they are; the store is left out.
    pub(crate) fn list(&self, relative: &Path) -> io::Result<Vec<(std::ffi::OsString, Found)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path(relative))? {
            let name = entry?.file_name();
            if !(relative.as_os_str().is_empty() && name == STORE) {
                let what = self.look(&relative.join(&name))?;
                found.push((name, what));
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// What is at a path.
    pub(crate) fn look(&self, relative: &Path) -> io::Result<Found> {
        let path = self.path(relative);
        let meta = fs::symlink_metadata(&path)?;
        let kind = kind_of(meta.mode());
        let target = match kind {
            Kind::Symlink => fs::read_link(&path)?,
            _ => PathBuf::new(),
        };
        Ok(Found {
            kind,
            attr: Attr {
                mode: meta.mode() & 0o7777,
                uid: meta.uid(),
                gid: meta.gid(),
                atime: moment(meta.atime(), meta.atime_nsec()),
                mtime: moment(meta.mtime(), meta.mtime_nsec()),
                ctime: moment(meta.ctime(), meta.ctime_nsec()),
            },
            size: meta.len(),
            identity: (meta.dev(), meta.ino()),
            target,
        })
    }

    /// Open a file for reading and writing.
    pub(crate) fn file(&self, relative: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW);
        options.open(self.path(relative))
    }

    /// Do one step; `inode` is the one that a `Make` names.
    pub(crate) fn step(&self, step: &Step, inode: Option<&Inode>) -> io::Result<()> {
        match step {
            Step::Make(_, at) => inode.map_or(Ok(()), |inode| Self::make(inode, &self.path(at))),
            Step::Link(from, to) => fs::hard_link(self.path(from), self.path(to)),
            Step::Move(from, to) => fs::rename(self.path(from), self.path(to)),
            Step::Remove(at, Kind::Directory) => fs::remove_dir(self.path(at)),
            Step::Remove(at, _) => fs::remove_file(self.path(at)),
        }
    }

    fn make(inode: &Inode, at: &Path) -> io::Result<()> {
        match inode.kind {
            Kind::File => {
                let mut options = OpenOptions::new();
                options.write(true).create_new(true).mode(0o600).open(at)?;
            }
            Kind::Directory => fs::DirBuilder::new().mode(0o700).create(at)?,
            Kind::Symlink => symlink(&inode.target, at)?,
            Kind::Special(bits) => {
                mknod(at, SFlag::from_bits_truncate(bits), Mode::S_IRUSR, 0)?;
            }
        }
        let mut body = inode.body.write();
        body.kept = body.attr;
        let attr = body.attr;
        drop(body);
        set_attr(at, inode.kind, &attr)
    }

    /// Give a path's inode its attributes.
    pub(crate) fn set_attr(&self, relative: &Path, kind: Kind, attr: &Attr) -> io::Result<()> {
        set_attr(&self.path(relative), kind, attr)
    }

    /// Sync a directory.
    pub(crate) fn sync_directory(&self, relative: &Path) -> io::Result<()> {
        File::open(self.path(relative))?.sync_all()
    }

    /// Room on the file system.
    pub(crate) fn room(&self) -> io::Result<Statvfs> {
        Ok(statvfs(&self.root)?)
    }
}

/// Write a flush into its file.
pub(crate) fn write(file: &File, flush: &Flush) -> io::Result<()> {
    let len = file.metadata()?.len();
    if len > flush.floor {
        file.set_len(flush.floor)?;
    }
    let mut buffer = Vec::new();
    for run in flush.pages.chunk_by(|one, next| one.0 + 1 == next.0) {
        for part in run.chunks(RUN) {
            let start = part[0].0 * PAGE as u64;
            buffer.clear();
            for (_, page) in part {
                buffer.extend_from_slice(&page[..]);
            }
            buffer.truncate(length(flush.len.saturating_sub(start)));
            file.write_all_at(&buffer, start)?;
        }
    }
    if file.metadata()?.len() != flush.len {
        file.set_len(flush.len)?;
    }
    Ok(())
}

/// Fill a buffer from an offset of a file; zeros where it ends.
pub(crate) fn read(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64)? {
            0 => break,
            count => done += count,
        }
    }
    Ok(())
}

/// Sync a file's content, and its attributes unless `data` alone is wanted.
pub(crate) fn sync(file: &File, data: bool) -> io::Result<()> {
    if data {
        file.sync_data()
    } else {
        file.sync_all()
    }
}

/// Give an open file its attributes.
pub(crate) fn set_file_attr(file: &File, attr: &Attr) -> io::Result<()> {
    let meta = file.metadata()?;
    own(&meta, attr, |uid, gid| {
        std::os::unix::fs::fchown(file, uid, gid)
    })?;
    if meta.mode() & 0o7777 != attr.mode {
        file.set_permissions(Permissions::from_mode(attr.mode))?;
    }
    let times = FileTimes::new().set_accessed(attr.atime);
    file.set_times(times.set_modified(attr.mtime))
}

fn set_attr(path: &Path, kind: Kind, attr: &Attr) -> io::Result<()> {
    own(&fs::symlink_metadata(path)?, attr, |uid, gid| {
        lchown(path, uid, gid)
    })?;
    if kind != Kind::Symlink {
        fs::set_permissions(path, Permissions::from_mode(attr.mode))?;
    }
    let (atime, mtime) = (spec(attr.atime), spec(attr.mtime));
    Ok(utimensat(
        AT_FDCWD,
        path,
        &atime,
        &mtime,
        UtimensatFlags::NoFollowSymlink,
    )?)
}

/// Change the owner where it is another one: without being root one may not even set what is set.
fn own(
    meta: &fs::Metadata,
    attr: &Attr,
    change: impl FnOnce(Option<u32>, Option<u32>) -> io::Result<()>,
) -> io::Result<()> {
    if (meta.uid(), meta.gid()) == (attr.uid, attr.gid) {
        return Ok(());
    }
    change(Some(attr.uid), Some(attr.gid))
}

fn kind_of(mode: u32) -> Kind {
    match mode & libc::S_IFMT {
        libc::S_IFREG => Kind::File,
        libc::S_IFDIR => Kind::Directory,
        libc::S_IFLNK => Kind::Symlink,
        other => Kind::Special(other),
    }
}

fn moment(seconds: i64, nanos: i64) -> SystemTime {
    let nanos = Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 {
        UNIX_EPOCH - whole
    } else {
        UNIX_EPOCH + whole
    };
    at + nanos
}

fn spec(time: SystemTime) -> TimeSpec {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => TimeSpec::from(since),
        Err(before) => -TimeSpec::from(before.duration()),
    }
}
