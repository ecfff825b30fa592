//! Scripts written for sysbench, on LuaJIT.
//!
//! A [`Script`] is what all clients share. A [`Client`] is one of them: a coroutine that asks for what it needs
//! ([`Request`]) and is resumed with the [`Answer`]. All clients of a thread share one state of LuaJIT, with
//! globals of their own over the same compiled code. This crate knows no network: who drives the clients does.

mod client;
mod describe;
mod engine;
pub mod inserts;
mod natives;
pub mod random;
mod reports;
mod result;
mod script;
mod spec;
mod stack;
#[cfg(test)]
mod tests;

pub use self::client::{Answer, Client, Fault, Request};
pub use self::describe::{ScriptFault, describe};
pub use self::reports::Reports;
pub use self::result::{Parameters, ResultRows};
pub use self::script::{Output, Part, Script, Told};
pub use self::spec::{ScriptSpec, Server};
