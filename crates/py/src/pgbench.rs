//! The rows of pgbench's tables.

use loadstone_gen::pgbench::{Table, copy_lines};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Lines of COPY for `count` rows of a table, beginning with row `first`.
#[pyfunction]
pub(crate) fn pgbench_rows<'py>(
    py: Python<'py>,
    table: &str,
    first: u64,
    count: u64,
) -> PyResult<Bound<'py, PyBytes>> {
    let table = Table::named(table)
        .ok_or_else(|| PyValueError::new_err("pgbench fills no table of that name"))?;
    let lines = py.detach(|| copy_lines(table, first, count));
    Ok(PyBytes::new(py, &lines))
}
