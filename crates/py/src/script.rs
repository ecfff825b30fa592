//! pgbench's script language: checked for the planner, and its built-in scripts.

use std::ops::Range;

use loadstone_script::{
    QueryMode, builtin as core_builtin, builtins as core_builtins, check, check_as_pgbench,
    scan_sql as core_scan_sql,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::script_error;

/// Parse a script; JSON of its commands, variables and warnings.
#[pyfunction]
#[pyo3(signature = (name, text, mode, variables, late = false))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 hands over owned values"
)]
pub(crate) fn check_script(
    name: &str,
    text: &str,
    mode: &str,
    variables: Vec<String>,
    late: bool,
) -> PyResult<String> {
    let mode: QueryMode = mode
        .parse()
        .map_err(|_| PyValueError::new_err("mode is simple, extended or prepared"))?;
    let check = if late { check_as_pgbench } else { check };
    let report = check(name, text, mode, &variables).map_err(script_error)?;
    serde_json::to_string(&report).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Name, description and text of pgbench's built-in script that `prefix` names.
#[pyfunction]
pub(crate) fn builtin_script(prefix: &str) -> PyResult<(String, String, String)> {
    let script = core_builtin(prefix).map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok((
        script.name.to_owned(),
        script.description.to_owned(),
        script.source.to_owned(),
    ))
}

/// Names and descriptions of all built-in scripts.
#[pyfunction]
pub(crate) fn builtin_scripts() -> Vec<(String, String)> {
    core_builtins()
        .iter()
        .map(|s| (s.name.to_owned(), s.description.to_owned()))
        .collect()
}

/// Begin and end of something in a text, in characters.
type Place = (usize, usize);

/// Statements and names of SQL.
#[pyfunction]
pub(crate) fn scan_sql(name: &str, text: &str) -> PyResult<(Vec<Place>, Vec<Place>)> {
    let found = core_scan_sql(name, text).map_err(script_error)?;
    Ok((
        in_characters(text, &found.statements),
        in_characters(text, &found.names),
    ))
}

/// Ranges of bytes, in order and apart, as places.
fn in_characters(text: &str, ranges: &[Range<usize>]) -> Vec<Place> {
    let (mut at, mut characters) = (0, 0);
    let mut to = |end: usize| {
        characters += text[at..end].chars().count();
        at = end;
        characters
    };
    ranges
        .iter()
        .map(|range| (to(range.start), to(range.end)))
        .collect()
}
