//! Keys made durable as they are now: the steps, in an order that a loss between two of them survives.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use super::{Key, Step, Tree, errno};
use crate::attr::Kind;

impl Tree {
    /// Make sure that the backing directory has a node, if only in the store.
    pub(crate) fn make(&mut self, id: u64) -> io::Result<Vec<Step>> {
        let node = self.edit(id)?;
        if node.made {
            return Ok(Vec::new());
        }
        node.made = true;
        let place = self.place(id).unwrap_or_default();
        Ok(vec![Step::Make(id, place)])
    }

    /// Make keys durable as they are now; returns the steps, to be done in order.
    pub(crate) fn commit(&mut self, keys: Vec<Key>) -> io::Result<Vec<Step>> {
        let keys = self.closure(keys);
        let mut steps = Vec::new();
        let old: Vec<u64> = keys
            .iter()
            .filter_map(|key| self.now_and_kept(key).ok()?.1)
            .collect();
        for (directory, _) in &keys {
            steps.extend(self.make(*directory)?);
        }
        for key in &keys {
            self.clear_directory(key, &mut steps)?;
        }
        for key in &keys {
            self.install(key, &keys, &mut steps)?;
        }
        for key in &keys {
            self.clear_file(key, &mut steps)?;
        }
        for (directory, name) in &keys {
            self.edit(*directory)?.entries.touched.remove(name);
        }
        for id in old {
            steps.extend(self.unpin(id, 0)?);
        }
        Ok(steps)
    }

    /// The touched keys among these, with all that they are tied to.
    fn closure(&mut self, mut open: Vec<Key>) -> BTreeSet<Key> {
        let mut all = BTreeSet::new();
        while let Some(key) = open.pop() {
            let Some(entries) = self.nodes.get(&key.0).map(|node| &node.entries) else {
                continue;
            };
            if !entries.touched.contains(&key.1) || all.contains(&key) {
                continue;
            }
            let removed = entries
                .kept
                .get(&key.1)
                .and_then(|id| self.nodes.get_key_value(id));
            if let Some((id, _)) = removed.filter(|(_, node)| node.now.is_empty()) {
                open.extend(self.touched(*id));
            }
            open.extend(self.ties.remove(&key).into_iter().flatten());
            all.insert(key);
        }
        all
    }

    fn now_and_kept(&self, key: &Key) -> io::Result<(Option<u64>, Option<u64>)> {
        let entries = &self.node(key.0)?.entries;
        let get = |map: &BTreeMap<OsString, u64>| map.get(&key.1).copied();
        Ok((get(&entries.now), get(&entries.kept)))
    }

    fn path(&self, key: &Key) -> io::Result<PathBuf> {
        let parent = self.place(key.0).ok_or_else(|| errno(libc::ESTALE))?;
        Ok(parent.join(&key.1))
    }

    /// Put a directory that leaves its place into the store: directories may swap places in any way.
    fn clear_directory(&mut self, key: &Key, steps: &mut Vec<Step>) -> io::Result<()> {
        if let (now, Some(old)) = self.now_and_kept(key)?
            && now != Some(old)
            && self.node(old)?.kind == Kind::Directory
        {
            let from = self.path(key)?;
            self.keep(key, None)?;
            steps.push(Step::Move(from, self.place(old).unwrap_or_default()));
        }
        Ok(())
    }

    /// Give a key its node.
    fn install(
        &mut self,
        key: &Key,
        keys: &BTreeSet<Key>,
        steps: &mut Vec<Step>,
    ) -> io::Result<()> {
        let (Some(id), old) = self.now_and_kept(key)? else {
            return Ok(());
        };
        if old == Some(id) {
            return Ok(());
        }
        let left = self.left_name(id, keys);
        let moves = left.is_some() || self.node(id)?.kept.is_empty() && self.node(id)?.made;
        if let Some(old) = old {
            self.save(old, key, moves && self.node(id)?.kind == Kind::File, steps)?;
        }
        let to = self.path(key)?;
        steps.push(match self.place(id) {
            None => Step::Make(id, to),
            Some(from) if moves => Step::Move(from, to),
            Some(from) => Step::Link(from, to),
        });
        if let Some(left) = left {
            self.keep(&left, None)?;
        }
        self.edit(id)?.made = true;
        self.keep(key, Some(id))
    }

    /// Take a file out of the way of another; `over`: the other is renamed over it, so that there is always one.
    fn save(&mut self, old: u64, key: &Key, over: bool, steps: &mut Vec<Step>) -> io::Result<()> {
        let path = self.path(key)?;
        self.keep(key, None)?;
        let node = self.node(old)?;
        let (kind, last) = (node.kind, node.kept.is_empty());
        let store = self.place(old).filter(|_| last);
        match store {
            Some(store) if over => steps.push(Step::Link(path, store)),
            Some(store) => steps.push(Step::Move(path, store)),
            None if over => {}
            None => steps.push(Step::Remove(path, kind)),
        }
        Ok(())
    }

    /// The only durable name of a node, if it is among those that are committed and no longer is its name.
    fn left_name(&self, id: u64, keys: &BTreeSet<Key>) -> Option<Key> {
        let node = self.nodes.get(&id)?;
        let name = node.kept.first().filter(|_| node.kept.len() == 1)?;
        (keys.contains(name) && !node.now.contains(name)).then(|| name.clone())
    }

    /// Take a file's name away.
    fn clear_file(&mut self, key: &Key, steps: &mut Vec<Step>) -> io::Result<()> {
        if let (None, Some(old)) = self.now_and_kept(key)? {
            let path = self.path(key)?;
            self.keep(key, None)?;
            let node = self.node(old)?;
            let kind = node.kind;
            let last = node.kept.is_empty();
            steps.push(match self.place(old).filter(|_| last) {
                Some(store) => Step::Move(path, store),
                None => Step::Remove(path, kind),
            });
        }
        Ok(())
    }
}
