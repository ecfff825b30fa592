//! Names: what programs see, and what is durable; and the steps that make the one the other.
//!
//! A *key* is a directory and a name in it. Each key has a node (or none) now, and one that is durable. `commit`
//! makes chosen keys durable, together with those that they are tied to: both names of a rename, so that a file
//! is never lost or doubled by one, and the content of a directory that is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use crate::attr::Kind;

mod commit;

/// The root's number.
pub(crate) const ROOT: u64 = 1;

/// The folder in the backing directory for inodes that exist and have no durable name.
pub(crate) const STORE: &str = ".loadstone-power-disk";

/// What the file system of the backing directory takes, so that no step fails for it.
const LONGEST_NAME: usize = 255;
/// Of a path in the disk; the rest of `PATH_MAX` is for the backing directory's own path and the store's.
const LONGEST_PATH: usize = 3000;

/// A directory and a name in it.
pub(crate) type Key = (u64, OsString);

/// What is to be done in the backing directory; paths are relative to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Make the node, without content.
    Make(u64, PathBuf),
    /// Give a file one more name.
    Link(PathBuf, PathBuf),
    /// Rename, over what may be there.
    Move(PathBuf, PathBuf),
    /// Remove a file, or a directory without content.
    Remove(PathBuf, Kind),
}

#[derive(Debug, Default)]
struct Directory {
    now: BTreeMap<OsString, u64>,
    kept: BTreeMap<OsString, u64>,
    touched: BTreeSet<OsString>,
}

#[derive(Debug)]
struct Node {
    kind: Kind,
    now: BTreeSet<Key>,
    kept: BTreeSet<Key>,
    /// Whether the backing directory has it, under a durable name or in the store.
    made: bool,
    /// How many references the kernel and open files have.
    pins: u64,
    entries: Directory,
}

/// What a loss did to the names.
#[derive(Debug, Default)]
pub(crate) struct LostNames {
    /// The keys whose node is another one than before, or none.
    pub(crate) keys: Vec<Key>,
    /// The nodes that are no more.
    pub(crate) gone: Vec<u64>,
}

/// All names.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<u64, Node>,
    next: u64,
    ties: BTreeMap<Key, BTreeSet<Key>>,
    gone: Vec<u64>,
}

impl Default for Tree {
    fn default() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next: ROOT,
            ties: BTreeMap::new(),
            gone: Vec::new(),
        };
        tree.add(Kind::Directory, true);
        tree
    }
}

impl Tree {
    fn add(&mut self, kind: Kind, made: bool) -> u64 {
        let id = self.next;
        self.next += 1;
        let node = Node {
            kind,
            now: BTreeSet::new(),
            kept: BTreeSet::new(),
            made,
            pins: 0,
            entries: Directory::default(),
        };
        self.nodes.insert(id, node);
        id
    }

    fn node(&self, id: u64) -> io::Result<&Node> {
        self.nodes.get(&id).ok_or_else(|| errno(libc::ESTALE))
    }

    fn edit(&mut self, id: u64) -> io::Result<&mut Node> {
        self.nodes.get_mut(&id).ok_or_else(|| errno(libc::ESTALE))
    }

    /// The entries of a directory that still has a name.
    fn directory(&self, id: u64) -> io::Result<&Directory> {
        let node = self.node(id)?;
        match node.kind {
            Kind::Directory => Ok(&node.entries),
            _ => Err(errno(libc::ENOTDIR)),
        }
    }

    /// Enter a name that the backing directory has; `node` is the one it has already, of a hard link.
    pub(crate) fn load(
        &mut self,
        parent: u64,
        name: &OsStr,
        kind: Kind,
        node: Option<u64>,
    ) -> io::Result<u64> {
        let id = node.unwrap_or_else(|| self.add(kind, true));
        let key = (parent, name.to_owned());
        self.put(&key, Some(id))?;
        self.keep(&key, Some(id))?;
        self.edit(parent)?.entries.touched.remove(name);
        Ok(id)
    }

