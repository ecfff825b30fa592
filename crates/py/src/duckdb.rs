//! `loadstone._core.DuckDatabase`, its connections, their answers and the clients of drives.

use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use loadstone_drive::library::Library;
use loadstone_duckdb::{
    Answer, ClientSpec, Connection, Database, DuckError as CoreError, DuckLibrary, Interrupt, Spec,
    Value,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyString};

const STREAM: &CStr = c"arrow_array_stream";

/// How long a call that was interrupted is waited for before it is interrupted again.
const AGAIN: Duration = Duration::from_millis(5);

/// A database that is open in this process.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct DuckDatabase {
    inner: Mutex<Option<Database>>,
}

#[pymethods]
impl DuckDatabase {
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let spec: Spec = parsed(spec)?;
        let opened = py.detach(|| Database::open(&spec)).map_err(raised)?;
        Ok(Self {
            inner: Mutex::new(Some(opened)),
        })
    }

    fn connect(&self, py: Python<'_>) -> PyResult<DuckConnection> {
        let database = self.open()?;
        let inner = py.detach(move || database.connect()).map_err(raised)?;
        Ok(DuckConnection {
            interrupt: inner.interrupter(),
            inner: Mutex::new(Some(inner)),
        })
    }

    fn clients(&self, spec: &str) -> PyResult<NativeLibrary> {
        let spec: ClientSpec = parsed(spec)?;
        let library = DuckLibrary::new(self.open()?, spec);
        Ok(NativeLibrary(Arc::new(library)))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(lock(&self.inner).take()));
    }
}

impl DuckDatabase {
    fn open(&self) -> PyResult<Database> {
        lock(&self.inner).clone().ok_or_else(|| closed("database"))
    }
}

/// Clients that a drive calls without the interpreter.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct NativeLibrary(pub(crate) Arc<dyn Library>);

/// A connection to it, used by one thread at a time.
#[pyclass(frozen, module = "loadstone._core")]
pub(crate) struct DuckConnection {
    inner: Mutex<Option<Connection>>,
    interrupt: Arc<Interrupt>,
}

#[pymethods]
impl DuckConnection {
    #[pyo3(signature = (sql, params = None))]
    fn query(
        &self,
        py: Python<'_>,
        sql: &str,
        params: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<DuckAnswer> {
        let values = params.map(values).transpose()?.unwrap_or_default();
        let inner = self.within(py, |connection| {
            if values.is_empty() {
                connection.query(sql)
            } else {
                connection.query_with(sql, &values)
            }
        })?;
        Ok(DuckAnswer { inner })
    }

    fn interrupt(&self, py: Python<'_>) {
        py.detach(|| self.interrupt.interrupt());
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.end());
    }
}

impl DuckConnection {
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
pub(crate) struct DuckAnswer {
    inner: Answer,
}

#[pymethods]
impl DuckAnswer {
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

fn parsed<T: for<'a> serde::Deserialize<'a>>(spec: &str) -> PyResult<T> {
    serde_json::from_str(spec).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn values(params: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Value)>> {
    let items = params.iter();
    items
        .map(|(name, given)| Ok((name.extract()?, value(&given)?)))
        .collect()
}

fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if given.is_none() {
        Ok(Value::Null)
    } else if given.is_instance_of::<PyBool>() {
        Ok(Value::Bool(given.extract()?))
    } else if given.is_instance_of::<PyInt>() {
        Ok(Value::Int(given.extract()?))
    } else if given.is_instance_of::<PyFloat>() {
        Ok(Value::Float(given.extract()?))
    } else if given.is_instance_of::<PyString>() {
        Ok(Value::Text(given.extract()?))
    } else {
        let kind = given.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "a parameter cannot be a {kind}"
        )))
    }
}

fn lock<T>(inner: &Mutex<T>) -> MutexGuard<'_, T> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The exception of DuckDB's own package for this kind of error; it is there, since its library is.
fn raised(error: CoreError) -> PyErr {
    Python::attach(|py| {
        let package = py.import("duckdb");
        let found = package.and_then(|package| package.getattr(error.state.as_str()));
        match found.and_then(|kind| kind.call1((error.message.as_str(),))) {
            Ok(exception) => PyErr::from_value(exception),
            Err(_) => PyRuntimeError::new_err(error.message),
        }
    })
}

fn closed(what: &str) -> PyErr {
    raised(CoreError {
        state: "ConnectionException".to_owned(),
        message: format!("the {what} is closed"),
    })
}
