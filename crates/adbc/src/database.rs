//! A database that is open in this process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use adbc_core::options::{AdbcVersion, OptionDatabase, OptionValue};
use adbc_core::{Database as _, Driver as _};
use adbc_driver_manager::{ManagedDatabase, ManagedDriver};
use serde::Deserialize;

use crate::connection::Connection;
use crate::error::{AdbcError, ErrorNames};

/// Which database, and in which library.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The shared library.
    pub library: PathBuf,
    /// Its function that initializes the driver.
    pub entrypoint: String,
    /// Options of the database, as the library calls them.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// How its errors are called.
    pub errors: ErrorNames,
}

/// An open database; it is closed when it and all its connections are dropped.
pub struct Database {
    inner: ManagedDatabase,
    names: Arc<ErrorNames>,
}

impl Database {
    /// Open it.
    ///
    /// # Errors
    /// What the library says, also of options that it does not know.
    pub fn open(spec: Spec) -> Result<Self, AdbcError> {
        let entrypoint = Some(spec.entrypoint.as_bytes());
        let options = spec.options.into_iter();
        let inner =
            ManagedDriver::load_dynamic_from_filename(&spec.library, entrypoint, AdbcVersion::V110)
                .and_then(|mut driver| driver.new_database_with_opts(options.map(option)))
                .map_err(|error| spec.errors.error(&error))?;
        let names = Arc::new(spec.errors);
        Ok(Self { inner, names })
    }

    /// Open a connection.
    ///
    /// # Errors
    /// What the library says.
    pub fn connect(&self) -> Result<Connection, AdbcError> {
        let inner = self.inner.new_connection();
        let inner = inner.map_err(|error| self.names.error(&error))?;
        Ok(Connection::new(inner, Arc::clone(&self.names)))
    }
}

fn option((name, value): (String, String)) -> (OptionDatabase, OptionValue) {
    (OptionDatabase::Other(name), value.into())
}
