//! The functions of DuckDB's library that are called, by the names and types of its `duckdb.h`.

#![expect(
    unsafe_code,
    reason = "a library is loaded by name, with the types of its header"
)]

use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use libloading::Library;

use crate::error::DuckError;

/// From this version on the functions below are stable, as the header says.
const LEAST: [u32; 3] = [1, 5, 6];
const SUCCESS: State = 0;
/// `DUCKDB_RESULT_TYPE_NOTHING`.
pub(crate) const NOTHING: u32 = 2;
/// `DUCKDB_PENDING_RESULT_NOT_READY`.
pub(crate) const NOT_READY: u32 = 1;
/// `DUCKDB_PENDING_NO_TASKS_AVAILABLE`.
pub(crate) const NO_TASKS: u32 = 3;

/// Whatever the library hides behind a pointer.
pub(crate) type Handle = *mut c_void;
pub(crate) type State = i32;

/// `duckdb_result`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawResult {
    counts: [u64; 3],
    columns: Handle,
    message: *mut c_char,
    internal: Handle,
}

impl RawResult {
    pub(crate) const EMPTY: Self = Self {
        counts: [0; 3],
        columns: ptr::null_mut(),
        message: ptr::null_mut(),
        internal: ptr::null_mut(),
    };
}

macro_rules! functions {
    ($($name:ident($($given:ty),*) $(-> $made:ty)?;)*) => {
        /// The functions, as `duckdb.h` declares them.
        pub(crate) struct Api {
            $(pub(crate) $name: unsafe extern "C" fn($($given),*) $(-> $made)?,)*
            _library: Library,
        }

        impl Api {
            /// # Safety
            /// The library is DuckDB's.
            unsafe fn bind(library: Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $($name: *unsafe { library.get(concat!(stringify!($name), "\0").as_bytes())? },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    duckdb_library_version() -> *const c_char;
    duckdb_free(Handle);
    duckdb_create_config(*mut Handle) -> State;
    duckdb_set_config(Handle, *const c_char, *const c_char) -> State;
    duckdb_destroy_config(*mut Handle);
    duckdb_open_ext(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> State;
    duckdb_close(*mut Handle);
    duckdb_connect(Handle, *mut Handle) -> State;
    duckdb_disconnect(*mut Handle);
    duckdb_interrupt(Handle);
    duckdb_query(Handle, *const c_char, *mut RawResult) -> State;
    duckdb_destroy_result(*mut RawResult);
    duckdb_result_error(*mut RawResult) -> *const c_char;
    duckdb_result_error_type(*mut RawResult) -> u32;
    duckdb_result_return_type(RawResult) -> u32;
    duckdb_column_count(*mut RawResult) -> u64;
    duckdb_column_name(*mut RawResult, u64) -> *const c_char;
    duckdb_column_logical_type(*mut RawResult, u64) -> Handle;
    duckdb_destroy_logical_type(*mut Handle);
    duckdb_result_get_arrow_options(*mut RawResult) -> Handle;
    duckdb_destroy_arrow_options(*mut Handle);
    duckdb_to_arrow_schema(Handle, *mut Handle, *mut *const c_char, u64, *mut FFI_ArrowSchema) -> Handle;
    duckdb_fetch_chunk(RawResult) -> Handle;
    duckdb_data_chunk_to_arrow(Handle, Handle, *mut FFI_ArrowArray) -> Handle;
    duckdb_destroy_data_chunk(*mut Handle);
    duckdb_error_data_message(Handle) -> *const c_char;
    duckdb_error_data_error_type(Handle) -> u32;
    duckdb_destroy_error_data(*mut Handle);
    duckdb_extract_statements(Handle, *const c_char, *mut Handle) -> u64;
    duckdb_extract_statements_error(Handle) -> *const c_char;
    duckdb_prepare_extracted_statement(Handle, Handle, u64, *mut Handle) -> State;
    duckdb_destroy_extracted(*mut Handle);
    duckdb_prepare(Handle, *const c_char, *mut Handle) -> State;
    duckdb_prepare_error(Handle) -> *const c_char;
    duckdb_destroy_prepare(*mut Handle);
    duckdb_bind_parameter_index(Handle, *mut u64, *const c_char) -> State;
    duckdb_bind_null(Handle, u64) -> State;
    duckdb_bind_boolean(Handle, u64, bool) -> State;
    duckdb_bind_int64(Handle, u64, i64) -> State;
    duckdb_bind_double(Handle, u64, f64) -> State;
    duckdb_bind_timestamp_tz(Handle, u64, i64) -> State;
    duckdb_bind_varchar_length(Handle, u64, *const c_char, u64) -> State;
    duckdb_execute_prepared(Handle, *mut RawResult) -> State;
    duckdb_pending_prepared(Handle, *mut Handle) -> State;
    duckdb_pending_error(Handle) -> *const c_char;
    duckdb_pending_execute_task(Handle) -> u32;
    duckdb_execute_pending(Handle, *mut RawResult) -> State;
    duckdb_destroy_pending(*mut Handle);
    duckdb_arrow_scan(Handle, *const c_char, Handle) -> State;
}

static LOADED: OnceLock<Api> = OnceLock::new();

impl Api {
    /// The functions of the library in this file; it stays loaded, and serves whoever asks later.
    pub(crate) fn of(path: &Path) -> Result<&'static Self, DuckError> {
        if let Some(api) = LOADED.get() {
            return Ok(api);
        }
        let api = Self::load(path).map_err(|error| {
            let message = format!("{} is not usable as DuckDB: {error}", path.display());
            DuckError::new("Error", message)
        })?;
        if !is_new_enough(&api.version()) {
            let message = format!(
                "DuckDB {} is too old: 1.5.6 is the first with these functions",
                api.version()
            );
            return Err(DuckError::new("Error", message));
        }
        Ok(LOADED.get_or_init(|| api))
    }

    fn load(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: Python has loaded this file already, as a module; a function that it lacks is an error.
        unsafe { Self::bind(Library::new(path)?) }
    }

    fn version(&self) -> String {
        // SAFETY: a text that lives as long as the library.
        unsafe { text((self.duckdb_library_version)()) }
    }

    /// An error's object, which is destroyed; none where there is no error.
    pub(crate) fn check(&self, mut error: Handle) -> Result<(), DuckError> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: the object is ours, and its text lives as long as it.
        let found = unsafe {
            let kind = (self.duckdb_error_data_error_type)(error);
            let found = DuckError::of(kind, text((self.duckdb_error_data_message)(error)));
            (self.duckdb_destroy_error_data)(&raw mut error);
            found
        };
        Err(found)
    }
}

pub(crate) fn is_ok(state: State) -> bool {
    state == SUCCESS
}

/// A text of the library; empty where there is none.
///
/// # Safety
/// It is null or ends with a zero byte.
pub(crate) unsafe fn text(words: *const c_char) -> String {
    if words.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    let words = unsafe { CStr::from_ptr(words) };
    words.to_string_lossy().into_owned()
}

fn is_new_enough(version: &str) -> bool {
    let numbers = version.trim_start_matches('v').split(['.', '-']);
    let numbers: Vec<u32> = numbers.map_while(|part| part.parse().ok()).collect();
    numbers.len() >= LEAST.len() && numbers.as_slice() >= LEAST.as_slice()
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn versions_are_compared_by_number() {
        for version in ["v2.0.0", "v1.5.6", "v1.10.0", "v2.0.1-dev3"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["v1.5.5", "v1.4.10", "v0.10.0", "nonsense", ""] {
            assert!(!is_new_enough(version), "{version}");
        }
    }
}
