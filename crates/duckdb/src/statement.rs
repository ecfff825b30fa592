//! A statement's result, and statements with parameters.

#![expect(unsafe_code, reason = "calls of the library's functions")]

use std::ptr;
use std::thread;
use std::time::Duration;

use crate::api::{Api, Handle, NO_TASKS, NOT_READY, NOTHING, RawResult, is_ok, text};
use crate::error::{DuckError, c_text};

/// How often a thread looks for work that has none before the library's own threads have done something: a short
/// statement is over before that, within some tenths of a millisecond.
const LOOKS: u32 = 200;
/// How long it sleeps then before it looks again.
const REST: Duration = Duration::from_micros(100);

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A point in time, microseconds since 1970.
    Time(i64),
    /// A text.
    Text(String),
}

/// What a statement gave; it is destroyed with this.
pub(crate) struct QueryResult {
    pub(crate) api: &'static Api,
    pub(crate) raw: RawResult,
}

impl QueryResult {
    /// Run statements by `call`, which is given the place of the result.
    pub(crate) fn of(
        api: &'static Api,
        call: impl FnOnce(*mut RawResult) -> i32,
    ) -> Result<Self, DuckError> {
        let mut result = Self {
            api,
            raw: RawResult::EMPTY,
        };
        let state = call(&raw mut result.raw);
        if is_ok(state) {
            return Ok(result);
        }
        Err(result.error())
    }

    fn error(&mut self) -> DuckError {
        let api = self.api;
        // SAFETY: the result is ours; a failed one tells why.
        unsafe {
            let kind = (api.duckdb_result_error_type)(&raw mut self.raw);
            DuckError::of(kind, text((api.duckdb_result_error)(&raw mut self.raw)))
        }
    }

    /// The statement is one that gives nothing.
    pub(crate) fn is_nothing(&self) -> bool {
        // SAFETY: the result is ours.
        unsafe { (self.api.duckdb_result_return_type)(self.raw) == NOTHING }
    }
}

impl Drop for QueryResult {
    fn drop(&mut self) {
        // SAFETY: the result is ours, and nobody uses it any more.
        unsafe { (self.api.duckdb_destroy_result)(&raw mut self.raw) }
    }
}

/// A statement that was parsed; the connection outlives it.
pub(crate) struct Prepared {
    api: &'static Api,
    handle: Handle,
}

impl Prepared {
    /// Parse one statement on the connection `connection`.
    pub(crate) fn new(api: &'static Api, connection: Handle, sql: &str) -> Result<Self, DuckError> {
        let sql = c_text(sql)?;
        // SAFETY: the connection is open, and the text ends with a zero byte.
        Self::of(api, |made| unsafe {
            (api.duckdb_prepare)(connection, sql.as_ptr(), made)
        })
    }

    fn of(api: &'static Api, prepare: impl FnOnce(*mut Handle) -> i32) -> Result<Self, DuckError> {
        let mut made = Self {
            api,
            handle: ptr::null_mut(),
        };
        if is_ok(prepare(&raw mut made.handle)) {
            return Ok(made);
        }
        // SAFETY: a failed statement tells why, as long as it is not destroyed.
        let said = unsafe { text((api.duckdb_prepare_error)(made.handle)) };
        Err(DuckError::told(said))
    }

    /// Bind a parameter by its name.
    pub(crate) fn bind_named(&mut self, name: &str, value: &Value) -> Result<(), DuckError> {
        let mut place = 0;
        let named = c_text(name)?;
        // SAFETY: the statement is ours, and the name ends with a zero byte.
        let state = unsafe {
            (self.api.duckdb_bind_parameter_index)(self.handle, &raw mut place, named.as_ptr())
        };
        if !is_ok(state) {
            let said = format!("Invalid Input Error: the statement has no parameter called {name}");
            return Err(DuckError::told(said));
        }
        self.bind(place, value)
    }

    /// Bind a parameter by its place, counted from 1.
    pub(crate) fn bind(&mut self, place: u64, value: &Value) -> Result<(), DuckError> {
        let (api, handle) = (self.api, self.handle);
        // SAFETY: the statement is ours; a text is copied by its length.
        let state = unsafe {
            match value {
                Value::Null => (api.duckdb_bind_null)(handle, place),
                Value::Bool(value) => (api.duckdb_bind_boolean)(handle, place, *value),
                Value::Int(value) => (api.duckdb_bind_int64)(handle, place, *value),
                Value::Float(value) => (api.duckdb_bind_double)(handle, place, *value),
                Value::Time(value) => (api.duckdb_bind_timestamp_tz)(handle, place, *value),
                Value::Text(value) => {
                    let (begin, length) = (value.as_ptr().cast(), value.len() as u64);
                    (api.duckdb_bind_varchar_length)(handle, place, begin, length)
                }
            }
        };
        if is_ok(state) {
            return Ok(());
        }
        // SAFETY: as when it was prepared.
        let said = unsafe { text((api.duckdb_prepare_error)(handle)) };
        Err(DuckError::told(said))
    }

