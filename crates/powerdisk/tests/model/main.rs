//! Random operations, syncs and losses against a model of what must be there.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails with it")]

mod expected;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use loadstone_powerdisk::attr::{Attr, Change, Kind};
use loadstone_powerdisk::disk::{Disk, Loss, New, Options};
use proptest::prelude::*;

use crate::expected::{Key, Model, ROOT};

#[derive(Clone, Debug)]
enum Op {
    Create(usize, u8, bool),
    Remove(usize, u8),
    Rename(usize, u8, usize, u8, bool),
    Link(usize, u8, usize, u8),
    Write(usize, u64, usize, u8, bool),
    Truncate(usize, u64),
    SyncFile(usize, bool),
    SyncDirectory(usize),
    SyncAll,
    Lose(u64, f64),
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let place = || (0..8_usize, 0..4_u8);
    prop_oneof![
        4 => (place(), any::<bool>()).prop_map(|((d, n), dir)| Op::Create(d, n, dir)),
        2 => place().prop_map(|(d, n)| Op::Remove(d, n)),
        4 => (place(), place(), any::<bool>()).prop_map(|((d, n), (e, m), x)| Op::Rename(d, n, e, m, x)),
        1 => (place(), place()).prop_map(|((d, n), (e, m))| Op::Link(d, n, e, m)),
        6 => (0..8_usize, 0..20_000_u64, 0..9_000_usize, 1..255_u8, prop::bool::weighted(0.1))
            .prop_map(|(f, at, len, byte, synced)| Op::Write(f, at, len, byte, synced)),
        2 => (0..8_usize, 0..25_000_u64).prop_map(|(f, size)| Op::Truncate(f, size)),
        3 => (0..8_usize, any::<bool>()).prop_map(|(f, data)| Op::SyncFile(f, data)),
        3 => (0..8_usize).prop_map(Op::SyncDirectory),
        1 => Just(Op::SyncAll),
        2 => (any::<u64>(), prop_oneof![3 => Just(0.0), 1 => Just(1.0)]).prop_map(|(s, k)| Op::Lose(s, k)),
        1 => Just(Op::Reopen),
    ]
}

struct Pair {
    folder: tempfile::TempDir,
    disk: Option<Disk>,
    model: Model,
    strict: bool,
}

fn name(number: u8) -> OsString {
    OsString::from(["a", "b", "new\nline", "d"][usize::from(number)])
}

impl Pair {
    fn new(strict: bool, most: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let disk = Some(Disk::open(folder.path(), options(strict, most)).unwrap());
        Self {
            folder,
            disk,
            model: Model::new(),
            strict,
        }
    }

    fn disk(&self) -> &Disk {
        self.disk.as_ref().unwrap()
    }

    fn directory(&self, number: usize) -> u64 {
        let all = self.model.list(true);
        all[number % all.len()]
    }

    fn file(&self, number: usize) -> Option<u64> {
        let all = self.model.list(false);
        (!all.is_empty()).then(|| all[number % all.len()])
    }

    fn perform(&mut self, op: &Op) {
        match *op {
            Op::Create(d, n, directory) => self.create(self.directory(d), &name(n), directory),
            Op::Remove(d, n) => self.remove(self.directory(d), &name(n)),
            Op::Rename(d, n, e, m, exchange) => {
                self.rename(
                    &(self.directory(d), name(n)),
                    &(self.directory(e), name(m)),
                    exchange,
                );
            }
            Op::Link(d, n, e, m) => {
                self.link(&(self.directory(d), name(n)), &(self.directory(e), name(m)));
            }
            Op::Write(f, at, len, byte, synced) => self.write(f, at, &vec![byte; len], synced),
            Op::Truncate(f, size) => self.truncate(f, size),
            Op::SyncFile(f, data) => self.sync_file(f, data),
            Op::SyncDirectory(d) => self.sync_directory(self.directory(d)),
            Op::SyncAll => self.sync_all(),
            Op::Lose(seed, keep) => self.lose(seed, keep),
            Op::Reopen => self.reopen(),
        }
        assert_eq!(self.disk().counters().broken, "");
    }

