//! Ways to reach a database: protocols that we speak ourselves, each an implementation of [`crate::protocol`], and
//! somebody's library.

mod certificates;
pub mod library;
pub(crate) mod mysql;
pub(crate) mod postgres;
