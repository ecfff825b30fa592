//! The power disk: mounted by this process, served by threads that never wait for Python.

use std::io;
use std::path::PathBuf;

use loadstone_powerdisk::disk::{Loss, Options, Refused};
use loadstone_powerdisk::mount::{Mounted, Unmounted};
use pyo3::exceptions::{PyBlockingIOError, PyOSError};
use pyo3::prelude::*;

/// A mounted power disk.
#[pyclass(module = "loadstone._core")]
pub(crate) struct PowerDiskMount {
    mounted: Mounted,
}

#[pymethods]
impl PowerDiskMount {
    #[new]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "Python's paths arrive as values"
    )]
    fn new(
        py: Python<'_>,
        backing: PathBuf,
        mount: PathBuf,
        source: &str,
        strict: bool,
        most_unsynced_bytes: u64,
    ) -> PyResult<Self> {
        let options = Options {
            strict,
            most_unsynced_bytes,
        };
        let mounted = py.detach(|| Mounted::new(&backing, &mount, source, options));
        Ok(Self { mounted: mounted? })
    }

    /// Lose; JSON of what was lost. `BlockingIOError` while files are open.
    fn lose(&self, py: Python<'_>, seed: u64, keep: f64, force: bool) -> PyResult<String> {
        let how = Loss { seed, keep, force };
        match py.detach(|| self.mounted.lose(&how)) {
            Ok(lost) => document(&lost),
            Err(Refused::Failed(error)) => Err(error.into()),
            Err(Refused::Open(count, paths)) => Err(PyBlockingIOError::new_err((count, paths))),
        }
    }

    /// JSON of the counters.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        document(&py.detach(|| self.mounted.counters()))
    }

    /// Make everything durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        Ok(py.detach(|| self.mounted.sync())?)
    }

    /// Unmount; whether somebody still used it.
    fn unmount(&mut self, py: Python<'_>, write_back: bool) -> PyResult<bool> {
        let how = py.detach(|| self.mounted.unmount(write_back))?;
        Ok(how == Unmounted::WhileBusy)
    }
}

fn document(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| PyOSError::new_err(io::Error::from(error).to_string()))
}
