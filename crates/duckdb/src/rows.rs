//! Rows of our memory that a statement reads: `select … from VIEW`.
//!
//! A view shows a stream of Arrow's C interface, so DuckDB reads the rows where they are, by as many threads as there
//! are groups of rows. Views are kept in a database of their own in memory: nothing of them is written into anybody's
//! file.

#![expect(unsafe_code, reason = "calls of the library's functions")]

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::SchemaRef;

use crate::api::{Api, Handle, is_ok};
use crate::error::{DuckError, c_text};
use crate::statement::QueryResult;

const DATABASE: &str = "__loadstone_rows";
/// What one of DuckDB's threads takes at once: a whole group of rows of its tables, which that thread then compresses
/// and writes alone. Smaller pieces would be joined by copying them.
const PIECE_ROWS: usize = 122_880;
const FAILED: c_int = 22;

/// `ArrowArrayStream` of Arrow's C interface.
#[repr(C)]
struct Stream {
    get_schema: unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowSchema) -> c_int,
    get_next: unsafe extern "C" fn(*mut Stream, *mut FFI_ArrowArray) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut Stream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    source: *const Source,
}

/// Where a view's rows come from: one statement at a time empties it.
struct Source {
    /// At a fixed address, which the view knows.
    stream: UnsafeCell<Stream>,
    schema: SchemaRef,
    pieces: Mutex<VecDeque<RecordBatch>>,
}

// SAFETY: the stream is written while no statement reads the view; the rest is locked or constant.
unsafe impl Sync for Source {}
// SAFETY: as above.
unsafe impl Send for Source {}

impl Source {
    fn new(schema: SchemaRef) -> Arc<Self> {
        Arc::new_cyclic(|source| Self {
            stream: UnsafeCell::new(Stream::of(source.as_ptr())),
            schema,
            pieces: Mutex::default(),
        })
    }

    fn pieces(&self) -> MutexGuard<'_, VecDeque<RecordBatch>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Make the stream one that can be read from its begin: DuckDB takes a copy and may mark this one as moved.
    fn rewind(&self) {
        // SAFETY: nobody reads the view now.
        unsafe { *self.stream.get() = Stream::of(self) };
    }
}

impl Stream {
    fn of(source: *const Source) -> Self {
        Self {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release),
            source,
        }
    }
}

/// # Safety
/// The stream is one that [`Stream::of`] made, or a copy of it; its source lives as long as the database.
unsafe fn source<'a>(stream: *mut Stream) -> &'a Source {
    // SAFETY: as the caller says.
    unsafe { &*(*stream).source }
}

unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: DuckDB asks our stream, and `out` takes what is moved there.
    unsafe {
        let Ok(schema) = FFI_ArrowSchema::try_from(source(stream).schema.as_ref()) else {
            return FAILED;
        };
        ptr::write(out, schema);
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: as above. An array without a release callback is the end.
    unsafe {
        let piece = source(stream).pieces().pop_front();
        let array = piece.map_or_else(FFI_ArrowArray::empty, |rows| {
            FFI_ArrowArray::new(&StructArray::from(rows).into_data())
        });
        ptr::write(out, array);
    }
    0
}

unsafe extern "C" fn get_last_error(_stream: *mut Stream) -> *const c_char {
    c"the types of the rows have no form in Arrow's C interface".as_ptr()
}

/// The source is not the stream's: there is nothing to give back.
unsafe extern "C" fn release(stream: *mut Stream) {
    // SAFETY: the stream is released by whoever has it.
    unsafe { (*stream).release = None };
}

/// What statements of one connection select from, for rows of one schema.
pub(crate) struct View {
    name: String,
    source: Arc<Source>,
}

impl View {
    /// What a statement selects these rows from. Without a limit several threads collect rows of their own, which are
    /// joined by copying them; with one, rows of a single piece go straight into the table.
    pub(crate) fn rows(&self, rows: &RecordBatch) -> String {
        let count = rows.num_rows();
        if count > PIECE_ROWS {
            return self.name.clone();
        }
        format!("{} limit {count}", self.name)
    }

