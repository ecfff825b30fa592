//! DuckDB by the C interface of its library: a database of this process, its connections, and the driver's clients.
//!
//! Whoever opens a file here must open every connection to it here (docs/adr/0028-duckdb-c-api.md).

mod answer;
mod api;
mod client;
mod connection;
mod database;
mod error;
mod interrupt;
mod literals;
mod rows;
mod statement;

pub use answer::Answer;
pub use client::{ClientSpec, DuckLibrary};
pub use connection::Connection;
pub use database::{Database, Spec};
pub use error::DuckError;
pub use interrupt::Interrupt;
pub use statement::Value;
