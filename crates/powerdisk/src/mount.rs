//! The disk as a file system of the kernel, by FUSE.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fuser::{BackgroundSession, Config, INodeNo, MountOption, Notifier, Session, SessionACL};
use nix::errno::Errno as SystemErrno;
use nix::mount::{MntFlags, umount2};

use crate::disk::{Counters, Disk, Loss, Lost, Options, Refused, Stale};
use crate::mount::served::Served;

mod replies;
mod served;

/// Threads that answer the kernel: more than backends that usually sync at a time.
const THREADS: usize = 16;

/// A mounted disk.
#[derive(Debug)]
pub struct Mounted {
    disk: Arc<Disk>,
    session: Option<BackgroundSession>,
    notifier: Notifier,
    at: PathBuf,
}

/// How a disk was unmounted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unmounted {
    /// Nobody used it.
    Clean,
    /// It is gone for everybody but those who still used it.
    WhileBusy,
}

impl Mounted {
    /// Serve the files of `backing` at `at`, both of which exist. `source` is what the list of mounts shows.
    pub fn new(backing: &Path, at: &Path, source: &str, options: Options) -> io::Result<Self> {
        let disk = Arc::new(Disk::open(backing, options)?);
        let served = Served::new(Arc::clone(&disk));
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(source.to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoAtime,
        ];
        // The server may run as another account; without being root only /etc/fuse.conf could permit that.
        config.acl = if nix::unistd::geteuid().is_root() {
            SessionACL::All
        } else {
            SessionACL::Owner
        };
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let session = Session::new(served, at, &config)?;
        let notifier = session.notifier();
        Ok(Self {
            disk,
            session: Some(session.spawn()?),
            notifier,
            at: at.to_owned(),
        })
    }

    /// Forget all that is not durable, and make the kernel forget it.
    pub fn lose(&self, how: &Loss) -> Result<Lost, Refused> {
        let (lost, stale) = self.disk.lose(how)?;
        self.tell(&stale)?;
        Ok(lost)
    }

    /// The kernel answers that it does not know what it has forgotten by itself, and fuser hides that.
    fn tell(&self, stale: &Stale) -> io::Result<()> {
        for (parent, name) in &stale.names {
            self.notifier.inval_entry(INodeNo(*parent), name)?;
            self.notifier.inval_inode(INodeNo(*parent), -1, 0)?;
        }
        for inode in &stale.inodes {
            self.notifier.inval_inode(INodeNo(*inode), 0, 0)?;
        }
        Ok(())
    }

    /// What has happened up to now.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.disk.counters()
    }

    /// Make everything durable.
    pub fn sync(&self) -> io::Result<()> {
        self.disk.sync_all()
    }

    /// Unmount; with `write_back` everything is durable then, and the backing directory has nothing but the files.
    pub fn unmount(&mut self, write_back: bool) -> io::Result<Unmounted> {
        let Some(session) = self.session.take() else {
            return Ok(Unmounted::Clean);
        };
        let how = self.detach(session)?;
        if write_back {
            self.disk.finish()?;
        }
        Ok(how)
    }

    fn detach(&self, session: BackgroundSession) -> io::Result<Unmounted> {
        match umount2(&self.at, MntFlags::UMOUNT_NOFOLLOW) {
            Ok(()) => session.join().map(|()| Unmounted::Clean),
            Err(SystemErrno::EBUSY) => {
                umount2(&self.at, MntFlags::MNT_DETACH)?;
                drop(session);
                Ok(Unmounted::WhileBusy)
            }
            Err(SystemErrno::EPERM) => session.umount_and_join().map(|()| Unmounted::Clean),
            Err(SystemErrno::EINVAL) => Ok(Unmounted::Clean), // somebody else has unmounted it
            Err(error) => Err(error.into()),
        }
    }
}
