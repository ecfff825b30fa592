//! Loadstone's core, seen from Python: parse the arguments, detach from the interpreter, call, wrap the result.

mod conversation;
mod data;
mod drive;
mod duckdb;
mod errors;
mod formats;
mod generation;
mod go_rand;
mod library;
mod lua;
mod pgbench;
mod powerdisk;
mod script;

use pyo3::prelude::*;

/// The module `loadstone._core`; `python/loadstone/_core.pyi` says what each name means.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("is_debug_build", cfg!(debug_assertions))?;
    loadstone_drive::formats::provide(Box::new(formats::PythonFormats));
    errors::register(module)?;
    module.add_class::<conversation::Conversation>()?;
    module.add_class::<data::DataStream>()?;
    module.add_class::<data::TableBatch>()?;
    module.add_class::<drive::Drive>()?;
    module.add_class::<drive::NullServer>()?;
    module.add_class::<duckdb::DuckAnswer>()?;
    module.add_class::<duckdb::DuckConnection>()?;
    module.add_class::<duckdb::DuckDatabase>()?;
    module.add_class::<duckdb::NativeLibrary>()?;
    module.add_class::<generation::Generation>()?;
    module.add_class::<go_rand::GoRand>()?;
    module.add_class::<library::RowBatch>()?;
    module.add_class::<powerdisk::PowerDiskMount>()?;
    module.add_class::<lua::LuaReports>()?;
    module.add_function(wrap_pyfunction!(library::answer_digest, module)?)?;
    module.add_function(wrap_pyfunction!(data::fingerprint_rows, module)?)?;
    module.add_function(wrap_pyfunction!(drive::clock_cost_ns, module)?)?;
    module.add_function(wrap_pyfunction!(drive::merge_hosts, module)?)?;
    module.add_function(wrap_pyfunction!(drive::record_cost_ns, module)?)?;
    module.add_function(wrap_pyfunction!(lua::lua_script, module)?)?;
    module.add_function(wrap_pyfunction!(pgbench::pgbench_rows, module)?)?;
    module.add_function(wrap_pyfunction!(script::builtin_script, module)?)?;
    module.add_function(wrap_pyfunction!(script::builtin_scripts, module)?)?;
    module.add_function(wrap_pyfunction!(script::scan_sql, module)?)?;
    module.add_function(wrap_pyfunction!(script::check_script, module)?)
}
