//! Reading, writing and syncing files.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Disk;
use crate::attr::{Change, Kind, Stat, now};
use crate::backing;
use crate::inode::{Body, Inode};
use crate::pages::{Choice, Flush, PAGE};
use crate::tree::{Key, Tree, errno};

/// Pages that are written back at once.
const WRITE_BACK_PAGES: usize = 64 * 1024 * 1024 / PAGE;

impl Disk {
    /// Somebody opens an inode.
    pub fn open_inode(&self, id: u64) -> io::Result<()> {
        let _gate = self.gate.read();
        let inode = self.inode(id)?;
        inode.opens.fetch_add(1, Ordering::AcqRel);
        *self.opened.lock() += 1;
        self.tree.lock().pin(id);
        let ready = if inode.kind == Kind::File {
            self.ready(&inode)
        } else {
            Ok(())
        };
        if ready.is_err() {
            self.close(&inode)?;
        }
        ready
    }

    /// The last reference to an open file is gone.
    pub fn close_inode(&self, id: u64) -> io::Result<()> {
        let _gate = self.gate.read();
        if let Ok(inode) = self.inode(id) {
            return self.close(&inode);
        }
        self.count_closed(); // it was lost while somebody had it open
        Ok(())
    }

    fn close(&self, inode: &Inode) -> io::Result<()> {
        inode.opens.fetch_sub(1, Ordering::AcqRel);
        Self::rest(inode);
        let unpinned = self.unpin(inode.id, 1);
        self.count_closed();
        unpinned
    }

    fn count_closed(&self) {
        let mut opened = self.opened.lock();
        *opened = opened.saturating_sub(1);
        self.closed.notify_all();
    }

    /// Read up to `len` bytes.
    pub fn read(&self, id: u64, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let _gate = self.gate.read();
        let inode = self.file_inode(id)?;
        self.ready(&inode)?;
        let body = inode.body.read();
        let bytes = body
            .pages
            .read(offset, len, |at, buffer| fill(&inode, at, buffer))?;
        self.counts.reads.fetch_add(1, Ordering::Relaxed);
        self.counts
            .read_bytes
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Write bytes; `synced` as with `O_DSYNC`: they are durable at the end, together with the file's size.
    pub fn write(&self, id: u64, offset: u64, data: &[u8], synced: bool) -> io::Result<()> {
        let _gate = self.gate.read();
        let inode = self.file_inode(id)?;
        self.ready(&inode)?;
        self.change(&inode, |body| {
            body.pages
                .write(offset, data, |at, buffer| fill(&inode, at, buffer))
        })?;
        self.counts.writes.fetch_add(1, Ordering::Relaxed);
        self.counts
            .written_bytes
            .fetch_add(data.len() as u64, Ordering::Relaxed);
        if synced {
            self.sync_bytes(
                &inode,
                &Choice::Bytes(offset..offset + data.len() as u64),
                true,
            )?;
        }
        self.write_back()
    }

    /// `fallocate`: make the file that long, or zeros of a range.
    pub fn allocate(&self, id: u64, range: Range<u64>, grow: bool, zero: bool) -> io::Result<()> {
        let _gate = self.gate.read();
        let inode = self.file_inode(id)?;
        self.ready(&inode)?;
        self.change(&inode, |body| {
            let end = range.end;
            if zero {
                body.pages
                    .zero(range, |at, buffer| fill(&inode, at, buffer))?;
            }
            if grow && end > body.pages.size() {
                body.pages.truncate(end);
            }
            Ok(())
        })?;
        self.write_back()
    }

    /// `chmod`, `chown`, `truncate`, `utimensat`.
    pub fn set_attr(&self, id: u64, change: &Change) -> io::Result<Stat> {
        let _gate = self.gate.read();
        let inode = self.inode(id)?;
        if let Some(size) = change.size {
            let inode = self.file_inode(id)?;
            self.change(&inode, |body| {
                body.pages.truncate(size);
                Ok(())
            })?;
        }
        let mut body = inode.body.write();
        let attr = &mut body.attr;
        attr.mode = change.mode.map_or(attr.mode, |mode| mode & 0o7777);
        attr.uid = change.uid.unwrap_or(attr.uid);
        attr.gid = change.gid.unwrap_or(attr.gid);
        attr.atime = change.atime.unwrap_or(attr.atime);
        attr.mtime = change.mtime.unwrap_or(attr.mtime);
        attr.ctime = now();
        drop(body);
        self.stat_of(&inode)
    }

    fn file_inode(&self, id: u64) -> io::Result<std::sync::Arc<Inode>> {
        let inode = self.inode(id)?;
        match inode.kind {
            Kind::File => Ok(inode),
            Kind::Directory => Err(errno(libc::EISDIR)),
            _ => Err(errno(libc::EINVAL)),
        }
    }

    /// Change a file's bytes, and count what is unsynced then.
    fn change(
        &self,
        inode: &Inode,
        change: impl FnOnce(&mut Body) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut body = inode.body.write();
        let before = body.pages.unsynced();
        let changed = change(&mut body);
        body.touch();
        self.count(inode.id, &mut body, before);
        changed
    }

    /// Enter what an inode has of unsynced bytes, of which there were so many before.
    pub(super) fn count(&self, id: u64, body: &mut Body, before: u64) {
        let after = body.pages.unsynced();
        self.counts.unsynced.fetch_add(after, Ordering::Relaxed);
        self.counts.unsynced.fetch_sub(before, Ordering::Relaxed);
        match (body.since, after) {
            (Some(since), 0) => {
                self.queue.lock().inodes.remove(&since);
                body.since = None;
            }
            (None, 1..) => {
                let mut queue = self.queue.lock();
                queue.next += 1;
                let since = queue.next;
                queue.inodes.insert(since, id);
                body.since = Some(since);
            }
            _ => {}
        }
    }

    /// The bytes of an inode that has ended.
    pub(super) fn drop_bytes(&self, inode: &Inode) {
        let mut body = inode.body.write();
        let before = body.pages.unsynced();
        body.pages.lose();
        self.count(inode.id, &mut body, before);
    }

    /// Write unsynced pages into the backing file, which is not synced by this.
    fn flush(&self, inode: &Inode, choice: &Choice) -> io::Result<u64> {
        let _turn = inode.flushing.lock();
        let file = self.file(inode)?;
        let flush = inode.body.write().pages.begin(choice);
        let written = backing::write(&file, &flush);
        let mut body = inode.body.write();
        let before = body.pages.unsynced();
        match &written {
            Ok(()) => _ = body.pages.done(&flush),
            Err(_) => body.pages.failed(file.metadata()?.len()),
        }
        self.count(inode.id, &mut body, before);
        written.map(|()| Flush::bytes(&flush))
    }

    fn sync_bytes(&self, inode: &Inode, choice: &Choice, data: bool) -> io::Result<()> {
        self.counts.fsyncs.fetch_add(1, Ordering::Relaxed);
        self.check_whole()?;
        let attr = inode.body.read().attr;
        self.flush(inode, choice)?;
        let file = self.file(inode)?;
        if !data && inode.body.read().kept != attr {
            backing::set_file_attr(&file, &attr)?;
            inode.body.write().kept = attr;
        }
        backing::sync(&file, data)?;
        Self::rest(inode);
        if self.options.strict {
            return Ok(());
        }
        self.commit(|tree| tree.ways(inode.id))
    }

    /// `fsync` or, for the `data` alone, `fdatasync` of a file.
    pub fn sync_file(&self, id: u64, data: bool) -> io::Result<()> {
        let _gate = self.gate.read();
        let inode = self.file_inode(id)?;
        self.sync_bytes(&inode, &Choice::All, data)
    }

    /// `fsync` of a directory.
    pub fn sync_names(&self, id: u64) -> io::Result<()> {
        let _gate = self.gate.read();
        self.counts.fsyncs.fetch_add(1, Ordering::Relaxed);
        self.check_whole()?;
        let inode = self.inode(id)?;
        let strict = self.options.strict;
        self.commit(|tree| names(tree, id, strict))?;
        let place = {
            let mut tree = self.tree.lock();
            let steps = tree.make(id)?;
            self.apply(&mut tree, &steps)?;
            let place = tree.place(id).ok_or_else(|| errno(libc::ESTALE))?;
            let mut body = inode.body.write();
            if body.kept != body.attr {
                self.backing.set_attr(&place, inode.kind, &body.attr)?;
                body.kept = body.attr;
            }
            place
        };
        match self.backing.sync_directory(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()), // moved since by another sync
            synced => synced,
        }
    }

