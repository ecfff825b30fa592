//! Syncs at the same time as writes and as other syncs, and what becomes durable by each.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails with it")]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::thread;

use loadstone_powerdisk::attr::{Attr, Change, Kind};
use loadstone_powerdisk::disk::{Disk, Loss, New, Options};

const PAGE: u64 = 4096;
const LOSS: Loss = Loss {
    seed: 0,
    keep: 0.0,
    force: false,
};

fn disk(folder: &tempfile::TempDir, most_unsynced_bytes: u64) -> Disk {
    let options = Options {
        strict: false,
        most_unsynced_bytes,
    };
    Disk::open(folder.path(), options).unwrap()
}

fn new(kind: Kind) -> New {
    let (uid, gid) = (nix::unistd::getuid(), nix::unistd::getgid());
    New {
        kind,
        attr: Attr::new(0o700, uid.as_raw(), gid.as_raw()),
        target: PathBuf::new(),
    }
}

fn file(disk: &Disk, name: &str) -> u64 {
    disk.create(1, OsStr::new(name), new(Kind::File))
        .unwrap()
        .id
}

/// Each thread writes a page and the half of its neighbour's, syncs, and knows that its own is durable.
fn write_and_sync_at_the_same_time(most_unsynced_bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, most_unsynced_bytes);
    let id = file(&disk, "file");
    disk.open_inode(id).unwrap(); // as the kernel does: the backing file stays open
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let disk = &disk;
            scope.spawn(move || {
                for round in 1..=200_u64 {
                    let byte = u8::try_from(round).unwrap();
                    let (at, len) = (thread * 2 * PAGE, PAGE + PAGE / 2);
                    let data = vec![byte; usize::try_from(len).unwrap()];
                    disk.write(id, at, &data, round % 3 == 0).unwrap();
                    if round % 3 == 1 {
                        disk.sync_file(id, true).unwrap();
                    }
                    let read = disk.read(id, at, data.len()).unwrap();
                    assert_eq!(read, data);
                }
                disk.sync_file(id, false).unwrap();
            });
        }
    });
    disk.close_inode(id).unwrap();
    assert_eq!(disk.lose(&LOSS).unwrap().0.bytes, 0);
    let found = disk.read(id, 0, 1 << 20).unwrap();
    for thread in 0..4 {
        let at = thread * 2 * 4096;
        assert!(found[at..at + 6144].iter().all(|byte| *byte == 200));
    }
}

#[test]
fn what_each_of_several_threads_synced_is_durable() {
    write_and_sync_at_the_same_time(u64::MAX);
}

#[test]
fn so_it_is_while_bytes_are_written_back() {
    write_and_sync_at_the_same_time(2 * PAGE);
}

#[test]
fn a_synchronous_write_leaves_the_rest_of_the_file_unsynced() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, u64::MAX);
    let id = file(&disk, "file");
    disk.write(id, 0, &[1; 100], false).unwrap();
    disk.write(id, 10 * PAGE, &[2; 100], false).unwrap();
    disk.write(id, 0, &[3; 50], true).unwrap();
    let (lost, _) = disk.lose(&LOSS).unwrap();
    assert_eq!((lost.bytes, lost.files), (PAGE, 1));
    // The first page was written whole: others had written into it too, and nothing of it is torn.
    assert_eq!(
        disk.read(id, 0, 1 << 20).unwrap(),
        [vec![3; 50], vec![1; 50], vec![0; 3996]].concat()
    );
}

#[test]
fn a_truncation_that_was_not_synced_is_undone_whatever_was_synced_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, u64::MAX);
    let id = file(&disk, "file");
    disk.write(id, 0, &[1; 9000], false).unwrap();
    disk.sync_file(id, false).unwrap();
    let cut = Change {
        size: Some(10),
        ..Change::default()
    };
    disk.set_attr(id, &cut).unwrap();
    assert_eq!(disk.read(id, 0, 1 << 20).unwrap(), [1; 10]);
    disk.lose(&LOSS).unwrap();
    assert_eq!(disk.read(id, 0, 1 << 20).unwrap(), [1; 9000]);
}

#[test]
fn a_name_that_no_file_system_takes_is_refused_before_anything_is_synced() {
    let folder = tempfile::tempdir().unwrap();
    let disk = disk(&folder, u64::MAX);
    let mut parent = 1;
    let name = "x".repeat(255);
    let refused = loop {
        match disk.create(parent, OsStr::new(&name), new(Kind::Directory)) {
            Ok(stat) => parent = stat.id,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.raw_os_error(), Some(libc::ENAMETOOLONG));
    disk.sync_all().unwrap();
    assert_eq!(disk.counters().broken, "");
}
