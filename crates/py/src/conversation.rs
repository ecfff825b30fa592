//! `loadstone._core.Conversation`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loadstone_drive::conversation::Conversation as CoreConversation;
use loadstone_drive::spec::Connection;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::drive_error;

/// A connection for the few statements beside drives.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct Conversation {
    inner: Mutex<Option<CoreConversation>>,
}

#[pymethods]
impl Conversation {
    #[new]
    fn new(py: Python<'_>, connection: &str, limit_s: f64) -> PyResult<Self> {
        let connection: Connection = serde_json::from_str(connection)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let opened = py.detach(|| CoreConversation::open(&connection, duration(limit_s)));
        Ok(Self {
            inner: Mutex::new(Some(opened.map_err(drive_error)?)),
        })
    }

    fn ask(&self, py: Python<'_>, sql: &str) -> PyResult<()> {
        py.detach(|| self.with(|inner| inner.ask(sql)))?
            .map_err(drive_error)
    }

    fn wait(&self, py: Python<'_>, limit_s: f64) -> PyResult<Option<String>> {
        let waited = py.detach(|| self.with(|inner| inner.wait(duration(limit_s))))?;
        let json = |reply| serde_json::to_string(&reply);
        let reply = waited.map_err(drive_error)?.map(json).transpose();
        reply.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn parameter(&self, name: &str) -> PyResult<Option<String>> {
        self.with(|inner| inner.parameter(name).map(str::to_owned))
    }

    #[getter]
    fn process_id(&self) -> PyResult<Option<i32>> {
        self.with(|inner| inner.process_id())
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.with(|inner| inner.cancel()))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.lock().take());
    }
}

impl Conversation {
    fn lock(&self) -> MutexGuard<'_, Option<CoreConversation>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut CoreConversation) -> T) -> PyResult<T> {
        let closed = || PyValueError::new_err("the connection is closed");
        Ok(work(self.lock().as_mut().ok_or_else(closed)?))
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}
