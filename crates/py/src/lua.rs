//! Scripts in Lua: what they declare, before anything is run.

use loadstone_lua::{ScriptSpec, describe};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::ScriptError;

/// Load a script in a state of its own; JSON of its options, commands and functions.
#[pyfunction]
pub(crate) fn lua_script(py: Python<'_>, document: &str) -> PyResult<String> {
    let spec: ScriptSpec =
        serde_json::from_str(document).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let described = py.detach(|| describe(spec));
    described
        .map(|described| described.to_string())
        .map_err(|fault| {
            ScriptError::new_err((
                fault.message,
                fault.file,
                fault.line,
                0,
                fault.traceback,
                fault.output,
            ))
        })
}
