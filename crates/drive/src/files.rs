//! Files that somebody else has opened.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

/// A second descriptor of an open file; closing it leaves the first one open.
pub(crate) fn duplicate(fd: i32) -> io::Result<File> {
    if fd < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    #[expect(
        unsafe_code,
        reason = "the number names a file of our caller's; when it names none, the kernel says so"
    )]
    // SAFETY: `fd` is not -1, and is only borrowed for this call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    Ok(File::from(borrowed.try_clone_to_owned()?))
}
