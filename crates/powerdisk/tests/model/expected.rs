//! The model: what must be there after any operations, found in the plainest way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

pub(crate) const ROOT: u64 = 1;
pub(crate) type Key = (u64, OsString);
pub(crate) type Names = BTreeMap<Key, u64>;

/// What must be there: every state is a plain map, and a commit is a search until nothing is added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) now: Names,
    pub(crate) kept: Names,
    pub(crate) ties: BTreeSet<(Key, Key)>,
    pub(crate) directories: BTreeSet<u64>,
    pub(crate) bytes: BTreeMap<u64, Vec<u8>>,
    pub(crate) kept_bytes: BTreeMap<u64, Vec<u8>>,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            directories: [ROOT].into(),
            ..Self::default()
        }
    }

    fn live(names: &Names) -> BTreeSet<u64> {
        let mut found = BTreeSet::from([ROOT]);
        loop {
            let before = found.len();
            let inside = names
                .iter()
                .filter(|((parent, _), _)| found.contains(parent));
            let inside: Vec<u64> = inside.map(|(_, id)| *id).collect();
            found.extend(inside);
            if found.len() == before {
                return found;
            }
        }
    }

    pub(crate) fn list(&self, directories: bool) -> Vec<u64> {
        let live = Self::live(&self.now);
        live.into_iter()
            .filter(|id| self.directories.contains(id) == directories)
            .collect()
    }

    /// The names in a directory that were changed or not, with those from which something was renamed away.
    pub(crate) fn children(&self, id: u64) -> BTreeSet<Key> {
        let left = self.ties.iter().map(|(one, _)| one);
        let keys = self.now.keys().chain(self.kept.keys()).chain(left);
        keys.filter(|(parent, _)| *parent == id).cloned().collect()
    }

    pub(crate) fn commit(&mut self, start: impl IntoIterator<Item = Key>) {
        let mut keys: BTreeSet<Key> = start.into_iter().collect();
        loop {
            let before = keys.len();
            for (one, other) in &self.ties {
                if keys.contains(one) || keys.contains(other) {
                    keys.extend([one.clone(), other.clone()]);
                }
            }
            for key in keys.clone() {
                let removed = self
                    .kept
                    .get(&key)
                    .filter(|id| !self.now.values().any(|now| now == *id));
                keys.extend(removed.into_iter().flat_map(|id| self.children(*id)));
            }
            if keys.len() == before {
                break;
            }
        }
        for key in &keys {
            match self.now.get(key) {
                Some(id) => self.kept.insert(key.clone(), *id),
                None => self.kept.remove(key),
            };
        }
        self.ties.retain(|(one, _)| !keys.contains(one));
    }

    pub(crate) fn ways(&self, id: u64) -> BTreeSet<Key> {
        let mut keys = BTreeSet::new();
        let mut ids = BTreeSet::from([id]);
        loop {
            let before = keys.len();
            keys.extend(
                self.now
                    .iter()
                    .filter(|(_, id)| ids.contains(id))
                    .map(|(key, _)| key.clone()),
            );
            ids.extend(keys.iter().map(|(parent, _)| *parent));
            if keys.len() == before {
                return keys;
            }
        }
    }

    pub(crate) fn lose(&mut self) {
        let live = Self::live(&self.kept);
        self.kept.retain(|(parent, _), _| live.contains(parent));
        self.now = self.kept.clone();
        self.ties.clear();
        self.kept_bytes.retain(|id, _| live.contains(id));
        self.bytes = self
            .bytes
            .keys()
            .filter(|id| live.contains(id))
            .map(|id| (*id, self.kept_bytes.get(id).cloned().unwrap_or_default()))
            .collect();
    }

    pub(crate) fn sync_bytes(&mut self, id: u64) {
        if let Some(bytes) = self.bytes.get(&id) {
            self.kept_bytes.insert(id, bytes.clone());
        }
    }
}
