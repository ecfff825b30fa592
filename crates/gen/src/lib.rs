//! Seeded generators: everything random that Loadstone does starts here.
//!
//! Nothing in this crate reads a clock, opens a socket or keeps global state: the same seed gives
//! the same values on every machine.

pub mod dataset;
pub mod dictionary_batch;
pub mod encode;
pub mod fingerprint;
mod mix;
pub mod native;
mod number;
pub mod pgbench;
pub mod random;
pub mod rowfile;
pub mod rows;
pub mod tsbs;
