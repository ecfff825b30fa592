//! The formats that pyarrow knows, for the driver: `loadstone.formats` is called where the driver asks for them.
//!
//! The interpreter's lock is taken for a call, and pyarrow gives it back while it reads, decodes and compresses.

use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::{Schema, SchemaRef};
use loadstone_drive::DriveError;
use loadstone_drive::data::ParquetSpec;
use loadstone_drive::formats::{Compress, Formats, RowReader};
use loadstone_gen::dataset::SourceError;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict};

use crate::data::{SCHEMA, arrow_error, rows_from};

/// Bytes that are taken over at a time.
const READ_BYTES: usize = 1 << 20;

/// Call Python from a thread of the driver; an error once the interpreter ends.
fn attached<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
    let ending = || Err(PyRuntimeError::new_err("the interpreter has ended"));
    Python::try_attach(call).unwrap_or_else(ending)
}

/// What `loadstone.formats` knows.
pub(crate) struct PythonFormats;

impl Formats for PythonFormats {
    fn parquet(&self, spec: &ParquetSpec) -> Result<Box<dyn RowReader>, DriveError> {
        let opened = attached(|py| {
            let columns = spec.columns.iter().map(|c| (&*c.name, &*c.kind));
            let columns: Vec<_> = columns.collect();
            let rows = py
                .import("loadstone.formats.parquet")?
                .call_method1("open_rows", (&spec.paths, columns))?;
            let schema = Arc::new(schema(&rows.getattr("schema")?)?);
            let rows = rows.unbind();
            Ok(Box::new(PythonRows { rows, schema }) as Box<dyn RowReader>)
        });
        opened.map_err(|error| match refusal(&error) {
            Some((message, hint)) => DriveError::BadSpec { message, hint },
            None => DriveError::Data(SourceError::Failed(error.into())),
        })
    }

    fn zstd_file(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let stream = attached(|py| zstandard(py, "open_file", (path,)))?;
        Ok(Box::new(BufReader::with_capacity(
            READ_BYTES,
            PythonStream(stream),
        )))
    }

    fn zstd(&self) -> io::Result<Box<dyn Compress>> {
        let codec = attached(|py| zstandard(py, "codec", ()))?;
        Ok(Box::new(PythonCodec(codec)))
    }
}

fn zstandard<'py, A>(py: Python<'py>, name: &str, arguments: A) -> PyResult<Py<PyAny>>
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let module = py.import("loadstone.formats.zstandard")?;
    module.call_method1(name, arguments).map(Bound::unbind)
}

/// Message and hint of a `LoadstoneError`; none of any other exception.
fn refusal(error: &PyErr) -> Option<(String, String)> {
    let told = attached(|py| {
        let value = error.value(py);
        let message = value.getattr("message")?.extract()?;
        Ok((message, value.getattr("hint")?.extract()?))
    });
    told.ok()
}

/// Rows of a `ParquetRows`.
struct PythonRows {
    rows: Py<PyAny>,
    schema: SchemaRef,
}

impl RowReader for PythonRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn read(&mut self, rows: usize) -> Result<Option<RecordBatch>, SourceError> {
        let read = attached(|py| {
            let batch = self.rows.call_method1(py, intern!(py, "read"), (rows,))?;
            let batch = batch.into_bound(py);
            (!batch.is_none()).then(|| rows_from(&batch)).transpose()
        });
        let batch = read.map_err(|error| match refusal(&error) {
            Some((message, _)) => SourceError::Refused(message),
            None => SourceError::Failed(error.into()),
        })?;
        let fits = |batch: &RecordBatch| batch.schema().fields() == self.schema.fields();
        if batch.as_ref().is_none_or(fits) {
            return Ok(batch);
        }
        let message = "rows of Parquet have other columns than the files".to_owned();
        Err(SourceError::Refused(message))
    }
}

/// What a `read(n)` of Python gives.
struct PythonStream(Py<PyAny>);

impl Read for PythonStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = attached(|py| {
            let bytes = self
                .0
                .call_method1(py, intern!(py, "read"), (buffer.len(),))?;
            let bytes = bytes.bind(py).cast::<PyBytes>()?.as_bytes();
            let place = buffer.get_mut(..bytes.len());
            let place = place.ok_or_else(|| PyOSError::new_err("more was read than requested"))?;
            place.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        Ok(read?)
    }
}

/// A `pyarrow.Codec`.
struct PythonCodec(Py<PyAny>);

impl Compress for PythonCodec {
    fn compress(&mut self, plain: &[u8], packed: &mut Vec<u8>) -> io::Result<()> {
        let compressed = attached(|py| {
            let options = PyDict::new(py);
            options.set_item(intern!(py, "asbytes"), true)?;
            let plain = PyBytes::new(py, plain);
            let name = intern!(py, "compress");
            let bytes = self
                .0
                .call_method(py, name, (plain,), Some(&options))?
                .into_bound(py);
            packed.extend_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
            Ok(())
        });
        Ok(compressed?)
    }
}

/// The columns of an object of the Arrow `PyCapsule` interface.
fn schema(object: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let capsule = object.call_method0("__arrow_c_schema__")?;
    let place = capsule.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    #[expect(
        unsafe_code,
        reason = "the interface hands over a pointer, which its capsule keeps alive here"
    )]
    // SAFETY: the capsule's name says what it holds, and it is only read.
    let schema = unsafe { place.cast::<FFI_ArrowSchema>().as_ref() };
    Schema::try_from(schema).map_err(arrow_error)
}
