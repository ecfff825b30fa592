//! Loadstone's driver: the only crate with a clock, threads and sockets.
//!
//! A [`Drive`] takes a [`DriveSpec`], connects its clients, lets them begin together, and gives back one account.
//! Inside, each thread runs an event loop over many clients; what a client does is a program, when it does it is
//! the pace, and what comes of it is a record. Those three know nothing of each other.

mod answer;
mod blocking;
mod cancel;
mod client;
pub mod clock;
mod collector;
mod config;
mod connect_pace;
mod connector;
mod control;
pub mod conversation;
pub mod data;
mod drive_result;
mod driver;
mod error;
mod files;
pub mod generate;
mod io;
mod journal;
mod ledger;
mod limits;
mod merge;
mod messages;
pub mod null_server;
mod output;
pub mod pace;
mod protocol;
pub mod record;
mod saved;
pub mod share;
pub mod spec;
mod stall;
mod timeline;
mod waker;
mod worker;
mod workload;

pub use answer::arrow::document as answer_digest;
pub use client::library;
pub use data::{DataSpec, formats};
pub use driver::Drive;
pub use error::DriveError;
pub use merge::merge;
pub use spec::DriveSpec;
