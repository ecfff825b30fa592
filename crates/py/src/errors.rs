//! The one place where errors of the core become exceptions of Python.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(loadstone._core, DriveError, PyException);
create_exception!(loadstone._core, ScriptError, PyException);
create_exception!(loadstone._core, FetchError, PyException);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("DriveError", py.get_type::<DriveError>())?;
    module.add("ScriptError", py.get_type::<ScriptError>())?;
    module.add("FetchError", py.get_type::<FetchError>())
}