    /// Rows of this schema can be shown.
    pub(crate) fn takes(&self, schema: &SchemaRef) -> bool {
        self.source.schema == *schema
    }

    /// Show rows until the guard is dropped.
    pub(crate) fn show(&self, rows: &RecordBatch) -> Shown<'_> {
        let starts = (0..rows.num_rows()).step_by(PIECE_ROWS);
        let pieces = starts.map(|start| rows.slice(start, PIECE_ROWS.min(rows.num_rows() - start)));
        self.source.pieces().extend(pieces);
        self.source.rewind();
        Shown(&self.source)
    }
}

/// Rows are there for a statement.
pub(crate) struct Shown<'a>(&'a Source);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.0.pieces().clear();
    }
}

/// The views of a database. They outlive it, as DuckDB knows their addresses.
#[derive(Default)]
pub(crate) struct Incoming(Mutex<Views>);

#[derive(Default)]
struct Views {
    /// None before the first view.
    maker: Option<Maker>,
    sources: Vec<Arc<Source>>,
    /// Those that no connection has.
    free: Vec<View>,
}

impl Incoming {
    /// A view for rows of this schema, for a connection that has begun no transaction.
    pub(crate) fn take(
        &self,
        api: &'static Api,
        database: Handle,
        schema: &SchemaRef,
    ) -> Result<View, DuckError> {
        let mut views = self.views();
        if let Some(place) = views.free.iter().position(|view| view.takes(schema)) {
            return Ok(views.free.swap_remove(place));
        }
        views.make(api, database, schema)
    }

    /// A connection needs its views no more.
    pub(crate) fn give_back(&self, used: &mut Vec<View>) {
        self.views().free.append(used);
    }

    /// The database is about to be closed.
    pub(crate) fn close(&self) {
        self.views().maker = None;
    }

    fn views(&self) -> MutexGuard<'_, Views> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Views {
    fn make(
        &mut self,
        api: &'static Api,
        database: Handle,
        schema: &SchemaRef,
    ) -> Result<View, DuckError> {
        let maker = self.maker(api, database)?;
        let name = format!("rows_{}", self.sources.len());
        let source = Source::new(Arc::clone(schema));
        self.sources.push(Arc::clone(&source));
        let called = c_text(&name)?;
        let stream = source.stream.get().cast();
        // SAFETY: the connection is open; the stream stays where it is until the database is closed.
        let state = unsafe { (api.duckdb_arrow_scan)(maker, called.as_ptr(), stream) };
        if !is_ok(state) {
            let said = format!("DuckDB refuses a view of rows with these columns: {schema}");
            return Err(DuckError::new("InternalException", said));
        }
        let name = format!("{DATABASE}.main.{name}");
        Ok(View { name, source })
    }

    fn maker(&mut self, api: &'static Api, database: Handle) -> Result<Handle, DuckError> {
        if let Some(maker) = &self.maker {
            return Ok(maker.handle);
        }
        let maker = Maker::new(api, database)?;
        Ok(self.maker.insert(maker).handle)
    }
}

/// The connection whose views are in the database for them.
struct Maker {
    api: &'static Api,
    handle: Handle,
}

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Maker {}

impl Maker {
    fn new(api: &'static Api, database: Handle) -> Result<Self, DuckError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the database is open.
        if !is_ok(unsafe { (api.duckdb_connect)(database, &raw mut handle) }) {
            return Err(DuckError::no_connection());
        }
        let maker = Self { api, handle };
        maker.run(&format!("attach if not exists ':memory:' as {DATABASE}"))?;
        maker.run(&format!("use {DATABASE}.main"))?;
        Ok(maker)
    }

    fn run(&self, sql: &str) -> Result<(), DuckError> {
        let (api, sql) = (self.api, c_text(sql)?);
        // SAFETY: the connection is open, and the text ends with a zero byte.
        let run = |result| unsafe { (api.duckdb_query)(self.handle, sql.as_ptr(), result) };
        QueryResult::of(api, run).map(drop)
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody uses it any more.
        unsafe { (self.api.duckdb_disconnect)(&raw mut self.handle) }
    }
}
