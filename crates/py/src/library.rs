//! A database behind a Python client library, for the core's clients: the interpreter is held for each call only.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator};
use loadstone_drive::library::{
    ArrowStream, Call, Interrupter, Library, LibraryClient, LibraryError, RowBatch as CoreBatch,
    Sent,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::data::TableBatch;

/// The name that the Arrow `PyCapsule` interface gives a stream.
const STREAM: &CStr = c"arrow_array_stream";

/// What calls raised that is no trouble of the database: the first is raised again where the drive is awaited.
pub(crate) type Trouble = Arc<Mutex<Option<PyErr>>>;

/// The object that a drive is given: see `Library` in `loadstone/engine/library/client.py`.
pub(crate) struct PyLibrary {
    object: Py<PyAny>,
    trouble: Trouble,
}

impl PyLibrary {
    pub(crate) fn new(object: Py<PyAny>) -> (Self, Trouble) {
        let trouble = Trouble::default();
        let library = Self {
            object,
            trouble: Arc::clone(&trouble),
        };
        (library, trouble)
    }

    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            object: self.object.clone_ref(py),
            trouble: Arc::clone(&self.trouble),
        }
    }

    /// What an exception means: one of the library's own is counted, any other ends the drive.
    fn error(&self, py: Python<'_>, raised: PyErr) -> LibraryError {
        self.read(py, &raised)
            .unwrap_or_else(|| self.end(py, raised))
    }

    fn read(&self, py: Python<'_>, raised: &PyErr) -> Option<LibraryError> {
        let object = self.object.bind(py);
        let errors = object.getattr("errors").ok()?.cast_into::<PyTuple>().ok()?;
        if !raised.matches(py, &errors).ok()? {
            return None;
        }
        let said = object.call_method1("describe", (raised.value(py),)).ok()?;
        let (state, message): (String, String) = said.extract().ok()?;
        let again = object
            .call_method1("is_retriable", (raised.value(py),))
            .ok()?;
        Some(LibraryError {
            is_retriable: again.extract().ok()?,
            ..LibraryError::new(&state, &message)
        })
    }

    fn end(&self, py: Python<'_>, raised: PyErr) -> LibraryError {
        let message = raised.value(py).to_string();
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(raised);
        LibraryError {
            state: "internal".to_owned(),
            message,
            is_retriable: false,
            ends_drive: true,
        }
    }
}

impl Library for PyLibrary {
    fn connect(&self, number: usize) -> Result<Box<dyn LibraryClient>, LibraryError> {
        Python::attach(|py| {
            let connected = self.object.bind(py).call_method1("connect", (number,));
            // Whatever it is: the drive does not begin.
            let client = connected.map_err(|raised| self.end(py, raised))?;
            Ok(Box::new(PyClient {
                client: Arc::new(client.unbind()),
                library: self.clone_ref(py),
            }) as Box<dyn LibraryClient>)
        })
    }

    fn finish(&self) -> Result<(), LibraryError> {
        Python::attach(|py| {
            let finished = self.object.bind(py).call_method0("finish");
            finished.map(drop).map_err(|raised| self.error(py, raised))
        })
    }
}

/// One client.
struct PyClient {
    client: Arc<Py<PyAny>>,
    library: PyLibrary,
}

impl LibraryClient for PyClient {
    fn send(&mut self, rows: &CoreBatch, call: &Call) -> Result<Sent, LibraryError> {
        Python::attach(|py| {
            let sent = self.put(py, rows, call);
            sent.map_err(|raised| self.library.error(py, raised))?;
            Ok(Sent { rows: rows.rows })
        })
    }

    fn query(&mut self, sql: &str, call: &Call) -> Result<ArrowStream, LibraryError> {
        Python::attach(|py| {
            let client = self.client.bind(py);
            call.enter();
            let answered = client.call_method1("query", (sql,));
            call.leave();
            let answer = answered.map_err(|raised| self.library.error(py, raised))?;
            let read = tell(client, sql, &answer).and_then(|()| stream(&answer));
            read.map_err(|raised| self.library.end(py, raised))
        })
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        Arc::new(PyInterrupter(Arc::clone(&self.client)))
    }

