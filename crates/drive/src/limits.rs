//! The operating system's limits that a drive needs raised.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::DriveError;

/// Descriptors that may still be needed besides: files, rings, the monitor's.
const RESERVE: u64 = 128;
/// So many are allowed where the hard limit permits it: the built-in server may need as many in this process.
const ROOM: u64 = 65_536;

/// Descriptors that the process has open now.
fn open_files() -> u64 {
    // Without /proc the reserve must do.
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

/// Make room for one socket per client.
pub(crate) fn raise_open_files(clients: usize) -> Result<(), DriveError> {
    let failed = |errno: nix::errno::Errno, needed: u64| DriveError::System {
        what: format!("{clients} clients need {needed} open files"),
        source: errno.into(),
        hint: format!("raise the limit first: ulimit -n {needed}"),
    };
    let needed = open_files() + clients as u64 + RESERVE;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|e| failed(e, needed))?;
    let wanted = needed.max(hard.min(ROOM));
    if soft >= wanted {
        return Ok(());
    }
    // Root may exceed the hard limit; for others the kernel refuses, and the hint says what to do.
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted)).map_err(|e| failed(e, needed))
}
