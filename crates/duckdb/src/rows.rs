//! Rows of our memory that a statement reads: `select … from loadstone_rows(NUMBER)`.
//!
//! A function of the database hands DuckDB the vectors that refer to Arrow's memory. It is kept in DuckDB's own catalog
//! in memory, so that nothing of it is written into anybody's file, as a view would be.

#![expect(unsafe_code, reason = "calls of the library's functions")]

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::ArrowError;

use crate::answer::Chunk;
use crate::api::{Api, BIGINT, Handle, is_ok};
use crate::error::{DuckError, c_text};

const FUNCTION: &str = "loadstone_rows";

/// Rows as DuckDB takes them, at most one of its vectors at a time: more it would write beyond where it converts.
pub(crate) struct Rows {
    api: &'static Api,
    names: Vec<CString>,
    chunks: Vec<Chunk>,
    count: u64,
}

// SAFETY: chunks are read by whichever thread runs the statement, and nobody writes them.
unsafe impl Send for Rows {}
// SAFETY: as above.
unsafe impl Sync for Rows {}

impl Rows {
    /// Convert rows by the settings of a connection; their memory is kept, not copied.
    pub(crate) fn new(
        api: &'static Api,
        connection: Handle,
        rows: &RecordBatch,
    ) -> Result<Self, DuckError> {
        let schema = rows.schema();
        let mut foreign = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|e| refused(&e))?;
        let types = Types::new(api, connection, &mut foreign)?;
        // SAFETY: it has no arguments.
        let step = usize::try_from(unsafe { (api.duckdb_vector_size)() }).unwrap_or(usize::MAX);
        let chunks: Result<Vec<_>, _> = (0..rows.num_rows().max(1))
            .step_by(step)
            .map(|first| types.chunk(&rows.slice(first, step.min(rows.num_rows() - first))))
            .collect();
        let names: Result<Vec<_>, _> = schema.fields().iter().map(|f| c_text(f.name())).collect();
        Ok(Self {
            api,
            names: names?,
            chunks: chunks?,
            count: rows.num_rows() as u64,
        })
    }

    /// Tell DuckDB the columns.
    fn tell(&self, bind: Handle) {
        let api = self.api;
        let Some(first) = self.chunks.first() else {
            return;
        };
        // SAFETY: DuckDB waits for this; each type is destroyed, and there are as many vectors as names.
        unsafe {
            for (place, name) in (0..).zip(&self.names) {
                let vector = (api.duckdb_data_chunk_get_vector)(first.handle, place);
                let mut kind = (api.duckdb_vector_get_column_type)(vector);
                (api.duckdb_bind_add_result_column)(bind, name.as_ptr(), kind);
                (api.duckdb_destroy_logical_type)(&raw mut kind);
            }
            (api.duckdb_bind_set_cardinality)(bind, self.count, true);
        }
    }

    /// Let DuckDB's vectors refer to those of the chunk at this place; behind the last there are no rows.
    fn fill(&self, place: usize, output: Handle) {
        let api = self.api;
        // SAFETY: the output has the columns that it was told, which are those of each chunk.
        unsafe {
            let Some(chunk) = self.chunks.get(place) else {
                return (api.duckdb_data_chunk_set_size)(output, 0);
            };
            for column in 0..self.names.len() as u64 {
                (api.duckdb_vector_reference_vector)(
                    (api.duckdb_data_chunk_get_vector)(output, column),
                    (api.duckdb_data_chunk_get_vector)(chunk.handle, column),
                );
            }
            let size = (api.duckdb_data_chunk_get_size)(chunk.handle);
            (api.duckdb_data_chunk_set_size)(output, size);
        }
    }
}

/// How DuckDB reads columns of Arrow.
struct Types {
    api: &'static Api,
    connection: Handle,
    handle: Handle,
}

impl Types {
    fn new(
        api: &'static Api,
        connection: Handle,
        schema: &mut FFI_ArrowSchema,
    ) -> Result<Self, DuckError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the connection is open, and the schema is only read.
        api.check(unsafe { (api.duckdb_schema_from_arrow)(connection, schema, &raw mut handle) })?;
        Ok(Self {
            api,
            connection,
            handle,
        })
    }

    fn chunk(&self, rows: &RecordBatch) -> Result<Chunk, DuckError> {
        let mut array = FFI_ArrowArray::new(&StructArray::from(rows.clone()).into_data());
        let mut made = ptr::null_mut();
        // SAFETY: the array goes over to the chunk; where that fails it is released with `array`.
        let error = unsafe {
            (self.api.duckdb_data_chunk_from_arrow)(
                self.connection,
                &raw mut array,
                self.handle,
                &raw mut made,
            )
        };
        self.api.check(error)?;
        Ok(Chunk::new(self.api, made))
    }
}

