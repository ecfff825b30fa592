//! `loadstone._core.AdbcDatabase`, its connections and their answers.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use loadstone_adbc::{AdbcError as CoreError, Answer, Connection, Database, Interrupt, Target};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::data::{TableBatch, rows_from};
use crate::errors::AdbcError;

const STREAM: &CStr = c"arrow_array_stream";

/// How long a call that was interrupted is waited for before it is interrupted again.
const AGAIN: Duration = Duration::from_millis(5);

/// A database that is open in this process.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct AdbcDatabase {
    inner: Mutex<Option<Database>>,
}

#[pymethods]
impl AdbcDatabase {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let spec =
            serde_json::from_str(spec).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let opened = py.detach(|| Database::open(spec)).map_err(raised)?;
        Ok(Self {
            inner: Mutex::new(Some(opened)),
        })
    }

    fn connect(&self, py: Python<'_>) -> PyResult<AdbcConnection> {
        let opened = py.detach(|| lock(&self.inner).as_ref().map(Database::connect));
        let inner = opened.ok_or_else(|| closed("database"))?.map_err(raised)?;
        Ok(AdbcConnection {
            interrupt: inner.interrupter(),
            inner: Mutex::new(Some(inner)),
        })
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.inner).take()));
    }
}

/// A connection to it, used by one thread at a time.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct AdbcConnection {
    inner: Mutex<Option<Connection>>,
    interrupt: Arc<Interrupt>,
}

#[pymethods]
impl AdbcConnection {
    fn query(&self, py: Python<'_>, sql: &str) -> PyResult<AdbcAnswer> {
        let answer = self.within(py, |connection| connection.query(sql))?;
        Ok(AdbcAnswer { inner: answer })
    }

    fn append(
        &self,
        py: Python<'_>,
        target: (String, String, String),
        rows: &Bound<'_, PyAny>,
        piece: usize,
    ) -> PyResult<()> {
        let (catalog, schema, table) = target;
        let target = Target {
            catalog,
            schema,
            table,
        };
        let rows = rows_of(rows)?;
        self.within(py, |connection| connection.append(&target, &rows, piece))
    }

    fn each(&self, py: Python<'_>, sql: &str, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let rows = rows_of(rows)?;
        self.within(py, |connection| connection.each(sql, &rows))
    }

    fn interrupt(&self, py: Python<'_>) {
        py.detach(|| self.interrupt.interrupt());
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end());
    }
}

impl AdbcConnection {
    fn within<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Connection) -> Result<T, CoreError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| lock(&self.inner).as_mut().map(work));
        done.ok_or_else(|| closed("connection"))?.map_err(raised)
    }

    /// Close it; a call that another thread is in is interrupted.
    fn end(&self) {
        loop {
            match self.inner.try_lock() {
                Ok(mut inner) => return drop(inner.take()),
                Err(TryLockError::Poisoned(inner)) => return drop(inner.into_inner().take()),
                Err(TryLockError::WouldBlock) => self.interrupt.interrupt(),
            }
            thread::park_timeout(AGAIN);
        }
    }
}

/// A whole answer.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct AdbcAnswer {
    inner: Answer,
}

#[pymethods]
impl AdbcAnswer {
    /// The rows as a stream; another type is never offered, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let stream = FFI_ArrowArrayStream::new(self.inner.clone().into_reader());
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

fn rows_of(rows: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    match rows.cast::<TableBatch>() {
        Ok(batch) => Ok(batch.get().rows.clone()),
        Err(_) => rows_from(rows),
    }
}

fn lock<T>(inner: &Mutex<T>) -> MutexGuard<'_, T> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn raised(error: CoreError) -> PyErr {
    AdbcError::new_err((error.state, error.message))
}

fn closed(what: &str) -> PyErr {
    AdbcError::new_err((String::new(), format!("the {what} is closed")))
}
