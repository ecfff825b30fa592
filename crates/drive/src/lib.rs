//! placeholder, replaced before the first commit
