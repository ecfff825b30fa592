//! A disk that forgets what was not synced.

pub mod attr;
mod backing;
pub mod disk;
mod inode;
pub mod mount;
mod pages;
mod tree;
