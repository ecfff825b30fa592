//! Names of variables, interned once so that running a script never compares text.

use std::collections::BTreeMap;

/// A variable of a script: its index in [`Symbols`] and in each client's [`crate::Vars`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VarId(pub u32);

impl VarId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of all variables of a run.
///
/// One table serves every script of a run, so that a variable set by one script is seen by the
/// next, as in pgbench. Names that only turn up while running (columns of `\gset`) are interned
/// then; a worker may do that on its own clone, since values never leave their client.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    ids: BTreeMap<Box<str>, VarId>,
    names: Vec<Box<str>>,
}

impl Symbols {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of `name`, new if it was unknown.
    pub fn intern(&mut self, name: &str) -> VarId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = VarId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.into());
        self.ids.insert(name.into(), id);
        id
    }

    /// The id of `name`, if it was ever interned.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<VarId> {
        self.ids.get(name).copied()
    }

    /// The name behind `id`; empty for an id of another table.
    #[must_use]
    pub fn name(&self, id: VarId) -> &str {
        self.names.get(id.index()).map_or("", |name| name)
    }

    /// How many names there are; [`crate::Vars::new`] takes it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no name was interned yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Whether pgbench takes `name` as the name of a variable: letters, digits, `_` and anything
/// outside ASCII, not beginning with a digit.
#[must_use]
pub fn is_variable_name(name: &str) -> bool {
    name.bytes().next().is_some_and(is_name_start) && name.bytes().all(is_name_byte)
}

pub(crate) const fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) const fn is_name_byte(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}
