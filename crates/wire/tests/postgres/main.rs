//! Session and responder, joined in memory.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first surprise"
)]

mod decode;
mod fault;
mod link;
mod login;
mod query;
mod tls;
