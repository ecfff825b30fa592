//! `loadstone._core.Drive` and `NullServer`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadstone_drive::null_server::{NullServer as CoreServer, NullSpec};
use loadstone_drive::{Drive as CoreDrive, DriveSpec};
use pyo3::prelude::*;

use crate::errors::{drive_error, system_error};

/// One drive phase.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct Drive {
    inner: Arc<CoreDrive>,
}

#[pymethods]
impl Drive {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let spec = DriveSpec::from_json(spec).map_err(drive_error)?;
        // Resolving a host's name may take a while.
        let inner = py.detach(|| CoreDrive::new(spec)).map_err(drive_error)?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.start()).map_err(drive_error)
    }

    fn progress(&self) -> String {
        self.inner.progress()
    }

    fn stop(&self) {
        self.inner.stop();
    }

    fn proceed(&self) {
        self.inner.proceed();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = Duration::try_from_secs_f64(timeout_s).unwrap_or(Duration::ZERO);
        py.detach(|| self.inner.wait(timeout))
            .transpose()
            .map_err(drive_error)
    }
}

/// The built-in server that answers at once.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct NullServer {
    inner: Mutex<CoreServer>,
}

#[pymethods]
impl NullServer {
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let spec = NullSpec::from_json(spec).map_err(drive_error)?;
        let inner = CoreServer::from_spec(&spec).map_err(|e| system_error(&e))?;
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }

    #[getter]
    fn port(&self) -> u16 {
        self.lock().port()
    }

    #[getter]
    fn socket_directory(&self) -> String {
        self.lock()
            .socket_directory()
            .to_string_lossy()
            .into_owned()
    }

    fn cpu_ns(&self) -> u64 {
        self.lock().cpu_ns()
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.lock().stop());
    }
}

impl NullServer {
    fn lock(&self) -> std::sync::MutexGuard<'_, CoreServer> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Median cost of reading the driver's clock once, nanoseconds.
#[pyfunction]
pub(crate) fn clock_cost_ns(py: Python<'_>) -> f64 {
    py.detach(loadstone_drive::clock::cost_ns)
}

/// Median cost of recording one sample, nanoseconds.
#[pyfunction]
pub(crate) fn record_cost_ns(py: Python<'_>) -> f64 {
    py.detach(loadstone_drive::record::cost_ns)
}