    fn create(&mut self, parent: u64, name: &OsStr, directory: bool) {
        let kind = if directory {
            Kind::Directory
        } else {
            Kind::File
        };
        let new = New {
            kind,
            attr: Attr::new(0o700, uid(), gid()),
            target: PathBuf::new(),
        };
        let made = self.disk().create(parent, name, new);
        let key = (parent, name.to_owned());
        assert_eq!(made.is_err(), self.model.now.contains_key(&key));
        if let Ok(stat) = made {
            self.disk().forget(stat.id, 1).unwrap();
            self.model.now.insert(key, stat.id);
            if directory {
                self.model.directories.insert(stat.id);
            } else {
                self.model.bytes.insert(stat.id, Vec::new());
            }
        }
    }

    fn remove(&mut self, parent: u64, name: &OsStr) {
        let key = (parent, name.to_owned());
        let Some(id) = self.model.now.get(&key).copied() else {
            assert!(self.disk().remove(parent, name, false).is_err());
            return;
        };
        let directory = self.model.directories.contains(&id);
        let full = self.model.now.keys().any(|(parent, _)| *parent == id);
        let removed = self.disk().remove(parent, name, directory);
        assert_eq!(removed.is_err(), full);
        if removed.is_ok() {
            self.model.now.remove(&key);
        }
    }

    fn rename(&mut self, from: &Key, to: &Key, exchange: bool) {
        let (one, other) = (
            self.model.now.get(from).copied(),
            self.model.now.get(to).copied(),
        );
        let Some(one) = one else { return };
        // The kernel refuses these before a file system sees them.
        let within = |inner: u64, outer: u64| {
            self.model.ways(inner).iter().any(|(p, _)| *p == outer) || inner == outer
        };
        if within(to.0, one) || (exchange && other.is_some_and(|other| within(from.0, other))) {
            return;
        }
        let renamed = self.disk().rename(from, to, exchange);
        if renamed.is_err() || other == Some(one) {
            let kinds = other.map(|other| self.model.directories.contains(&other));
            let same = kinds == Some(self.model.directories.contains(&one));
            let full = other.is_some_and(|other| self.model.now.keys().any(|(p, _)| *p == other));
            assert!(
                other == Some(one) || exchange && other.is_none() || !exchange && (!same || full)
            );
            return;
        }
        self.model.now.remove(from);
        self.model.now.insert(to.clone(), one);
        if let (Some(other), true) = (other, exchange) {
            self.model.now.insert(from.clone(), other);
        }
        self.model.ties.insert((from.clone(), to.clone()));
        self.model.ties.insert((to.clone(), from.clone()));
    }

    fn link(&mut self, from: &Key, to: &Key) {
        let Some(id) = self.model.now.get(from).copied() else {
            return;
        };
        let linked = self.disk().link(id, to.0, &to.1);
        let wrong = self.model.directories.contains(&id) || self.model.now.contains_key(to);
        assert_eq!(linked.is_err(), wrong);
        if linked.is_ok() {
            self.disk().forget(id, 1).unwrap();
            self.model.now.insert(to.clone(), id);
        }
    }

    fn write(&mut self, file: usize, at: u64, data: &[u8], synced: bool) {
        let Some(id) = self.file(file) else { return };
        self.disk().write(id, at, data, false).unwrap();
        let bytes = self.model.bytes.get_mut(&id).unwrap();
        let at = usize::try_from(at).unwrap();
        if !data.is_empty() {
            bytes.resize(bytes.len().max(at + data.len()), 0);
            bytes[at..at + data.len()].copy_from_slice(data);
        }
        if synced {
            self.sync_file(file, true);
        }
    }

