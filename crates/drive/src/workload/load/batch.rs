//! One batch: the messages of its transaction, and what they carry.

use loadstone_gen::fingerprint::Tables;
use serde::{Deserialize, Serialize};

use super::stream::Reader;
use crate::client::library::RowBatch;

/// A transaction that is ready to be sent.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Counted from 0 over the load.
    pub(crate) number: u64,
    /// The step that it belongs to.
    pub(crate) step: u64,
    pub(crate) content: Content,
    /// All messages; parts of them may need a statement that the connection must know.
    pub(crate) bytes: Vec<u8>,
    /// Before the byte at this place, the connection must know this shape of statement.
    pub(crate) needs: Vec<(usize, u32)>,
    /// It is the begin of its transaction; only a long one has other pieces.
    pub(crate) opens: bool,
    /// It is the end of it.
    pub(crate) closes: bool,
    /// What follows the bytes and is still made, and the content of it all.
    pub(crate) rest: Option<Reader>,
    /// In the place of messages, for a library.
    pub(crate) rows: Option<Box<RowBatch>>,
    /// Pieces of long transactions: where each part ends that is sent for itself, and its rows.
    pub(crate) parts: Vec<(usize, u64)>,
    /// Labels of the statements, in order.
    pub(crate) statements: Vec<u32>,
    /// How many answers the server will give.
    pub(crate) answers: u32,
}

/// What a batch holds.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Content {
    /// Rows over all tables, those of tags not among them.
    pub(crate) rows: u64,
    pub(crate) metrics: u64,
    pub(crate) tags_rows: u64,
    /// Of plain rows: what their values are long, apart from how they are stored.
    pub(crate) logical_bytes: u64,
    /// What each table gets; none of plain rows.
    pub(crate) fingerprints: Option<Tables>,
    /// Latest time of its rows, in microseconds since 1970.
    pub(crate) latest_us: Option<i64>,
}

impl Batch {
    /// A whole transaction, of which nothing is said yet.
    pub(crate) fn whole(number: u64, content: Content, memory: Vec<u8>) -> Self {
        Self {
            number,
            content,
            bytes: memory,
            opens: true,
            closes: true,
            ..Self::default()
        }
    }
}

impl Content {
    /// Add another part.
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.metrics += other.metrics;
        self.tags_rows += other.tags_rows;
        self.logical_bytes += other.logical_bytes;
        match (&mut self.fingerprints, &other.fingerprints) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine, Some(theirs)) => *mine = Some(theirs.clone()),
            (_, None) => {}
        }
        self.latest_us = self.latest_us.max(other.latest_us);
    }
}
