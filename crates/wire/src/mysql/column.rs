//! The columns of a result.

use super::MysqlError;
use super::reader::Reader;

/// No table or result has more.
const COLUMNS_MAX: u64 = 65_535;
const UNSIGNED: u16 = 0x20;

/// What the server says of one column, its name aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Definition {
    /// Its name, in the names of all columns.
    name: (usize, usize),
    pub(super) kind: u8,
    pub(super) is_unsigned: bool,
    /// Digits after the point, of seconds too; 31 or more where they vary.
    pub(super) decimals: u8,
    charset: u16,
}

/// The columns of the result that is being read; kept and refilled.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    names: Vec<u8>,
    pub(super) all: Vec<Definition>,
}

impl Definitions {
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.all.clear();
    }

    /// How many columns the first packet of a result announces.
    pub(super) fn count(payload: &[u8]) -> Result<usize, MysqlError> {
        let what = "count of columns";
        let mut reader = Reader(payload);
        let count = reader.lenenc().filter(|count| *count <= COLUMNS_MAX);
        match count.map(usize::try_from) {
            Some(Ok(count)) if reader.0.is_empty() => Ok(count),
            _ => Err(MysqlError::Malformed { what }),
        }
    }

    /// Takes one column's packet.
    pub(super) fn push(&mut self, payload: &[u8]) -> Result<(), MysqlError> {
        let what = "definition of a column";
        self.read(payload).ok_or(MysqlError::Malformed { what })
    }

    fn read(&mut self, payload: &[u8]) -> Option<()> {
        let mut reader = Reader(payload);
        // Catalog, schema, table and the table's own name.
        for _ in 0..4 {
            reader.bytes()?;
        }
        let name = reader.bytes()?;
        reader.bytes()?;
        let mut fixed = Reader(reader.bytes()?);
        let charset = fixed.u16()?;
        fixed.u32()?;
        let kind = fixed.u8()?;
        let flags = fixed.u16()?;
        let decimals = fixed.u8()?;
        let from = self.names.len();
        self.names.extend_from_slice(name);
        self.all.push(Definition {
            name: (from, self.names.len()),
            kind,
            is_unsigned: flags & UNSIGNED != 0,
            decimals,
            charset,
        });
        Some(())
    }
}

/// The columns of a result.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    pub(super) definitions: &'a Definitions,
    pub(super) is_binary: bool,
}

impl<'a> Columns<'a> {
    /// In order.
    pub fn columns(&self) -> impl Iterator<Item = Column<'a>> + use<'a> {
        let (definitions, is_binary) = (self.definitions, self.is_binary);
        definitions.all.iter().map(move |one| Column {
            name: &definitions.names[one.name.0..one.name.1],
            kind: one.kind,
            is_unsigned: one.is_unsigned,
            charset: one.charset,
            is_binary,
        })
    }
}

/// One column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name, or its alias.
    pub name: &'a [u8],
    /// The protocol's number of its type: 3 is INT.
    pub kind: u8,
    /// A whole number without a sign.
    pub is_unsigned: bool,
    /// The number of its collation; 63 means bytes, not text.
    pub charset: u16,
    /// Its values come in the protocol's binary form, not as text.
    pub is_binary: bool,
}
