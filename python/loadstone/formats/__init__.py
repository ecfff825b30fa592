"""File formats that pyarrow reads and writes on behalf of the core, which calls these modules by name.

`crates/py/src/formats.rs` imports a module when rows in its format are needed, and not before.
"""