    fn truncate(&mut self, file: usize, size: u64) {
        let Some(id) = self.file(file) else { return };
        let change = Change {
            size: Some(size),
            ..Change::default()
        };
        assert_eq!(self.disk().set_attr(id, &change).unwrap().size, size);
        self.model
            .bytes
            .get_mut(&id)
            .unwrap()
            .resize(usize::try_from(size).unwrap(), 0);
    }

    fn sync_file(&mut self, file: usize, data: bool) {
        let Some(id) = self.file(file) else { return };
        self.disk().sync_file(id, data).unwrap();
        self.model.sync_bytes(id);
        if !self.strict {
            self.model.commit(self.model.ways(id));
        }
    }

    fn sync_directory(&mut self, id: u64) {
        self.disk().sync_names(id).unwrap();
        let mut keys = self.model.children(id);
        if !self.strict {
            keys.extend(self.model.ways(id));
        }
        self.model.commit(keys);
    }

    fn sync_all(&mut self) {
        self.disk().sync_all().unwrap();
        let keys: Vec<Key> = self
            .model
            .now
            .keys()
            .chain(self.model.kept.keys())
            .cloned()
            .collect();
        self.model.commit(keys);
        for id in self.model.list(false) {
            self.model.sync_bytes(id);
        }
    }

    fn lose(&mut self, seed: u64, keep: f64) {
        if keep > 0.0 {
            // All pages survive, names do not, and neither does a truncation: only what must survive is known.
            let before = self.model.kept_bytes.clone();
            self.disk()
                .lose(&Loss {
                    seed,
                    keep,
                    force: false,
                })
                .unwrap();
            self.model.lose();
            for id in self.model.list(false) {
                let kept = before.get(&id).map_or(0, Vec::len);
                let size = usize::try_from(self.disk().stat(id).unwrap().size).unwrap();
                assert!(size >= kept);
                let bytes = self.disk().read(id, 0, 1 << 20).unwrap();
                self.model.kept_bytes.insert(id, bytes.clone());
                self.model.bytes.insert(id, bytes);
            }
        } else {
            let (lost, _) = self
                .disk()
                .lose(&Loss {
                    seed,
                    keep,
                    force: false,
                })
                .unwrap();
            assert_eq!(lost.survived_bytes, 0);
            self.model.lose();
        }
        let counters = self.disk().counters();
        assert_eq!((counters.unsynced_bytes, counters.unsynced_names), (0, 0));
        self.check();
        assert_eq!(backing(self.folder.path()), self.expected());
    }

    /// The process that serves the disk is killed: what is durable is in the backing directory.
    fn reopen(&mut self) {
        self.disk = None;
        self.disk = Some(Disk::open(self.folder.path(), options(self.strict, u64::MAX)).unwrap());
        self.model.lose();
        assert_eq!(backing(self.folder.path()), self.expected());
        let mut model = Model::new();
        let mut known = BTreeMap::new();
        self.adopt(ROOT, ROOT, &mut model, &mut known);
        self.model = model;
    }

    /// Take over the inode numbers of a disk that was opened anew.
    fn adopt(&self, old: u64, new: u64, model: &mut Model, known: &mut BTreeMap<u64, u64>) {
        for ((_, name), id) in self
            .model
            .now
            .iter()
            .filter(|((parent, _), _)| *parent == old)
        {
            let stat = self.disk().lookup(new, name).unwrap();
            assert_eq!(*known.entry(*id).or_insert(stat.id), stat.id);
            model.now.insert((new, name.clone()), stat.id);
            model.kept.insert((new, name.clone()), stat.id);
            if stat.kind == Kind::Directory {
                model.directories.insert(stat.id);
                self.adopt(*id, stat.id, model, known);
            } else {
                model.bytes.insert(stat.id, self.model.bytes[id].clone());
                model
                    .kept_bytes
                    .insert(stat.id, self.model.bytes[id].clone());
            }
            self.disk().forget(stat.id, 1).unwrap();
        }
    }

