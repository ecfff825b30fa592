//! The driver against the built-in server and against servers of our own, on both interfaces of the kernel.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod ends;
mod faults;
mod files;
mod harness;
mod ledger;
mod load;
mod many;
mod outcomes;
mod output;
mod pace;
mod queries;
mod scripts;
mod security;
mod shape;
mod steps;
mod stopping;
mod store;
mod streams;
mod transactions;
mod windows;
