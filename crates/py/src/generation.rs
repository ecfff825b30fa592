//! `loadstone._core.Generation`.

use std::time::Duration;

use loadstone_drive::generate::{Generation as CoreGeneration, GenerationSpec};
use pyo3::prelude::*;

use crate::errors::drive_error;

/// One data set that becomes files.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct Generation {
    inner: CoreGeneration,
}

#[pymethods]
impl Generation {
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let spec = GenerationSpec::from_json(spec).map_err(drive_error)?;
        Ok(Self {
            inner: CoreGeneration::new(spec),
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

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<String>> {
        let timeout = Duration::try_from_secs_f64(timeout_s).unwrap_or(Duration::ZERO);
        py.detach(|| self.inner.wait(timeout))
            .transpose()
            .map_err(drive_error)
    }
}
