//! `loadstone._core.Recorder`.

use loadstone_drive::DriveError as CoreError;
use loadstone_drive::recorder::{Recorder as CoreRecorder, RecorderSpec, Times};
use pyo3::prelude::*;
use serde_json::Map;

use crate::errors::drive_error;

/// What a drive writes down, for work that goes through a Python driver.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct Recorder {
    inner: CoreRecorder,
}

fn bad_document(what: &str, error: &serde_json::Error) -> PyErr {
    drive_error(CoreError::BadSpec {
        message: format!("{what} does not parse: {error}"),
        hint: String::new(),
    })
}

#[pymethods]
impl Recorder {
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let spec: RecorderSpec = serde_json::from_str(spec)
            .map_err(|e| bad_document("the recorder's specification", &e))?;
        let inner = CoreRecorder::new(spec).map_err(drive_error)?;
        Ok(Self { inner })
    }

    fn begin(&self) -> PyResult<u64> {
        self.inner.begin().map_err(drive_error)
    }

    /// Short: the interpreter is kept.
    #[pyo3(signature = (label, intended_ns, start_ns, end_ns, ok=true))]
    fn sample(
        &self,
        label: usize,
        intended_ns: u64,
        start_ns: u64,
        end_ns: u64,
        ok: bool,
    ) -> PyResult<()> {
        let times = Times {
            intended_ns,
            start_ns,
            end_ns,
        };
        if ok {
            self.inner.done(label, times).map_err(drive_error)
        } else {
            let (state, message) = ("unknown", "failed without a word");
            self.inner
                .failed(label, times, state, message)
                .map_err(drive_error)
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the times of one sample, one by one: making an object of them costs more than recording"
    )]
    fn fail(
        &self,
        label: usize,
        intended_ns: u64,
        start_ns: u64,
        end_ns: u64,
        state: &str,
        message: &str,
    ) -> PyResult<()> {
        let times = Times {
            intended_ns,
            start_ns,
            end_ns,
        };
        self.inner
            .failed(label, times, state, message)
            .map_err(drive_error)
    }

    #[pyo3(signature = (rows, metrics=0))]
    fn rows(&self, rows: u64, metrics: u64) -> PyResult<()> {
        self.inner.rows(rows, metrics).map_err(drive_error)
    }

    fn progress(&self) -> String {
        self.inner.progress()
    }

    #[pyo3(signature = (state, reason=None, more=None))]
    fn finish(
        &self,
        py: Python<'_>,
        state: &str,
        reason: Option<&str>,
        more: Option<&str>,
    ) -> PyResult<String> {
        let more = more.map_or_else(|| Ok(Map::new()), serde_json::from_str);
        let more = more.map_err(|e| bad_document("what is to be added to drive.json", &e))?;
        py.detach(|| self.inner.finish(state, reason, more))
            .map_err(drive_error)
    }
}
