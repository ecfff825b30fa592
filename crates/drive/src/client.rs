//! Ways to reach a database: protocols that we speak ourselves, each an implementation of [`crate::protocol`], and
//! somebody's library.

pub mod library;
pub(crate) mod postgres;
