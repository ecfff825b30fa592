//! The one place where errors of the core become exceptions of Python.

use loadstone_drive::DriveError as CoreDriveError;
use loadstone_script::ScriptError as CoreScriptError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(loadstone._core, AdbcError, PyException);
create_exception!(loadstone._core, DriveError, PyException);
create_exception!(loadstone._core, ScriptError, PyException);
create_exception!(loadstone._core, FetchError, PyException);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("AdbcError", py.get_type::<AdbcError>())?;
    module.add("DriveError", py.get_type::<DriveError>())?;
    module.add("ScriptError", py.get_type::<ScriptError>())?;
    module.add("FetchError", py.get_type::<FetchError>())
}

/// `DriveError(message, hint)`, or `ScriptError` where a script is to blame.
pub(crate) fn drive_error(error: CoreDriveError) -> PyErr {
    match error {
        CoreDriveError::Script(error) => script_error(error),
        error => DriveError::new_err((error.to_string(), error.hint())),
    }
}

/// `ScriptError(message, file, line, column, hint)`.
pub(crate) fn script_error(error: CoreScriptError) -> PyErr {
    ScriptError::new_err((
        error.message,
        error.file,
        error.line,
        error.column,
        error.hint,
    ))
}

/// `DriveError` of a refusal by the operating system.
pub(crate) fn system_error(error: &std::io::Error) -> PyErr {
    DriveError::new_err((error.to_string(), String::new()))
}
