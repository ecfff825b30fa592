//! Wakes a worker from its wait for the network, from another thread.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;

/// The writing end of a socket pair whose reading end the worker watches like a connection.
#[derive(Debug)]
pub(crate) struct Waker {
    writer: UnixStream,
}

impl Waker {
    /// A waker, and the end that becomes readable.
    pub(crate) fn pair() -> io::Result<(Self, UnixStream)> {
        let (writer, reader) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        Ok((Self { writer }, reader))
    }

    /// Let the worker's wait return. What is already written wakes it as well, so a full pipe is no loss.
    pub(crate) fn wake(&self) {
        let _ = (&self.writer).write(&[1]);
    }
}
