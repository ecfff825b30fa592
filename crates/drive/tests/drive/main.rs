//! The driver against the built-in server and against servers of our own, on both interfaces of the kernel.

mod faults;
mod harness;
mod many;
mod outcomes;
mod output;
mod pace;
mod scripts;
mod security;
mod stopping;
