//! placeholder, replaced before it is used