    fn expected(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut found = BTreeMap::new();
        let mut open = vec![(ROOT, PathBuf::new())];
        while let Some((id, path)) = open.pop() {
            for ((_, name), id) in self
                .model
                .now
                .iter()
                .filter(|((parent, _), _)| *parent == id)
            {
                let directory = self.model.directories.contains(id);
                found.insert(
                    path.join(name),
                    (!directory).then(|| self.model.bytes[id].clone()),
                );
                open.push((*id, path.join(name)));
            }
        }
        found
    }

    /// What programs see now.
    fn check(&self) {
        let mut found = BTreeMap::new();
        let mut open = vec![(ROOT, PathBuf::new())];
        while let Some((id, path)) = open.pop() {
            for (name, id, kind) in self.disk().entries(id).unwrap().into_iter().skip(2) {
                let bytes = (kind == Kind::File).then(|| self.disk().read(id, 0, 1 << 20).unwrap());
                if kind == Kind::Directory {
                    open.push((id, path.join(&name)));
                }
                found.insert(path.join(name), bytes);
            }
        }
        assert_eq!(found, self.expected());
    }
}

fn uid() -> u32 {
    nix::unistd::getuid().as_raw()
}

fn gid() -> u32 {
    nix::unistd::getgid().as_raw()
}

fn options(strict: bool, most_unsynced_bytes: u64) -> Options {
    Options {
        strict,
        most_unsynced_bytes,
    }
}

/// The files of a backing directory; `None` for a directory.
fn backing(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name() == Some(OsStr::new(".loadstone-power-disk")) {
                continue;
            }
            let bytes = path.is_file().then(|| fs::read(&path).unwrap());
            if path.is_dir() {
                open.push(path.clone());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
        }
    }
    found
}

/// Both names of a rename are durable together, also where the old one was not durable before.
#[test]
fn a_directory_that_is_synced_keeps_what_was_renamed_out_of_it() {
    for strict in [false, true] {
        let mut pair = Pair::new(strict, u64::MAX);
        for op in [
            Op::Create(0, 0, true),
            Op::Create(2, 2, false),
            Op::Rename(2, 2, 1, 0, false),
            Op::SyncDirectory(2),
        ] {
            pair.perform(&op);
        }
        pair.lose(0, 0.0);
        assert_eq!(pair.model.list(false).len(), 1);
    }
}

/// A directory was synced, and never the way to it: it can be removed when programs see it empty.
#[test]
fn a_directory_that_holds_durable_names_only_can_be_removed() {
    let mut pair = Pair::new(true, u64::MAX);
    for op in [
        Op::Create(0, 2, true),
        Op::Create(1, 1, true),
        Op::SyncDirectory(1),
        Op::Rename(1, 1, 0, 0, false),
        Op::Remove(0, 2),
        Op::SyncAll,
    ] {
        pair.perform(&op);
    }
    pair.lose(0, 0.0);
    assert_eq!(
        pair.model.list(true).len(),
        2,
        "the root and what was renamed"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_what_was_synced_is_there_after_a_loss(ops in prop::collection::vec(op(), 1..60), strict: bool) {
        let mut pair = Pair::new(strict, u64::MAX);
        for op in &ops {
            pair.perform(op);
        }
        pair.check();
        pair.lose(0, 0.0);
    }

    #[test]
    fn writing_back_changes_nothing_that_programs_see(ops in prop::collection::vec(op(), 1..60), strict: bool) {
        let mut pair = Pair::new(strict, 16 * 4096);
        for op in &ops {
            if !matches!(op, Op::Lose(..) | Op::Reopen) {
                pair.perform(op);
            }
            assert!(pair.disk().counters().unsynced_bytes <= 16 * 4096);
        }
        pair.check();
        pair.sync_all();
        pair.lose(0, 0.0);
    }
}
