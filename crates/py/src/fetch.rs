//! Fetching PostgreSQL builds and jars.

use std::path::{Path, PathBuf};

use loadstone_fetch::{FetchError as Trouble, fetch_jar_while, fetch_postgres_while};
use pyo3::prelude::*;

use crate::errors::FetchError;

/// Download, verify and unpack one PostgreSQL build; Ctrl-C ends it within a tenth of a second.
#[pyfunction]
#[pyo3(signature = (version, destination, mirror))]
pub(crate) fn fetch_postgres(
    py: Python<'_>,
    version: &str,
    destination: &str,
    mirror: Option<&str>,
) -> PyResult<String> {
    interruptible(py, |go_on| {
        fetch_postgres_while(version, Path::new(destination), mirror, go_on)
    })
}

/// Download and verify one jar by its Maven coordinates into a file; Ctrl-C as above.
#[pyfunction]
#[pyo3(signature = (coordinates, destination, mirror))]
pub(crate) fn fetch_jar(
    py: Python<'_>,
    coordinates: &str,
    destination: &str,
    mirror: Option<&str>,
) -> PyResult<String> {
    interruptible(py, |go_on| {
        fetch_jar_while(coordinates, Path::new(destination), mirror, go_on)
    })
}

fn interruptible(
    py: Python<'_>,
    fetch: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<PathBuf, Trouble> + Send,
) -> PyResult<String> {
    let mut signalled = None;
    let fetched = py.detach(|| {
        let mut go_on = || {
            let checked: PyResult<()> = Python::attach(|py| {
                py.check_signals()?;
                Ok(())
            });
            signalled = checked.err();
            signalled.is_none()
        };
        fetch(&mut go_on)
    });
    match (fetched, signalled) {
        (_, Some(signal)) => Err(signal),
        (Ok(folder), None) => Ok(folder.to_string_lossy().into_owned()),
        (Err(trouble), None) => Err(raise(&trouble)),
    }
}

fn raise(trouble: &Trouble) -> PyErr {
    FetchError::new_err((trouble.to_string(), trouble.hint()))
}
