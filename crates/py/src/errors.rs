//! The one place where errors of the core become exceptions of Python.

use loadstone_drive::DriveError as CoreDriveError;
use loadstone_gen::dataset::SourceError;
use loadstone_script::ScriptError as CoreScriptError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(loadstone._core, DriveError, PyException);
create_exception!(loadstone._core, ScriptError, PyException);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("DriveError", py.get_type::<DriveError>())?;
    module.add("ScriptError", py.get_type::<ScriptError>())
}

/// `DriveError(message, hint)`, or `ScriptError` where a script is to blame; an exception of Python that ended a read
/// goes on as it is.
pub(crate) fn drive_error(error: CoreDriveError) -> PyErr {
    match error {
        CoreDriveError::Script(error) => script_error(error),
        CoreDriveError::Data(SourceError::Failed(source)) => source.into(),
        CoreDriveError::Data(SourceError::Input { source, .. })
        | CoreDriveError::System { source, .. }
            if is_interrupt(&source) =>
        {
            source.into()
        }
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

/// Whether Python code that the core called was interrupted, by Ctrl-C for example.
fn is_interrupt(error: &std::io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<PyErr>());
    inner.is_some_and(|error| Python::attach(|py| !error.is_instance_of::<PyException>(py)))
}

/// `DriveError` of a refusal by the operating system.
pub(crate) fn system_error(error: &std::io::Error) -> PyErr {
    DriveError::new_err((error.to_string(), String::new()))
}
