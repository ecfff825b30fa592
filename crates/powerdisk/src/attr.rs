//! What an inode is, apart from its bytes.

use std::time::SystemTime;

/// The kinds of inodes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe or a socket: its `S_IFMT` bits.
    Special(u32),
}

/// Owner, permissions and times of an inode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attr {
    /// The permission bits, `0o7777` at most.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Last access, as far as it is set by programs; reads do not change it.
    pub atime: SystemTime,
    /// Last change of the content.
    pub mtime: SystemTime,
    /// Last change of content or attributes.
    pub ctime: SystemTime,
}

impl Attr {
    /// The attributes of an inode that is made now.
    #[must_use]
    pub fn new(mode: u32, uid: u32, gid: u32) -> Self {
        let now = now();
        Self {
            mode: mode & 0o7777,
            uid,
            gid,
            atime: now,
            mtime: now,
            ctime: now,
        }
    }
}

/// The wall clock, which file times are of.
#[must_use]
pub fn now() -> SystemTime {
    #[expect(
        clippy::disallowed_methods,
        reason = "times of files are wall clock; nothing is measured by them"
    )]
    SystemTime::now()
}

/// What programs see of an inode.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    /// Its number, which is never given to another inode.
    pub id: u64,
    /// What it is.
    pub kind: Kind,
    /// Owner, permissions, times.
    pub attr: Attr,
    /// Bytes.
    pub size: u64,
    /// How many names it has; 1 for a directory, which means that nobody counts.
    pub links: u32,
}

/// What `chmod`, `chown`, `truncate` and `utimensat` change; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Change {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SystemTime>,
    /// Last change of the content.
    pub mtime: Option<SystemTime>,
}
