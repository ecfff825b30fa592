//! One inode: attributes and bytes, as they are now and as they are durable.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::attr::{Attr, Kind, Stat, now};
use crate::pages::Pages;

/// An inode. Its locks are taken in the order of the fields, after that of the tree.
#[derive(Debug)]
pub(crate) struct Inode {
    /// Its number.
    pub(crate) id: u64,
    /// What it is.
    pub(crate) kind: Kind,
    /// Where a symbolic link points to.
    pub(crate) target: PathBuf,
    /// Held by the one that flushes.
    pub(crate) flushing: Mutex<()>,
    /// The rest.
    pub(crate) body: RwLock<Body>,
    /// The backing file while it is in use.
    pub(crate) file: Mutex<Option<Arc<File>>>,
    /// How many open files there are.
    pub(crate) opens: AtomicU64,
}

/// What changes of an inode.
#[derive(Debug)]
pub(crate) struct Body {
    /// The attributes now.
    pub(crate) attr: Attr,
    /// The durable ones.
    pub(crate) kept: Attr,
    /// The bytes of a file.
    pub(crate) pages: Pages,
    /// Its place in the queue of inodes with unsynced bytes.
    pub(crate) since: Option<u64>,
}

impl Inode {
    /// An inode; `size` is that of the backing file.
    #[must_use]
    pub(crate) fn new(id: u64, kind: Kind, attr: Attr, size: u64, target: PathBuf) -> Self {
        let pages = Pages::new(size);
        Self {
            id,
            kind,
            target,
            flushing: Mutex::new(()),
            body: RwLock::new(Body {
                attr,
                kept: attr,
                pages,
                since: None,
            }),
            file: Mutex::new(None),
            opens: AtomicU64::new(0),
        }
    }

    /// What programs see.
    #[must_use]
    pub(crate) fn stat(&self, links: u32) -> Stat {
        let body = self.body.read();
        let size = match self.kind {
            Kind::File => body.pages.size(),
            Kind::Symlink => self.target.as_os_str().len() as u64,
            Kind::Directory => 4096,
            Kind::Special(_) => 0,
        };
        Stat {
            id: self.id,
            kind: self.kind,
            attr: body.attr,
            size,
            links,
        }
    }

    /// Whether a process has it open.
    #[must_use]
    pub(crate) fn is_open(&self) -> bool {
        self.opens.load(Ordering::Acquire) > 0
    }
}

impl Body {
    /// The content has changed.
    pub(crate) fn touch(&mut self) {
        let now = now();
        self.attr.mtime = now;
        self.attr.ctime = now;
    }
}