    /// The node of a name.
    pub(crate) fn find(&self, parent: u64, name: &OsStr) -> io::Result<u64> {
        let found = self.directory(parent)?.now.get(name).copied();
        found.ok_or_else(|| errno(libc::ENOENT))
    }

    /// What a node is, and how many names it has.
    pub(crate) fn facts(&self, id: u64) -> io::Result<(Kind, u32)> {
        let node = self.node(id)?;
        let links = u32::try_from(node.now.len()).unwrap_or(u32::MAX);
        let alive = id == ROOT || links > 0;
        Ok((
            node.kind,
            if node.kind == Kind::Directory {
                u32::from(alive)
            } else {
                links
            },
        ))
    }

    /// The directory that a directory is in; the root is in itself.
    pub(crate) fn parent(&self, id: u64) -> io::Result<u64> {
        Ok(self.node(id)?.now.first().map_or(id, |(parent, _)| *parent))
    }

    /// A directory's entries in the order of their names.
    pub(crate) fn entries(&self, id: u64) -> io::Result<Vec<(OsString, u64, Kind)>> {
        let entries = self.directory(id)?.now.iter();
        let with_kind =
            |(name, id): (&OsString, &u64)| Ok((name.clone(), *id, self.node(*id)?.kind));
        entries.map(with_kind).collect()
    }

    /// Make a node with a name.
    pub(crate) fn create(&mut self, parent: u64, name: &OsStr, kind: Kind) -> io::Result<u64> {
        self.check_free(parent, name)?;
        let id = self.add(kind, false);
        self.put(&(parent, name.to_owned()), Some(id))?;
        Ok(id)
    }

    /// Give a file one more name.
    pub(crate) fn link(&mut self, id: u64, parent: u64, name: &OsStr) -> io::Result<()> {
        self.check_free(parent, name)?;
        if self.node(id)?.kind == Kind::Directory {
            return Err(errno(libc::EPERM));
        }
        self.put(&(parent, name.to_owned()), Some(id))
    }

    fn check_free(&self, parent: u64, name: &OsStr) -> io::Result<()> {
        let entries = self.directory(parent)?;
        if parent != ROOT && self.node(parent)?.now.is_empty() {
            return Err(errno(libc::ENOENT)); // a directory that was removed, and somebody works in it
        }
        if entries.now.contains_key(name) {
            return Err(errno(libc::EEXIST));
        }
        if parent == ROOT && name == STORE {
            return Err(errno(libc::EACCES));
        }
        if name.len() > LONGEST_NAME || self.depth(parent) + name.len() > LONGEST_PATH {
            return Err(errno(libc::ENAMETOOLONG));
        }
        Ok(())
    }

    /// The bytes of a directory's path.
    fn depth(&self, id: u64) -> usize {
        let name = self.nodes.get(&id).and_then(|node| node.now.first());
        name.map_or(0, |(parent, name)| self.depth(*parent) + name.len() + 1)
    }

    /// Remove a name; returns its node.
    pub(crate) fn remove(&mut self, parent: u64, name: &OsStr, directory: bool) -> io::Result<u64> {
        let id = self.find(parent, name)?;
        self.check_removable(id, directory)?;
        self.put(&(parent, name.to_owned()), None)?;
        Ok(id)
    }

    fn check_removable(&self, id: u64, directory: bool) -> io::Result<()> {
        let node = self.node(id)?;
        match (node.kind == Kind::Directory, directory) {
            (true, false) => Err(errno(libc::EISDIR)),
            (false, true) => Err(errno(libc::ENOTDIR)),
            (true, true) if !node.entries.now.is_empty() => Err(errno(libc::ENOTEMPTY)),
            _ => Ok(()),
        }
    }