impl Drop for Types {
    fn drop(&mut self) {
        // SAFETY: they are ours.
        unsafe { (self.api.duckdb_destroy_arrow_converted_schema)(&raw mut self.handle) }
    }
}

fn refused(error: &ArrowError) -> DuckError {
    DuckError::new("Error", format!("the rows cannot be sent: {error}"))
}

/// What a statement calls the rows of this number.
pub(crate) fn name(number: i64) -> String {
    format!("{FUNCTION}({number})")
}

/// What connections insert just now, by their numbers.
#[derive(Default)]
pub(crate) struct Incoming {
    held: Mutex<BTreeMap<i64, Arc<Rows>>>,
    next: AtomicI64,
}

impl Incoming {
    /// A number for a connection.
    pub(crate) fn number(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Keep rows for a statement until the guard is dropped.
    pub(crate) fn hold(&self, number: i64, rows: Rows) -> Held<'_> {
        self.held().insert(number, Arc::new(rows));
        Held(self, number)
    }

    fn rows(&self, number: i64) -> Option<Arc<Rows>> {
        self.held().get(&number).cloned()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<i64, Arc<Rows>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rows are there for a statement.
pub(crate) struct Held<'a>(&'a Incoming, i64);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.held().remove(&self.1);
    }
}

/// Make the function known to the database of this connection.
pub(crate) fn offer(
    api: &'static Api,
    connection: Handle,
    incoming: &Arc<Incoming>,
) -> Result<(), DuckError> {
    let name = c_text(FUNCTION)?;
    // SAFETY: what is made is destroyed; DuckDB keeps its own copy, and `Incoming` until the database is closed.
    let state = unsafe {
        let mut function = (api.duckdb_create_table_function)();
        let mut number = (api.duckdb_create_logical_type)(BIGINT);
        (api.duckdb_table_function_set_name)(function, name.as_ptr());
        (api.duckdb_table_function_add_parameter)(function, number);
        (api.duckdb_destroy_logical_type)(&raw mut number);
        let extra = Arc::into_raw(Arc::clone(incoming)).cast_mut().cast();
        (api.duckdb_table_function_set_extra_info)(function, extra, forget::<Incoming>);
        (api.duckdb_table_function_set_bind)(function, bind);
        (api.duckdb_table_function_set_init)(function, begin);
        (api.duckdb_table_function_set_function)(function, fill);
        let state = (api.duckdb_register_table_function)(connection, function);
        (api.duckdb_destroy_table_function)(&raw mut function);
        state
    };
    if is_ok(state) {
        return Ok(());
    }
    let said = "DuckDB refuses the function that reads rows";
    Err(DuckError::new("InternalException", said))
}

unsafe extern "C" fn forget<T>(kept: Handle) {
    // SAFETY: DuckDB gives back what `Arc::into_raw` made, once.
    drop(unsafe { Arc::from_raw(kept.cast::<T>()) });
}

/// DuckDB asks which columns there are.
unsafe extern "C" fn bind(info: Handle) {
    let Some(api) = Api::loaded() else {
        return;
    };
    // SAFETY: what `offer` gave, as long as the database is open; the value is destroyed.
    let found = unsafe {
        let incoming = (api.duckdb_bind_get_extra_info)(info).cast::<Incoming>();
        let mut number = (api.duckdb_bind_get_parameter)(info, 0);
        let found = (*incoming).rows((api.duckdb_get_int64)(number));
        (api.duckdb_destroy_value)(&raw mut number);
        found
    };
    // SAFETY: DuckDB copies the text, and keeps the rows until the statement has ended.
    unsafe {
        let Some(rows) = found else {
            return (api.duckdb_bind_set_error)(info, c"there are no rows of this number".as_ptr());
        };
        rows.tell(info);
        let kept = Arc::into_raw(rows).cast_mut().cast();
        (api.duckdb_bind_set_bind_data)(info, kept, forget::<Rows>);
    }
}

/// DuckDB begins to read; one thread does.
unsafe extern "C" fn begin(info: Handle) {
    if let Some(api) = Api::loaded() {
        let place = Arc::into_raw(Arc::new(AtomicUsize::new(0)));
        // SAFETY: DuckDB keeps it until the statement has ended.
        unsafe {
            (api.duckdb_init_set_init_data)(info, place.cast_mut().cast(), forget::<AtomicUsize>);
        }
    }
}

/// DuckDB wants the next rows.
unsafe extern "C" fn fill(info: Handle, output: Handle) {
    if let Some(api) = Api::loaded() {
        // SAFETY: what `bind` and `begin` gave.
        unsafe {
            let rows = (api.duckdb_function_get_bind_data)(info).cast::<Rows>();
            let place = (api.duckdb_function_get_init_data)(info).cast::<AtomicUsize>();
            (*rows).fill((*place).fetch_add(1, Ordering::Relaxed), output);
        }
    }
}