    /// Make everything durable, as a machine does that has time.
    pub fn sync_all(&self) -> io::Result<()> {
        let _gate = self.gate.read();
        self.check_whole()?;
        self.commit(Tree::all_touched)?;
        let inodes: Vec<_> = self.inodes.read().values().cloned().collect();
        for inode in inodes {
            self.sync_inode(&inode)?;
        }
        Ok(())
    }

    fn sync_inode(&self, inode: &Inode) -> io::Result<()> {
        if inode.kind == Kind::File && inode.body.read().pages.is_dirty() {
            self.flush(inode, &Choice::All)?;
            self.file(inode)?.sync_all()?;
            Self::rest(inode);
        }
        let tree = self.tree.lock();
        let mut body = inode.body.write();
        if let Some(place) = tree.place(inode.id).filter(|_| body.kept != body.attr) {
            self.backing.set_attr(&place, inode.kind, &body.attr)?;
            body.kept = body.attr;
        }
        Ok(())
    }

    /// Write back the oldest while there are too many unsynced bytes.
    fn write_back(&self) -> io::Result<()> {
        while self.counts.unsynced.load(Ordering::Relaxed) > self.options.most_unsynced_bytes {
            let Some(oldest) = self
                .queue
                .lock()
                .inodes
                .first_key_value()
                .map(|(_, id)| *id)
            else {
                break;
            };
            let Ok(inode) = self.inode(oldest) else {
                break;
            };
            let written = self.flush(&inode, &Choice::First(WRITE_BACK_PAGES))?;
            self.counts
                .written_back
                .fetch_add(written, Ordering::Relaxed);
            Self::rest(&inode);
        }
        Ok(())
    }
}

/// The keys that a sync of a directory makes durable.
fn names(tree: &Tree, id: u64, strict: bool) -> Vec<Key> {
    let mut keys = tree.touched(id);
    if !strict {
        keys.extend(tree.ways(id));
    }
    keys
}

/// Read from an inode's backing file.
fn fill(inode: &Inode, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    match &*inode.file.lock() {
        Some(file) => backing::read(file, offset, buffer),
        None => Err(errno(libc::EIO)),
    }
}
