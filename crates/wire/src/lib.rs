//! Database protocols without sockets, clock or threads: bytes in, events out.
//!
//! The caller owns the connection and the waiting. It hands what arrived to `receive`, appends
//! messages, and sends what `pending` returns. So the same code runs under `io_uring`, under
//! epoll, and in tests with no socket at all.

pub mod mysql;
pub mod postgres;
