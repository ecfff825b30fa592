//! A whole answer, as Arrow.

#![expect(unsafe_code, reason = "calls of the library's functions")]

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use crate::api::{Api, Handle};
use crate::error::DuckError;
use crate::statement::QueryResult;

/// What a statement gave, all of it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, in the pieces in which the library gave them.
    pub batches: Vec<RecordBatch>,
}

impl Answer {
    /// Its rows as a stream.
    #[must_use]
    pub fn into_reader(self) -> Box<dyn RecordBatchReader + Send> {
        let batches = self.batches.into_iter().map(Ok::<_, ArrowError>);
        Box::new(RecordBatchIterator::new(batches, self.schema))
    }

    /// All rows of a result; `go_on` is asked between two pieces.
    pub(crate) fn read(
        result: &mut QueryResult,
        go_on: impl Fn() -> Result<(), DuckError>,
    ) -> Result<Self, DuckError> {
        if result.is_nothing() {
            let (schema, batches) = (Arc::new(Schema::empty()), Vec::new());
            return Ok(Self { schema, batches });
        }
        let options = Options::of(result);
        let schema = Arc::new(options.schema(result)?);
        let kind = DataType::Struct(schema.fields().clone());
        let mut batches = Vec::new();
        while let Some(chunk) = Chunk::next(result) {
            go_on()?;
            batches.push(options.batch(&chunk, &kind, &schema)?);
        }
        Ok(Self { schema, batches })
    }
}

/// How the connection wants its types shown as Arrow's.
struct Options {
    api: &'static Api,
    handle: Handle,
}

impl Options {
    fn of(result: &mut QueryResult) -> Self {
        let api = result.api;
        // SAFETY: the result is open.
        let handle = unsafe { (api.duckdb_result_get_arrow_options)(&raw mut result.raw) };
        Self { api, handle }
    }

    fn schema(&self, result: &mut QueryResult) -> Result<Schema, DuckError> {
        let (api, raw) = (self.api, &raw mut result.raw);
        let mut made = FFI_ArrowSchema::empty();
        // SAFETY: the result is open and owns the names; the types are destroyed below, the schema is moved in.
        let error = unsafe {
            let count = (api.duckdb_column_count)(raw);
            let mut names: Vec<*const c_char> = (0..count)
                .map(|n| (api.duckdb_column_name)(raw, n))
                .collect();
            let mut types: Vec<Handle> = (0..count)
                .map(|n| (api.duckdb_column_logical_type)(raw, n))
                .collect();
            let error = (api.duckdb_to_arrow_schema)(
                self.handle,
                types.as_mut_ptr(),
                names.as_mut_ptr(),
                count,
                &raw mut made,
            );
            for kind in &mut types {
                (api.duckdb_destroy_logical_type)(kind);
            }
            error
        };
        api.check(error)?;
        Schema::try_from(&made).map_err(|error| unread(&error))
    }

    fn batch(
        &self,
        chunk: &Chunk,
        kind: &DataType,
        schema: &SchemaRef,
    ) -> Result<RecordBatch, DuckError> {
        let mut made = FFI_ArrowArray::empty();
        // SAFETY: the chunk is ours; the array is moved in.
        let error = unsafe {
            (self.api.duckdb_data_chunk_to_arrow)(self.handle, chunk.handle, &raw mut made)
        };
        self.api.check(error)?;
        // SAFETY: the library made the array of these types.
        let data = unsafe { from_ffi_and_data_type(made, kind.clone()) };
        let rows = StructArray::from(data.map_err(|error| unread(&error))?);
        // By its fields alone the rows would have another schema than the answer, which has metadata.
        let (_, columns, _) = rows.into_parts();
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(|error| unread(&error))
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: they are ours.
        unsafe { (self.api.duckdb_destroy_arrow_options)(&raw mut self.handle) }
    }
}

/// Some rows, as the library keeps them.
pub(crate) struct Chunk {
    api: &'static Api,
    pub(crate) handle: Handle,
}

impl Chunk {
    /// Take what a function of the library made.
    pub(crate) fn new(api: &'static Api, handle: Handle) -> Self {
        Self { api, handle }
    }

    fn next(result: &QueryResult) -> Option<Self> {
        // SAFETY: the result is open.
        let handle = unsafe { (result.api.duckdb_fetch_chunk)(result.raw) };
        (!handle.is_null()).then(|| Self::new(result.api, handle))
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: it is ours, and nobody uses it any more.
        unsafe { (self.api.duckdb_destroy_data_chunk)(&raw mut handle) }
    }
}

fn unread(error: &ArrowError) -> DuckError {
    DuckError::new("Error", format!("the answer cannot be read: {error}"))
}