    /// Run it with what is bound.
    pub(crate) fn run(&mut self) -> Result<QueryResult, DuckError> {
        let (api, handle) = (self.api, self.handle);
        // SAFETY: the statement is ours.
        QueryResult::of(api, |result| unsafe {
            (api.duckdb_execute_prepared)(handle, result)
        })
    }
}

impl Prepared {
    /// Run it with what is bound. Where only the library's own threads have something to do this one sleeps; in
    /// [`Prepared::run`] it would look for work all the time, on a core that others need. `go_on` is asked before.
    pub(crate) fn run_asleep(
        &mut self,
        go_on: impl Fn() -> Result<(), DuckError>,
    ) -> Result<QueryResult, DuckError> {
        let pending = Pending::new(self)?;
        let mut looks = 0;
        loop {
            match pending.work() {
                NOT_READY => looks = 0,
                NO_TASKS => {
                    go_on()?;
                    looks += 1;
                    rest(looks);
                }
                _ => return pending.result(),
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the thread is in a call of a library, which has no event to wait for"
)]
fn rest(looks: u32) {
    if looks < LOOKS {
        thread::yield_now();
    } else {
        thread::sleep(REST);
    }
}

/// A statement that runs; the statement outlives it.
struct Pending {
    api: &'static Api,
    handle: Handle,
}

impl Pending {
    fn new(statement: &Prepared) -> Result<Self, DuckError> {
        let api = statement.api;
        let mut made = Self {
            api,
            handle: ptr::null_mut(),
        };
        // SAFETY: the statement is open; what is made is destroyed.
        let state =
            unsafe { (api.duckdb_pending_prepared)(statement.handle, &raw mut made.handle) };
        if is_ok(state) {
            return Ok(made);
        }
        // SAFETY: one that failed tells why, as long as it is not destroyed.
        let said = unsafe { text((api.duckdb_pending_error)(made.handle)) };
        Err(DuckError::told(said))
    }

    /// Do a part of the work, if there is one.
    fn work(&self) -> u32 {
        // SAFETY: it is ours.
        unsafe { (self.api.duckdb_pending_execute_task)(self.handle) }
    }

    /// Do what is left and take the result, or the error.
    fn result(&self) -> Result<QueryResult, DuckError> {
        QueryResult::of(self.api, |result| unsafe {
            // SAFETY: it is ours.
            (self.api.duckdb_execute_pending)(self.handle, result)
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody uses it any more.
        unsafe { (self.api.duckdb_destroy_pending)(&raw mut self.handle) }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement is ours, and nobody uses it any more.
        unsafe { (self.api.duckdb_destroy_prepare)(&raw mut self.handle) }
    }
}

/// The statements of a text, one by one.
pub(crate) struct Statements {
    api: &'static Api,
    connection: Handle,
    handle: Handle,
    count: u64,
}

impl Statements {
    /// Parse a text on the connection `connection`, which outlives it.
    pub(crate) fn new(api: &'static Api, connection: Handle, sql: &str) -> Result<Self, DuckError> {
        let sql = c_text(sql)?;
        let mut found = Self {
            api,
            connection,
            handle: ptr::null_mut(),
            count: 0,
        };
        // SAFETY: the connection is open, and the text ends with a zero byte.
        found.count = unsafe {
            (api.duckdb_extract_statements)(connection, sql.as_ptr(), &raw mut found.handle)
        };
        if found.count > 0 {
            return Ok(found);
        }
        // SAFETY: a failed parse tells why, as long as it is not destroyed; a text without statements has no error.
        let said = unsafe { text((api.duckdb_extract_statements_error)(found.handle)) };
        let none = "Parser Error: there is no statement".to_owned();
        Err(DuckError::told(if said.is_empty() { none } else { said }))
    }

    /// Run all, and return the result of the last.
    pub(crate) fn run(
        &self,
        go_on: impl Fn() -> Result<(), DuckError>,
    ) -> Result<QueryResult, DuckError> {
        let mut last = self.prepare(0)?.run()?;
        for place in 1..self.count {
            go_on()?;
            last = self.prepare(place)?.run()?;
        }
        Ok(last)
    }

    fn prepare(&self, place: u64) -> Result<Prepared, DuckError> {
        let (api, connection, handle) = (self.api, self.connection, self.handle);
        // SAFETY: the connection is open, and there are as many statements.
        Prepared::of(api, |made| unsafe {
            (api.duckdb_prepare_extracted_statement)(connection, handle, place, made)
        })
    }
}

impl Drop for Statements {
    fn drop(&mut self) {
        // SAFETY: they are ours, and nobody uses them any more.
        unsafe { (self.api.duckdb_destroy_extracted)(&raw mut self.handle) }
    }
}
