//! Requests of the kernel, each answered by the disk.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use parking_lot::RwLock;

use super::replies::{REMEMBER, attr, attr_of, done, entry, time, type_of};
use crate::attr::{Attr, Change, Kind};
use crate::disk::{Disk, New};

/// Bytes of the largest write, which is the most that the kernel sends without being told otherwise.
const MAX_WRITE: u32 = 1 << 20;

/// What answers the kernel.
pub(super) struct Served {
    disk: Arc<Disk>,
    listings: RwLock<BTreeMap<u64, Arc<Listing>>>,
    next: AtomicU64,
}

type Listing = Vec<(OsString, u64, Kind)>;

const BITS_OF_NEW: u32 = 0o7777;

impl Served {
    pub(super) fn new(disk: Arc<Disk>) -> Self {
        Self {
            disk,
            listings: RwLock::default(),
            next: AtomicU64::new(1),
        }
    }

    fn create(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        new: Made,
    ) -> io::Result<FileAttr> {
        let new = New {
            kind: new.kind,
            attr: Attr::new(new.mode & BITS_OF_NEW, by.uid(), by.gid()),
            target: new.target,
        };
        self.disk
            .create(parent.0, name, new)
            .map(|stat| attr_of(&stat))
    }

    fn list(&self, directory: INodeNo) -> io::Result<u64> {
        let listing = Arc::new(self.disk.entries(directory.0)?);
        self.disk.open_inode(directory.0)?;
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.listings.write().insert(handle, listing);
        Ok(handle)
    }

    /// A listing is of the moment of `opendir`, and of each `rewinddir`.
    fn listing(
        &self,
        directory: INodeNo,
        handle: FileHandle,
        offset: u64,
    ) -> io::Result<Arc<Listing>> {
        if offset == 0 {
            let listing = Arc::new(self.disk.entries(directory.0)?);
            self.listings.write().insert(handle.0, listing);
        }
        let listings = self.listings.read();
        Ok(listings.get(&handle.0).cloned().unwrap_or_default())
    }
}

struct Made {
    kind: Kind,
    mode: u32,
    target: PathBuf,
}

impl Made {
    fn new(kind: Kind, mode: u32) -> Self {
        Self {
            kind,
            mode,
            target: PathBuf::new(),
        }
    }
}

impl Filesystem for Served {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Not FUSE_WRITEBACK_CACHE: every write is to be seen here when it is made.
        let wanted = InitFlags::FUSE_PARALLEL_DIROPS | InitFlags::FUSE_CACHE_SYMLINKS;
        let _ = config.add_capabilities(wanted & config.capabilities());
        let _ = config.set_max_write(MAX_WRITE);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.disk.lookup(parent.0, name) {
            Ok(stat) => reply.entry(&REMEMBER, &attr_of(&stat), Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn forget(&self, _: &Request, inode: INodeNo, count: u64) {
        // What fails is in the counters, as `broken`.
        let _ = self.disk.forget(inode.0, count);
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        attr(self.disk.stat(inode.0), reply);
    }

    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change {
            mode,
            uid,
            gid,
            size,
            atime: atime.map(time),
            mtime: mtime.map(time),
        };
        attr(self.disk.set_attr(inode.0, &change), reply);
    }

    fn readlink(&self, _: &Request, inode: INodeNo, reply: ReplyData) {
        match self.disk.target(inode.0) {
            Ok(target) => reply.data(target.as_os_str().as_encoded_bytes()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mknod(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        let kind = match mode & libc::S_IFMT {
            libc::S_IFREG | 0 => Kind::File,
            special @ (libc::S_IFIFO | libc::S_IFSOCK) => Kind::Special(special),
            _ => return reply.error(Errno::EPERM),
        };
        entry(self.create(by, parent, name, Made::new(kind, mode)), reply);
    }

    fn mkdir(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        entry(
            self.create(by, parent, name, Made::new(Kind::Directory, mode)),
            reply,
        );
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.disk.remove(parent.0, name, false), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(self.disk.remove(parent.0, name, true), reply);
    }

    fn symlink(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = Made {
            target: target.to_owned(),
            ..Made::new(Kind::Symlink, 0o777)
        };
        entry(self.create(by, parent, name, made), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = (
            (parent.0, name.to_owned()),
            (new_parent.0, new_name.to_owned()),
        );
        if flags.contains(RenameFlags::RENAME_WHITEOUT) {
            return reply.error(Errno::EINVAL);
        }
        // The kernel has looked whether the name is free, for RENAME_NOREPLACE.
        done(
            self.disk
                .rename(&from, &to, flags.contains(RenameFlags::RENAME_EXCHANGE)),
            reply,
        );
    }

    fn link(&self, _: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        entry(
            self.disk
                .link(inode.0, parent.0, name)
                .map(|stat| attr_of(&stat)),
            reply,
        );
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.disk.open_inode(inode.0) {
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        by: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let file = self.create(by, parent, name, Made::new(Kind::File, mode));
        let opened = file.and_then(|attr| self.disk.open_inode(attr.ino.0).map(|()| attr));
        match opened {
            Ok(attr) => {
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&REMEMBER, &attr, Generation(0), FileHandle(0), flags);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.disk.read(inode.0, offset, size as usize) {
            Ok(bytes) => reply.data(&bytes),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // O_SYNC contains the bit of O_DSYNC. O_DIRECT passes by the kernel's memory, not the disk's.
        let synced = flags.0 & libc::O_DSYNC != 0;
        match self.disk.write(inode.0, offset, data, synced) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // Closing makes nothing durable; ENOSYS tells the kernel not to ask again.
        reply.error(Errno::ENOSYS);
    }

    fn release(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        done(self.disk.close_inode(inode.0), reply);
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, data: bool, reply: ReplyEmpty) {
        done(self.disk.sync_file(inode.0, data), reply);
    }

    fn opendir(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match self.list(inode) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listing = match self.listing(inode, handle, offset) {
            Ok(listing) => listing,
            Err(error) => return reply.error(error.into()),
        };
        let rest = (1..)
            .zip(listing.iter())
            .skip(usize::try_from(offset).unwrap_or(usize::MAX));
        for (next, (name, id, kind)) in rest {
            if reply.add(INodeNo(*id), next, type_of(*kind), name) {
                break; // full
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings.write().remove(&handle.0);
        done(self.disk.close_inode(inode.0), reply);
    }

    fn fsyncdir(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        done(self.disk.sync_names(inode.0), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let size = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        match self.disk.room() {
            Ok(room) => reply.statfs(
                room.blocks(),
                room.blocks_free(),
                room.blocks_available(),
                room.files(),
                room.files_free(),
                size(room.block_size()),
                size(room.name_max()),
                size(room.fragment_size()),
            ),
            Err(error) => reply.error(error.into()),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let known =
            libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let zero = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        let grow = mode & libc::FALLOC_FL_KEEP_SIZE == 0;
        let range = offset..offset.saturating_add(length);
        done(self.disk.allocate(inode.0, range, grow, zero), reply);
    }
}
