//! `loadstone._core.Drive` and `NullServer`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadstone_drive::library::Library;
use loadstone_drive::null_server::{NullServer as CoreServer, NullSpec};
use loadstone_drive::{Drive as CoreDrive, DriveSpec};
use pyo3::prelude::*;

use crate::duckdb::NativeLibrary;
use crate::errors::{drive_error, system_error};
use crate::library::{PyLibrary, Trouble};

/// One drive phase.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct Drive {
    inner: Option<Arc<CoreDrive>>,
    /// What a library's calls raised that is no trouble of the database.
    trouble: Option<Trouble>,
    /// The account was given, or what was raised.
    ended: AtomicBool,
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (spec, library = None))]
    fn new(py: Python<'_>, spec: &str, library: Option<Py<PyAny>>) -> PyResult<Self> {
        let spec = DriveSpec::from_json(spec).map_err(drive_error)?;
        let (library, trouble) = library.map(|given| reached(py, given)).unzip();
        // Resolving a host's name, or opening the rows of a load, may take a while.
        let inner = py.detach(|| match library {
            Some(library) => CoreDrive::through(spec, library),
            None => CoreDrive::new(spec),
        });
        Ok(Self {
            inner: Some(Arc::new(inner.map_err(drive_error)?)),
            trouble: trouble.flatten(),
            ended: AtomicBool::new(false),
        })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner().start()).map_err(drive_error)
    }

    fn progress(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner().progress())
    }

    fn stop(&self) {
        self.inner().stop();
    }

    fn go(&self, at_ns: u64) {
        self.inner().go(at_ns);
    }

    fn proceed(&self, py: Python<'_>) {
        py.detach(|| self.inner().proceed());
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = Duration::try_from_secs_f64(timeout_s).unwrap_or(Duration::ZERO);
        if self.ended.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let waited = py.detach(|| self.inner().wait(timeout));
        self.ended.store(waited.is_some(), Ordering::Relaxed);
        if waited.is_some()
            && let Some(raised) = self.raised()
        {
            return Err(raised);
        }
        waited.transpose().map_err(drive_error)
    }
}

impl Drive {
    #[expect(clippy::expect_used, reason = "it is taken out when this is dropped")]
    fn inner(&self) -> &CoreDrive {
        self.inner.as_deref().expect("a drive")
    }

    fn raised(&self) -> Option<PyErr> {
        let trouble = self.trouble.as_ref()?;
        trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        // Its threads may wait for the interpreter.
        let inner = self.inner.take();
        Python::attach(|py| py.detach(|| drop(inner)));
    }
}

/// How a drive reaches a library: by itself, or through an object of Python, with what that raises.
fn reached(py: Python<'_>, given: Py<PyAny>) -> (Arc<dyn Library>, Option<Trouble>) {
    if let Ok(native) = given.bind(py).cast::<NativeLibrary>() {
        return (Arc::clone(&native.get().0), None);
    }
    let (library, trouble) = PyLibrary::new(given);
    (Arc::new(library), Some(trouble))
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

/// Merge what several hosts have recorded; returns the account of them together.
#[pyfunction]
pub(crate) fn merge_hosts(py: Python<'_>, document: &str) -> PyResult<String> {
    py.detach(|| loadstone_drive::merge(document))
        .map_err(drive_error)
}
