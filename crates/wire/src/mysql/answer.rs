//! The packets that end something: OK, EOF, and the answer to a prepare.

use mysql_common::constants::StatusFlags;

use super::MysqlError;
use super::reader::Reader;

/// First bytes of payloads.
pub(super) const OK: u8 = 0x00;
pub(super) const DATA_WANTED: u8 = 0xFB;
pub(super) const END: u8 = 0xFE;
pub(super) const ERROR: u8 = 0xFF;

/// What a server says of itself at the end of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    flags: StatusFlags,
    affected: u64,
}

impl Status {
    /// From an OK packet; session state and remarks follow and are passed over.
    pub(super) fn of_ok(payload: &[u8]) -> Result<Self, MysqlError> {
        let mut reader = Reader(payload);
        let mut read = || {
            reader.take(1)?;
            // Rows that were affected, and the last number that was generated.
            let affected = reader.lenenc()?;
            reader.lenenc()?;
            Some((reader.u16()?, affected))
        };
        Self::from_bits(read(), "OK packet")
    }

    /// From the EOF packet of servers before OK took its place.
    pub(super) fn of_eof(payload: &[u8]) -> Result<Self, MysqlError> {
        let mut reader = Reader(payload);
        // Its begin, and the number of warnings.
        let bits = reader.take(3).and_then(|_| reader.u16());
        Self::from_bits(bits.map(|bits| (bits, 0)), "EOF packet")
    }

    fn from_bits(read: Option<(u16, u64)>, what: &'static str) -> Result<Self, MysqlError> {
        let (bits, affected) = read.ok_or(MysqlError::Malformed { what })?;
        let flags = StatusFlags::from_bits_retain(bits);
        Ok(Self { flags, affected })
    }

    /// Rows that were changed.
    pub(super) fn affected(self) -> u64 {
        self.affected
    }

    pub(super) fn in_transaction(self) -> bool {
        self.flags.contains(StatusFlags::SERVER_STATUS_IN_TRANS)
    }

    /// Another result of the same command follows.
    pub(super) fn has_more(self) -> bool {
        self.flags.contains(StatusFlags::SERVER_MORE_RESULTS_EXISTS)
    }
}

/// The first packet of the answer to a prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PrepareOk {
    pub(super) id: u32,
    pub(super) columns: u16,
    pub(super) parameters: u16,
}

impl PrepareOk {
    pub(super) fn read(payload: &[u8]) -> Result<Self, MysqlError> {
        let mut reader = Reader(payload);
        let mut read = || {
            reader.take(1).filter(|first| *first == [OK])?;
            Some(Self {
                id: reader.u32()?,
                columns: reader.u16()?,
                parameters: reader.u16()?,
            })
        };
        let what = "answer to a prepare";
        read().ok_or(MysqlError::Malformed { what })
    }

    /// How many packets follow: definitions, each group with its end where the server still sends that.
    pub(super) fn packets(self, ends: bool) -> u32 {
        let group = |count: u16| u32::from(count) + u32::from(ends && count > 0);
        group(self.columns) + group(self.parameters)
    }
}
