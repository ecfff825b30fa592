//! Scripts in Lua: what they declare, before anything is run.

use std::sync::{Mutex, PoisonError};

use loadstone_lua::{Reports, ScriptFault, ScriptSpec, describe};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::ScriptError;

/// Load a script in a state of its own; JSON of its options, commands and functions.
#[pyfunction]
pub(crate) fn lua_script(py: Python<'_>, document: &str) -> PyResult<String> {
    let spec: ScriptSpec = parsed(document)?;
    let described = py.detach(|| describe(spec));
    described
        .map(|described| described.to_string())
        .map_err(fault_of)
}

fn parsed<T: serde::de::DeserializeOwned>(document: &str) -> PyResult<T> {
    serde_json::from_str(document).map_err(|e| PyValueError::new_err(e.to_string()))
}

fn fault_of(fault: ScriptFault) -> PyErr {
    let place = (fault.message, fault.file, fault.line, 0);
    ScriptError::new_err((
        place.0,
        place.1,
        place.2,
        place.3,
        fault.traceback,
        fault.output,
    ))
}

/// A script that has been loaded for its hooks for reports.
#[pyclass(frozen)]
pub(crate) struct LuaReports(Mutex<Option<Reports>>);

#[pymethods]
impl LuaReports {
    #[new]
    fn new(py: Python<'_>, document: &str) -> PyResult<Self> {
        let spec: ScriptSpec = parsed(document)?;
        let reports = py.detach(|| Reports::new(spec)).map_err(fault_of)?;
        Ok(Self(Mutex::new(Some(reports))))
    }

    /// What the hook printed.
    fn call(&self, py: Python<'_>, hook: &str, figures: &str) -> PyResult<String> {
        let figures = parsed(figures)?;
        py.detach(|| {
            let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let reports = reports.as_ref();
            reports.map_or(Ok(String::new()), |reports| reports.call(hook, figures))
        })
        .map_err(|fault| ScriptError::new_err((fault.message, "", 0, 0, fault.traceback)))
    }

    /// What was printed as the state ended.
    fn end(&self, py: Python<'_>) -> String {
        py.detach(|| {
            let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            reports.map_or_else(String::new, Reports::end)
        })
    }
}
