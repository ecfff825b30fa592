//! Making, finding, renaming and removing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::Disk;
use crate::attr::{Attr, Kind, Stat};
use crate::inode::Inode;
use crate::tree::{Key, Tree};

/// An inode that is to be made.
#[derive(Debug)]
pub struct New {
    /// What it is.
    pub kind: Kind,
    /// Owner and permissions.
    pub attr: Attr,
    /// Where a symbolic link points to.
    pub target: PathBuf,
}

impl Disk {
    /// Find a name; the caller has a reference to the node then, which `forget` takes away.
    pub fn lookup(&self, parent: u64, name: &OsStr) -> io::Result<Stat> {
        let _gate = self.gate.read();
        let mut tree = self.tree.lock();
        let id = tree.find(parent, name)?;
        self.refer(&mut tree, id)
    }

    /// Count a reference, and say what it is to.
    fn refer(&self, tree: &mut Tree, id: u64) -> io::Result<Stat> {
        let inode = self.inode(id)?;
        tree.pin(id);
        Ok(inode.stat(tree.facts(id)?.1))
    }

    /// The caller has so many references less.
    pub fn forget(&self, id: u64, count: u64) -> io::Result<()> {
        let _gate = self.gate.read();
        self.unpin(id, count)
    }

    pub(super) fn unpin(&self, id: u64, count: u64) -> io::Result<()> {
        let mut tree = self.tree.lock();
        let steps = tree.unpin(id, count)?;
        self.apply(&mut tree, &steps)
    }

    /// Make a node with a name; the caller has a reference to it.
    pub fn create(&self, parent: u64, name: &OsStr, new: New) -> io::Result<Stat> {
        let _gate = self.gate.read();
        let above = self.inode(parent)?;
        let mut tree = self.tree.lock();
        let id = tree.create(parent, name, new.kind)?;
        let attr = inherit(new.attr, new.kind, above.body.read().attr);
        let inode = Inode::new(id, new.kind, attr, 0, new.target);
        self.inodes.write().insert(id, Arc::new(inode));
        above.body.write().touch();
        self.refer(&mut tree, id)
    }

    /// Give a file one more name; the caller has one more reference to it.
    pub fn link(&self, id: u64, parent: u64, name: &OsStr) -> io::Result<Stat> {
        let _gate = self.gate.read();
        let mut tree = self.tree.lock();
        tree.link(id, parent, name)?;
        self.inode(parent)?.body.write().touch();
        self.refer(&mut tree, id)
    }

    /// Where a symbolic link points to.
    pub fn target(&self, id: u64) -> io::Result<PathBuf> {
        let _gate = self.gate.read();
        Ok(self.inode(id)?.target.clone())
    }

    /// Remove the name of a directory, or of anything else.
    pub fn remove(&self, parent: u64, name: &OsStr, directory: bool) -> io::Result<()> {
        let _gate = self.gate.read();
        let mut tree = self.tree.lock();
        let id = tree.remove(parent, name, directory)?;
        self.inode(parent)?.body.write().touch();
        let steps = tree.unpin(id, 0)?;
        self.apply(&mut tree, &steps)
    }

    /// Rename, over what may be there, or exchange two names.
    pub fn rename(&self, from: &Key, to: &Key, exchange: bool) -> io::Result<()> {
        let _gate = self.gate.read();
        let mut tree = self.tree.lock();
        let replaced = tree.rename(from, to, exchange)?;
        self.inode(from.0)?.body.write().touch();
        self.inode(to.0)?.body.write().touch();
        let steps = replaced.map_or_else(|| Ok(Vec::new()), |id| tree.unpin(id, 0))?;
        self.apply(&mut tree, &steps)
    }

    /// A directory's entries in the order of their names, itself and the one above first.
    pub fn entries(&self, id: u64) -> io::Result<Vec<(OsString, u64, Kind)>> {
        let _gate = self.gate.read();
        let tree = self.tree.lock();
        let mut entries = vec![
            (OsString::from("."), id, Kind::Directory),
            (OsString::from(".."), tree.parent(id)?, Kind::Directory),
        ];
        entries.extend(tree.entries(id)?);
        Ok(entries)
    }
}

/// In a directory with the set-group bit all that is new has its group, and directories have the bit too.
fn inherit(mut attr: Attr, kind: Kind, above: Attr) -> Attr {
    if above.mode & libc::S_ISGID != 0 {
        attr.gid = above.gid;
        if kind == Kind::Directory {
            attr.mode |= libc::S_ISGID;
        }
    }
    attr
}
