//! The loss of all that is not durable.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;

use super::Disk;
use crate::attr::Kind;
use crate::inode::Inode;
use crate::pages::{Flush, PAGE};
use crate::tree::Key;

/// How many of the lost names are told.
const EXAMPLES: usize = 20;
/// How long a loss waits for files to be closed: the kernel tells of the end of a process a moment later.
const PATIENCE: Duration = Duration::from_secs(2);

/// How to lose.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Decides which pages survive.
    pub seed: u64,
    /// The share of unsynced pages that survive.
    pub keep: f64,
    /// Lose also while processes have files open.
    pub force: bool,
}

/// What was lost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lost {
    /// Bytes of pages that were not synced, without those that survived.
    pub bytes: u64,
    /// Bytes of unsynced pages that survived.
    pub survived_bytes: u64,
    /// Files of which pages or a size were lost, without those that are no more.
    pub files: u64,
    /// Names that are another file's now, or nobody's, or are back.
    pub names: u64,
    /// Some of these names, as paths.
    pub examples: Vec<String>,
}

/// What the kernel may still remember, and must forget.
#[derive(Debug, Default)]
pub struct Stale {
    /// Inodes.
    pub inodes: Vec<u64>,
    /// Names.
    pub names: Vec<Key>,
}

/// Why nothing was lost.
#[derive(Debug)]
pub enum Refused {
    /// Processes have so many files open, some of which are these.
    Open(u64, Vec<String>),
    /// The backing directory failed.
    Failed(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl Disk {
    /// Forget all that is not durable.
    pub fn lose(&self, how: &Loss) -> Result<(Lost, Stale), Refused> {
        if !how.force {
            self.wait_for_closed()?;
        }
        let _gate = self.gate.write();
        self.check_whole()?;
        let mut lost = Lost::default();
        let mut stale = Stale::default();
        self.lose_names(&mut lost, &mut stale);
        self.lose_bytes(how, &mut lost, &mut stale)?;
        self.backing.empty_store()?;
        self.counts.losses.fetch_add(1, Ordering::Relaxed);
        Ok((lost, stale))
    }

    fn wait_for_closed(&self) -> Result<(), Refused> {
        let mut opened = self.opened.lock();
        self.closed
            .wait_while_for(&mut opened, |count| *count > 0, PATIENCE);
        let count = *opened;
        drop(opened);
        if count == 0 {
            Ok(())
        } else {
            Err(Refused::Open(count, self.open_paths()))
        }
    }

    fn open_paths(&self) -> Vec<String> {
        let inodes: Vec<_> = self.inodes.read().values().cloned().collect();
        let tree = self.tree.lock();
        let open = inodes.iter().filter(|inode| inode.is_open());
        open.take(EXAMPLES)
            .map(|inode| tree.spell(inode.id))
            .collect()
    }

    fn lose_names(&self, lost: &mut Lost, stale: &mut Stale) {
        let mut tree = self.tree.lock();
        let examples = tree.unsynced_keys().take(EXAMPLES);
        lost.examples = examples.map(|key| tree.spell_key(&key)).collect();
        let names = tree.lose();
        lost.names = names.keys.len() as u64;
        stale.names = names.keys;
        for id in names.gone {
            stale.inodes.push(id);
            if let Some(inode) = self.inodes.write().remove(&id) {
                lost.bytes += inode.body.read().pages.unsynced();
                self.drop_bytes(&inode);
            }
        }
    }

    fn lose_bytes(&self, how: &Loss, lost: &mut Lost, stale: &mut Stale) -> io::Result<()> {
        let inodes: Vec<Arc<Inode>> = self.inodes.read().values().cloned().collect();
        let mut chance = Chance(how.seed);
        for inode in inodes {
            let (dirty, changed) = {
                let mut body = inode.body.write();
                let changed = body.attr != body.kept;
                body.attr = body.kept;
                (body.pages.is_dirty(), changed)
            };
            if dirty {
                lost.files += 1;
                self.lose_pages(&inode, how.keep, &mut chance, lost)?;
            }
            if dirty || changed {
                stale.inodes.push(inode.id);
            }
        }
        Ok(())
    }

    fn lose_pages(
        &self,
        inode: &Inode,
        keep: f64,
        chance: &mut Chance,
        lost: &mut Lost,
    ) -> io::Result<()> {
        let size = inode.body.read().pages.size();
        let pages = self.take_pages(inode);
        let unsynced = (pages.len() * PAGE) as u64;
        let surviving = pages
            .into_iter()
            .filter(|_| keep > 0.0 && chance.next() < keep);
        let surviving: Vec<_> = surviving.collect();
        let kept = (surviving.len() * PAGE) as u64;
        lost.bytes += unsynced - kept;
        lost.survived_bytes += kept;
        if surviving.is_empty() || inode.kind != Kind::File {
            return Ok(());
        }
        let file = self.file(inode)?;
        let old = file.metadata()?.len();
        let end = surviving
            .last()
            .map_or(0, |(number, _)| (number + 1) * PAGE as u64);
        let len = old.max(end.min(size));
        let flush = Flush {
            pages: surviving,
            floor: old,
            len,
        };
        crate::backing::write(&file, &flush)?;
        inode.body.write().pages.survived(len);
        Self::rest(inode);
        Ok(())
    }

    fn take_pages(&self, inode: &Inode) -> BTreeMap<u64, Arc<[u8; PAGE]>> {
        let mut body = inode.body.write();
        let before = body.pages.unsynced();
        let pages = body.pages.lose();
        self.count(inode.id, &mut body, before);
        pages
    }

    /// Write everything back and leave only the files: the disk is unmounted in order.
    pub fn finish(&self) -> io::Result<()> {
        self.sync_all()?;
        self.backing.remove_store()
    }
}

/// Numbers from 0 to 1 (`SplitMix64`, by Steele, Lea and Flood, 2014).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let share = (mixed >> 11) as f64;
        share / 9_007_199_254_740_992.0
    }
}