    fn mode(&self) -> String {
        let mode = Python::attach(|py| self.client.getattr(py, "mode").ok()?.extract(py).ok());
        mode.unwrap_or_else(|| "driver".to_owned())
    }
}

impl PyClient {
    fn put(&self, py: Python<'_>, rows: &CoreBatch, call: &Call) -> PyResult<()> {
        let batch = Bound::new(py, RowBatch::new(py, rows)?)?;
        let client = self.client.bind(py);
        if call.has_marks() {
            let mark = Bound::new(py, Mark(call.clone()))?;
            call.enter();
            client.call_method1("send", (batch, mark))?;
        } else {
            call.enter();
            client.call_method1("send", (batch,))?;
        }
        call.leave();
        Ok(())
    }
}

impl Drop for PyClient {
    fn drop(&mut self) {
        Python::attach(|py| {
            // What a connection says at its end is of no use to anybody.
            let _ = self.client.call_method0(py, "close");
        });
    }
}

struct PyInterrupter(Arc<Py<PyAny>>);

impl Interrupter for PyInterrupter {
    fn interrupt(&self) {
        Python::attach(|py| {
            // It is tried again as long as the call goes on.
            let _ = self.0.call_method0(py, "interrupt");
        });
    }
}

/// Whoever shows answers is given them, outside the clock.
fn tell(client: &Bound<'_, PyAny>, sql: &str, answer: &Bound<'_, PyAny>) -> PyResult<()> {
    match client.getattr_opt("answered")? {
        Some(answered) if !answered.is_none() => answered.call1((sql, answer)).map(drop),
        _ => Ok(()),
    }
}

/// An answer as the core reads it; one that is not Arrow has no rows there.
pub(crate) fn stream(answer: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let Some(export) = answer.getattr_opt("__arrow_c_stream__")? else {
        let none = std::iter::empty::<Result<RecordBatch, _>>();
        let schema = Arc::new(arrow_schema::Schema::empty());
        return Ok(Box::new(RecordBatchIterator::new(none, schema)));
    };
    let capsule = export.call0()?.cast_into::<PyCapsule>()?;
    let raw = capsule.pointer_checked(Some(STREAM))?;
    #[expect(
        unsafe_code,
        reason = "a capsule of this name holds a stream of the C interface, which is moved out of it"
    )]
    let reader =
        unsafe { RecordBatchStreamReader::from_raw(raw.as_ptr().cast::<FFI_ArrowArrayStream>()) };
    let reader = reader.map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Ok(Box::new(reader))
}

/// The digest of an answer that is Arrow, as JSON.
#[pyfunction]
pub(crate) fn answer_digest(answer: &Bound<'_, PyAny>) -> PyResult<String> {
    let stream = stream(answer)?;
    let digested = answer
        .py()
        .detach(|| loadstone_drive::answer_digest(stream));
    digested.map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// Rows of one transaction.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct RowBatch {
    number: u64,
    rows: u64,
    tags: Py<PyTuple>,
    tables: Py<PyTuple>,
}

impl RowBatch {
    fn new(py: Python<'_>, batch: &CoreBatch) -> PyResult<Self> {
        let wrap = |parts: &[loadstone_drive::data::TableBatch]| -> PyResult<Py<PyTuple>> {
            let parts = parts
                .iter()
                .map(|part| Bound::new(py, TableBatch::from(part.clone())))
                .collect::<PyResult<Vec<_>>>()?;
            Ok(PyTuple::new(py, parts)?.unbind())
        };
        Ok(Self {
            number: batch.number,
            rows: batch.rows,
            tags: wrap(&batch.tags)?,
            tables: wrap(&batch.tables)?,
        })
    }
}

#[pymethods]
impl RowBatch {
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    #[getter]
    fn rows(&self) -> u64 {
        self.rows
    }

    #[getter]
    fn tags(&self, py: Python<'_>) -> Py<PyTuple> {
        self.tags.clone_ref(py)
    }

    #[getter]
    fn tables(&self, py: Python<'_>) -> Py<PyTuple> {
        self.tables.clone_ref(py)
    }
}

/// Is told how many rows of a long transaction are in.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct Mark(Call);

#[pymethods]
impl Mark {
    fn __call__(&self, rows: u64) {
        self.0.mark(rows);
    }
}
