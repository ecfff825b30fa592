//! A database that is open in this process.

#![expect(unsafe_code, reason = "calls of the library's functions")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_char;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_schema::SchemaRef;
use serde::Deserialize;

use crate::api::{Api, Handle, is_ok, text};
use crate::connection::Connection;
use crate::error::{DuckError, c_text};
use crate::rows::{Incoming, View};

/// Which database, and in which library.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The shared library, which this process has loaded.
    pub library: PathBuf,
    /// The file, which is made if it is not there; none keeps all in memory.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Settings of the database, by DuckDB's names.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// An open database; it is closed when it and all its connections are dropped.
#[derive(Clone)]
pub struct Database {
    instance: Arc<Instance>,
}

/// DuckDB's own object, one for each file in this process.
pub(crate) struct Instance {
    pub(crate) api: &'static Api,
    handle: Handle,
    pub(crate) incoming: Incoming,
    /// Given back after the file is closed.
    _claim: Option<Claim>,
}

// SAFETY: DuckDB's databases are made for use by many threads.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

impl Database {
    /// Open it.
    ///
    /// # Errors
    /// What DuckDB says, also of settings that it does not know; that this process has the file open.
    pub fn open(spec: &Spec) -> Result<Self, DuckError> {
        let api = Api::of(&spec.library)?;
        let claim = spec.path.as_deref().map(Claim::new).transpose()?;
        let path = spec.path.as_deref().unwrap_or(Path::new(":memory:"));
        let path = c_text(&path.to_string_lossy())?;
        let config = Config::new(api, &spec.settings)?;
        let (mut handle, mut said): (Handle, *mut c_char) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the texts end with a zero byte; what DuckDB says is ours.
        let opened = unsafe {
            let state =
                (api.duckdb_open_ext)(path.as_ptr(), &raw mut handle, config.handle, &raw mut said);
            let words = text(said);
            (api.duckdb_free)(said.cast());
            is_ok(state).then_some(()).ok_or(words)
        };
        opened.map_err(DuckError::told)?;
        Ok(Self {
            instance: Arc::new(Instance {
                api,
                handle,
                incoming: Incoming::default(),
                _claim: claim,
            }),
        })
    }

    /// Open a connection.
    ///
    /// # Errors
    /// What DuckDB says.
    pub fn connect(&self) -> Result<Connection, DuckError> {
        let mut handle = ptr::null_mut();
        let instance = &self.instance;
        // SAFETY: the database is open.
        let state = unsafe { (instance.api.duckdb_connect)(instance.handle, &raw mut handle) };
        if !is_ok(state) {
            return Err(DuckError::no_connection());
        }
        Ok(Connection::new(Arc::clone(instance), handle))
    }
}

impl Instance {
    /// What statements read rows of this schema from.
    pub(crate) fn view(&self, schema: &SchemaRef) -> Result<View, DuckError> {
        self.incoming.take(self.api, self.handle, schema)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.incoming.close();
        // SAFETY: nobody has a connection any more.
        unsafe { (self.api.duckdb_close)(&raw mut self.handle) }
    }
}

/// Settings, before they are given to a database.
struct Config {
    api: &'static Api,
    handle: Handle,
}

impl Config {
    fn new(api: &'static Api, settings: &BTreeMap<String, String>) -> Result<Self, DuckError> {
        let mut config = Self {
            api,
            handle: ptr::null_mut(),
        };
        // SAFETY: it is destroyed with this.
        let made = unsafe { (api.duckdb_create_config)(&raw mut config.handle) };
        if !is_ok(made) {
            return Err(DuckError::new(
                "OutOfMemoryException",
                "there is no memory for settings",
            ));
        }
        for (name, value) in settings {
            config.set(name, value)?;
        }
        Ok(config)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), DuckError> {
        let (c_name, c_value) = (c_text(name)?, c_text(value)?);
        // SAFETY: the texts end with a zero byte.
        let state =
            unsafe { (self.api.duckdb_set_config)(self.handle, c_name.as_ptr(), c_value.as_ptr()) };
        if is_ok(state) {
            return Ok(());
        }
        let said = format!("Invalid Input Error: the setting {name} cannot be '{value}'");
        Err(DuckError::told(said))
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: it is ours, and DuckDB keeps nothing of it.
        unsafe { (self.api.duckdb_destroy_config)(&raw mut self.handle) }
    }
}

static OPEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The right to open a file: two instances of one process both get its lock, and destroy what the other commits.
struct Claim(PathBuf);

impl Claim {
    fn new(path: &Path) -> Result<Self, DuckError> {
        let path = resolved(path);
        if Self::open().insert(path.clone()) {
            return Ok(Self(path));
        }
        let said = format!("{} is open in this process", path.display());
        Err(DuckError::new("ConnectionException", said))
    }

    fn open() -> MutexGuard<'static, BTreeSet<PathBuf>> {
        OPEN.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        Self::open().remove(&self.0);
    }
}

/// One name for a file, which need not be there yet.
fn resolved(path: &Path) -> PathBuf {
    if let Ok(known) = path.canonicalize() {
        return known;
    }
    let folder = path.parent().and_then(|folder| {
        let here = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        here.canonicalize().ok()
    });
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}
