//! Databases behind a shared library with an ADBC interface: opened once in this process, as many connections as are
//! wanted, each of them usable from any thread, one call at a time.
//!
//! ADBC is Arrow's C interface to databases (<https://arrow.apache.org/adbc>). Nothing here knows which database it
//! is: what differs comes in [`Spec`].

mod answer;
mod client;
mod connection;
mod database;
mod error;
mod interrupt;

pub use answer::Answer;
pub use client::{AdbcLibrary, ClientSpec, LoadSpec, TableSpec};
pub use connection::{Connection, Target, Transaction};
pub use database::{Database, Spec};
pub use error::{AdbcError, ErrorNames};
pub use interrupt::Interrupt;
