//! What the kernel is told: outcomes and attributes in its own types.

use std::io;
use std::time::{Duration, SystemTime};

use fuser::{
    FileAttr, FileType, Generation, INodeNo, ReplyAttr, ReplyEmpty, ReplyEntry, TimeOrNow,
};

use crate::attr::{Kind, Stat, now};

/// How long the kernel may remember names and attributes: nobody but it changes them, and a loss tells it.
pub(super) const REMEMBER: Duration = Duration::from_hours(1);

pub(super) fn done(result: io::Result<()>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

pub(super) fn attr(result: io::Result<Stat>, reply: ReplyAttr) {
    match result {
        Ok(stat) => reply.attr(&REMEMBER, &attr_of(&stat)),
        Err(error) => reply.error(error.into()),
    }
}

pub(super) fn entry(result: io::Result<FileAttr>, reply: ReplyEntry) {
    match result {
        Ok(attr) => reply.entry(&REMEMBER, &attr, Generation(0)),
        Err(error) => reply.error(error.into()),
    }
}

pub(super) fn time(time: TimeOrNow) -> SystemTime {
    match time {
        TimeOrNow::SpecificTime(time) => time,
        TimeOrNow::Now => now(),
    }
}

pub(super) fn type_of(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Special(libc::S_IFIFO) => FileType::NamedPipe,
        Kind::Special(_) => FileType::Socket,
    }
}

pub(super) fn attr_of(stat: &Stat) -> FileAttr {
    let attr = &stat.attr;
    FileAttr {
        ino: INodeNo(stat.id),
        size: stat.size,
        blocks: stat.size.div_ceil(512),
        atime: attr.atime,
        mtime: attr.mtime,
        ctime: attr.ctime,
        crtime: attr.ctime,
        kind: type_of(stat.kind),
        perm: u16::try_from(attr.mode).unwrap_or(0),
        nlink: stat.links,
        uid: attr.uid,
        gid: attr.gid,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    }
}
