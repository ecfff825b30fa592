//! The disk: operations of programs on names and bytes, syncs, and the loss.
//!
//! Locks are taken in this order: gate, an inode's `flushing`, tree, table of inodes, an inode's `body` and `file`.
//! Nothing but `flushing` (and the gate, which only a loss closes) is held while a backing file is written or synced.

mod bytes;
mod loss;
mod names;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use serde::Serialize;

use crate::attr::{Kind, Stat};
use crate::backing::Backing;
use crate::inode::Inode;
use crate::tree::{Key, ROOT, Step, Tree, errno};

pub use loss::{Loss, Lost, Refused, Stale};
pub use names::New;

/// How a disk behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only a sync of the directory makes a name durable, as POSIX says; else a sync of the file does it too, and
    /// a sync makes the directories above durable, as with ext4, XFS and btrfs.
    pub strict: bool,
    /// So many unsynced bytes at most; above them the oldest are written back.
    pub most_unsynced_bytes: u64,
}

/// What has happened, and how much is unsynced.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counters {
    /// Calls that read.
    pub reads: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
    /// Syncs of files and directories, and writes that were synced at once.
    pub fsyncs: u64,
    /// Bytes in pages that are not durable now.
    pub unsynced_bytes: u64,
    /// Names that a loss would change now.
    pub unsynced_names: u64,
    /// Bytes that were written back because there were too many: durable by luck.
    pub written_back_bytes: u64,
    /// How often everything unsynced was lost.
    pub losses: u64,
    /// Files and directories that processes have open now.
    pub open_files: u64,
    /// Why the backing directory no longer is what it should be; empty when all is well.
    pub broken: String,
}

#[derive(Debug, Default)]
struct Counts {
    reads: AtomicU64,
    read_bytes: AtomicU64,
    writes: AtomicU64,
    written_bytes: AtomicU64,
    fsyncs: AtomicU64,
    unsynced: AtomicU64,
    written_back: AtomicU64,
    losses: AtomicU64,
}

/// Inodes with unsynced bytes, the oldest first.
#[derive(Debug, Default)]
struct Queue {
    next: u64,
    inodes: BTreeMap<u64, u64>,
}

/// A disk whose durable content is a directory of ordinary files.
#[derive(Debug)]
pub struct Disk {
    backing: Backing,
    options: Options,
    gate: RwLock<()>,
    tree: Mutex<Tree>,
    inodes: RwLock<BTreeMap<u64, Arc<Inode>>>,
    queue: Mutex<Queue>,
    counts: Counts,
    opened: Mutex<u64>,
    closed: Condvar,
    broken: Mutex<String>,
}

impl Disk {
    /// The disk over the files of a directory, all of which are durable.
    pub fn open(backing: &Path, options: Options) -> io::Result<Self> {
        let disk = Self {
            backing: Backing::open(backing)?,
            options,
            gate: RwLock::default(),
            tree: Mutex::default(),
            inodes: RwLock::default(),
            queue: Mutex::default(),
            counts: Counts::default(),
            opened: Mutex::default(),
            closed: Condvar::new(),
            broken: Mutex::default(),
        };
        disk.load()?;
        Ok(disk)
    }

    /// Read the names of the backing directory.
    fn load(&self) -> io::Result<()> {
        let root = self.backing.look(Path::new(""))?;
        if root.kind != Kind::Directory {
            return Err(errno(libc::ENOTDIR));
        }
        let mut inodes = self.inodes.write();
        let of_root = Inode::new(ROOT, Kind::Directory, root.attr, 0, PathBuf::new());
        inodes.insert(ROOT, Arc::new(of_root));
        let mut tree = self.tree.lock();
        let mut known = BTreeMap::new();
        let mut open = vec![(ROOT, PathBuf::new())];
        while let Some((parent, path)) = open.pop() {
            for (name, found) in self.backing.list(&path)? {
                let linked = known.get(&found.identity).copied();
                let id = tree.load(parent, &name, found.kind, linked)?;
                if found.kind == Kind::Directory {
                    open.push((id, path.join(&name)));
                } else {
                    known.insert(found.identity, id);
                }
                if linked.is_none() {
                    let inode = Inode::new(id, found.kind, found.attr, found.size, found.target);
                    inodes.insert(id, Arc::new(inode));
                }
            }
        }
        Ok(())
    }