    /// Rename; `exchange` swaps the two. Returns the node whose name was overwritten.
    pub(crate) fn rename(
        &mut self,
        from: &Key,
        to: &Key,
        exchange: bool,
    ) -> io::Result<Option<u64>> {
        let id = self.find(from.0, &from.1)?;
        let other = match self.find(to.0, &to.1) {
            Ok(other) => Some(other),
            Err(_) if exchange => return Err(errno(libc::ENOENT)),
            Err(_) => {
                self.check_free(to.0, &to.1)?;
                None
            }
        };
        if other == Some(id) {
            return Ok(None); // two names of one file: nothing happens, says POSIX
        }
        if let (Some(other), false) = (other, exchange) {
            self.check_removable(other, self.node(id)?.kind == Kind::Directory)?;
        }
        self.ties
            .entry(from.clone())
            .or_default()
            .insert(to.clone());
        self.ties
            .entry(to.clone())
            .or_default()
            .insert(from.clone());
        self.put(from, None)?;
        self.put(to, Some(id))?;
        if exchange {
            self.put(from, other)?;
        }
        Ok(other.filter(|_| !exchange))
    }

    /// Set what a key is now.
    fn put(&mut self, key: &Key, id: Option<u64>) -> io::Result<()> {
        let tied = self.ties.contains_key(key);
        let entries = &mut self.edit(key.0)?.entries;
        let before = match id {
            Some(id) => entries.now.insert(key.1.clone(), id),
            None => entries.now.remove(&key.1),
        };
        if tied || entries.kept.get(&key.1) != id.as_ref() {
            entries.touched.insert(key.1.clone());
        } else {
            entries.touched.remove(&key.1);
        }
        if let Some(node) = before.and_then(|before| self.nodes.get_mut(&before)) {
            node.now.remove(key);
        }
        if let Some(id) = id {
            self.edit(id)?.now.insert(key.clone());
        }
        Ok(())
    }

    /// Set what is durable at a key.
    fn keep(&mut self, key: &Key, id: Option<u64>) -> io::Result<()> {
        let entries = &mut self.edit(key.0)?.entries;
        let before = match id {
            Some(id) => entries.kept.insert(key.1.clone(), id),
            None => entries.kept.remove(&key.1),
        };
        if let Some(node) = before.and_then(|before| self.nodes.get_mut(&before)) {
            node.kept.remove(key);
        }
        if let Some(id) = id {
            self.edit(id)?.kept.insert(key.clone());
        }
        Ok(())
    }

    /// Where the backing directory has a node.
    pub(crate) fn place(&self, id: u64) -> Option<PathBuf> {
        let node = self.nodes.get(&id).filter(|node| node.made)?;
        if id == ROOT {
            return Some(PathBuf::new());
        }
        match node.kept.first() {
            Some((parent, name)) => Some(self.place(*parent)?.join(name)),
            None => Some(PathBuf::from(STORE).join(id.to_string())),
        }
    }

    /// The keys of a directory that are not durable as they are now.
    pub(crate) fn touched(&self, id: u64) -> Vec<Key> {
        let entries = self.nodes.get(&id).map(|node| &node.entries);
        let names = entries.into_iter().flat_map(|entries| &entries.touched);
        names.map(|name| (id, name.clone())).collect()
    }

    /// All keys that are not durable as they are now.
    pub(crate) fn all_touched(&self) -> Vec<Key> {
        self.nodes.keys().flat_map(|id| self.touched(*id)).collect()
    }

