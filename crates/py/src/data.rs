//! `loadstone._core.DataStream` and `TableBatch`.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::{Array, RecordBatch, StructArray};
use loadstone_drive::data::DataStream as CoreStream;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::drive_error;

/// The names that the Arrow `PyCapsule` interface gives its capsules.
pub(crate) const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Rows of a data set, in the order of its stream.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct DataStream {
    inner: Mutex<CoreStream>,
}

#[pymethods]
impl DataStream {
    #[new]
    #[pyo3(signature = (data, *, fingerprints = true))]
    fn new(py: Python<'_>, data: &str, fingerprints: bool) -> PyResult<Self> {
        let inner = py
            .detach(|| CoreStream::from_json(data, fingerprints))
            .map_err(drive_error)?;
        Ok(Self {
            inner: Mutex::new(inner),
        })
    }

    fn dataset(&self, py: Python<'_>) -> String {
        self.with(py, |stream| stream.dataset_document())
    }

    fn read(&self, py: Python<'_>, rows: usize) -> PyResult<Option<Vec<TableBatch>>> {
        let read = self.with(py, |stream| stream.read(rows));
        let read = read.map_err(drive_error)?;
        Ok(read.map(|batches| batches.into_iter().map(TableBatch::from).collect()))
    }

    fn fingerprints(&self, py: Python<'_>) -> PyResult<String> {
        let document = self.with(py, |stream| stream.fingerprints_document());
        document.ok_or_else(|| PyRuntimeError::new_err("this stream has no fingerprints"))
    }

    #[getter]
    fn rows(&self, py: Python<'_>) -> u64 {
        self.with(py, |stream| stream.rows())
    }

    #[getter]
    fn metrics(&self, py: Python<'_>) -> u64 {
        self.with(py, |stream| stream.metrics())
    }
}

impl DataStream {
    /// Call without the interpreter's lock: whoever reads may need it while it has the stream's.
    fn with<T: Send>(&self, py: Python<'_>, call: impl FnOnce(&mut CoreStream) -> T + Send) -> T {
        py.detach(|| call(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// How often a signal is looked for.
const SIGNALS: Duration = Duration::from_millis(50);

/// The fingerprint of plain rows; Ctrl-C ends it early.
#[pyfunction]
#[pyo3(signature = (data, threads = 0))]
pub(crate) fn fingerprint_rows(py: Python<'_>, data: &str, threads: usize) -> PyResult<String> {
    let stop = AtomicBool::new(false);
    let taken = thread::scope(|scope| {
        let taking = scope.spawn(|| loadstone_drive::data::fingerprint_rows(data, threads, &stop));
        let mut seen = Ok(());
        while seen.is_ok() && !taking.is_finished() {
            py.detach(|| thread::park_timeout(SIGNALS));
            seen = py.check_signals();
        }
        stop.store(seen.is_err(), Ordering::Relaxed);
        let taken = py.detach(|| taking.join());
        seen.map(|()| taken)
    })?;
    let taken = taken.map_err(|_| PyRuntimeError::new_err("computing the fingerprint failed"))?;
    let taken = taken.map_err(drive_error)?;
    taken.ok_or_else(|| PyRuntimeError::new_err("the fingerprint was not finished"))
}

/// Rows of one table.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct TableBatch {
    table: String,
    pub(crate) rows: RecordBatch,
}

impl From<loadstone_drive::data::TableBatch> for TableBatch {
    fn from(batch: loadstone_drive::data::TableBatch) -> Self {
        Self {
            table: batch.table,
            rows: batch.rows,
        }
    }
}

#[pymethods]
impl TableBatch {
    #[getter]
    fn table(&self) -> &str {
        &self.table
    }

    #[getter]
    fn rows(&self) -> usize {
        self.rows.num_rows()
    }

    /// The rows as a struct array; another type is never offered, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let rows = StructArray::from(self.rows.clone()).into_data();
        let (array, schema) = to_ffi(&rows).map_err(arrow_error)?;
        Ok((
            PyCapsule::new_with_value(py, schema, SCHEMA)?,
            PyCapsule::new_with_value(py, array, ARRAY)?,
        ))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.rows.schema().as_ref()).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}

pub(crate) fn arrow_error(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("the rows cannot cross into Python: {error}"))
}

/// Rows that another library of Python's process offers by Arrow's interface for arrays.
pub(crate) fn rows_from(offered: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) =
        offered.call_method0("__arrow_c_array__")?.extract()?;
    let schema = schema
        .pointer_checked(Some(SCHEMA))?
        .cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    #[expect(
        unsafe_code,
        reason = "the interface hands over pointers, which their capsules keep alive here"
    )]
    // SAFETY: the capsules' names say what they hold; the array is moved out, as the interface wants it, and the schema
    // only read.
    let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
    Ok(RecordBatch::from(StructArray::from(
        data.map_err(arrow_error)?,
    )))
}