    fn inode(&self, id: u64) -> io::Result<Arc<Inode>> {
        let inodes = self.inodes.read();
        inodes.get(&id).cloned().ok_or_else(|| errno(libc::ESTALE))
    }

    /// What has happened up to now.
    pub fn counters(&self) -> Counters {
        let counts = &self.counts;
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counters {
            reads: get(&counts.reads),
            read_bytes: get(&counts.read_bytes),
            writes: get(&counts.writes),
            written_bytes: get(&counts.written_bytes),
            fsyncs: get(&counts.fsyncs),
            unsynced_bytes: get(&counts.unsynced),
            unsynced_names: self.tree.lock().unsynced() as u64,
            written_back_bytes: get(&counts.written_back),
            losses: get(&counts.losses),
            open_files: *self.opened.lock(),
            broken: self.broken.lock().clone(),
        }
    }

    /// Room on the file system of the backing directory.
    pub fn room(&self) -> io::Result<nix::sys::statvfs::Statvfs> {
        self.backing.room()
    }

    /// What programs see of an inode.
    pub fn stat(&self, id: u64) -> io::Result<Stat> {
        let _gate = self.gate.read();
        self.stat_of(&*self.inode(id)?)
    }

    fn stat_of(&self, inode: &Inode) -> io::Result<Stat> {
        let links = self.tree.lock().facts(inode.id)?.1;
        Ok(inode.stat(links))
    }

    /// Do steps in the backing directory, with the tree locked.
    fn apply(&self, tree: &mut Tree, steps: &[Step]) -> io::Result<()> {
        for step in steps {
            let inode = match step {
                Step::Make(id, _) => Some(self.inode(*id)?),
                _ => None,
            };
            if let Err(error) = self.backing.step(step, inode.as_deref()) {
                *self.broken.lock() = format!("{step:?}: {error}");
                return Err(error);
            }
        }
        self.drop_gone(tree);
        Ok(())
    }

    /// Forget the inodes of nodes that ended.
    fn drop_gone(&self, tree: &mut Tree) {
        for id in tree.take_gone() {
            let inode = self.inodes.write().remove(&id);
            if let Some(inode) = inode {
                self.drop_bytes(&inode);
            }
        }
    }

    /// An operation failed half-way in the backing directory: nothing that is synced now would be what it says.
    fn check_whole(&self) -> io::Result<()> {
        if self.broken.lock().is_empty() {
            Ok(())
        } else {
            Err(errno(libc::EIO))
        }
    }

    /// Make keys durable.
    fn commit(&self, keys: impl FnOnce(&Tree) -> Vec<Key>) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let keys = keys(&tree);
        let steps = tree.commit(keys)?;
        self.apply(&mut tree, &steps)
    }

    /// The backing file of an inode, which is made if need be.
    fn file(&self, inode: &Inode) -> io::Result<Arc<File>> {
        if let Some(file) = &*inode.file.lock() {
            return Ok(Arc::clone(file));
        }
        let mut tree = self.tree.lock();
        let steps = tree.make(inode.id)?;
        self.apply(&mut tree, &steps)?;
        let place = tree.place(inode.id).ok_or_else(|| errno(libc::ESTALE))?;
        let mut slot = inode.file.lock();
        match &*slot {
            Some(file) => Ok(Arc::clone(file)),
            None => Ok(Arc::clone(
                slot.insert(Arc::new(self.backing.file(&place)?)),
            )),
        }
    }

    /// Open the backing file of an inode that has one.
    fn ready(&self, inode: &Inode) -> io::Result<()> {
        if inode.file.lock().is_some() {
            return Ok(());
        }
        let place = self.tree.lock().place(inode.id);
        place.map_or(Ok(()), |_| self.file(inode).map(drop))
    }

    /// Close the backing file of an inode that nobody has open.
    fn rest(inode: &Inode) {
        let mut file = inode.file.lock();
        if !inode.is_open() {
            *file = None;
        }
    }
}