    /// The keys whose node a loss would change.
    pub(crate) fn unsynced_keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.nodes.iter().flat_map(|(id, node)| {
            let entries = &node.entries;
            let differs = |name: &&OsString| entries.now.get(*name) != entries.kept.get(*name);
            entries
                .touched
                .iter()
                .filter(differs)
                .map(|name| (*id, name.clone()))
        })
    }

    /// How many keys these are.
    pub(crate) fn unsynced(&self) -> usize {
        self.unsynced_keys().count()
    }

    /// A node's path, for people.
    pub(crate) fn spell(&self, id: u64) -> String {
        let name = self.nodes.get(&id).and_then(|node| node.now.first());
        name.map_or_else(String::new, |key| self.spell_key(key))
    }

    /// A key's path, for people.
    pub(crate) fn spell_key(&self, (parent, name): &Key) -> String {
        let above = self.spell(*parent);
        let name = name.to_string_lossy();
        if above.is_empty() {
            name.into_owned()
        } else {
            format!("{above}/{name}")
        }
    }

    /// The keys under which a node is found: its names, and those of the directories above.
    pub(crate) fn ways(&self, id: u64) -> Vec<Key> {
        let mut keys = Vec::new();
        let mut above = vec![id];
        let mut seen = BTreeSet::new();
        while let Some(node) = above.pop().and_then(|id| self.nodes.get(&id)) {
            for key in &node.now {
                if seen.insert(key.0) {
                    above.push(key.0);
                }
                keys.push(key.clone());
            }
        }
        keys
    }

    /// Count a reference to a node.
    pub(crate) fn pin(&mut self, id: u64) {
        if let Some(node) = self.nodes.get_mut(&id) {
            node.pins += 1;
        }
    }

    /// Take references away; returns the steps by which a node ends that nothing refers to any more.
    pub(crate) fn unpin(&mut self, id: u64, count: u64) -> io::Result<Vec<Step>> {
        let Some(node) = self.nodes.get_mut(&id) else {
            return Ok(Vec::new());
        };
        node.pins = node.pins.saturating_sub(count);
        if id == ROOT || node.pins > 0 || !node.now.is_empty() || !node.kept.is_empty() {
            return Ok(Vec::new());
        }
        let (kind, place) = (node.kind, self.place(id));
        let mut steps = self.empty(id)?;
        self.gone.push(id);
        self.nodes.remove(&id);
        steps.extend(place.map(|place| Step::Remove(place, kind)));
        Ok(steps)
    }

    /// Take the durable names out of a directory that ends: it was synced itself, and never the way to it.
    fn empty(&mut self, id: u64) -> io::Result<Vec<Step>> {
        let mut steps = Vec::new();
        for (name, inside) in self.node(id)?.entries.kept.clone() {
            let key = (id, name);
            let path = self.place(id).map(|place| place.join(&key.1));
            self.keep(&key, None)?;
            let node = self.node(inside)?;
            let (kind, last) = (node.kind, node.kept.is_empty());
            let store = self.place(inside).filter(|_| last);
            steps.extend(path.map(|path| match store {
                Some(store) => Step::Move(path, store),
                None => Step::Remove(path, kind),
            }));
            steps.extend(self.unpin(inside, 0)?);
        }
        Ok(steps)
    }

    /// The nodes that ended since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.gone)
    }

    /// Forget what is not durable. All that is in the store is no more.
    pub(crate) fn lose(&mut self) -> LostNames {
        let mut lost = LostNames::default();
        self.ties.clear();
        let reachable = self.reachable();
        for (id, node) in &mut self.nodes {
            let entries = &mut node.entries;
            for name in std::mem::take(&mut entries.touched) {
                if entries.now.get(&name) != entries.kept.get(&name) {
                    lost.keys.push((*id, name));
                }
            }
            entries.now = entries.kept.clone();
            node.kept.retain(|(parent, _)| reachable.contains(parent));
            node.now = node.kept.clone();
            if !reachable.contains(id) {
                lost.gone.push(*id);
            }
        }
        for id in &lost.gone {
            self.nodes.remove(id);
        }
        lost
    }

    fn reachable(&self) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        let mut open = vec![ROOT];
        while let Some(id) = open.pop() {
            if found.insert(id)
                && let Some(node) = self.nodes.get(&id)
            {
                open.extend(node.entries.kept.values());
            }
        }
        found
    }
}

/// An error of the operating system by its number.
pub(crate) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}
