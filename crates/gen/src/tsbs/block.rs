//! Simulated rows on their way from the one thread that simulates to those that format.

/// Rows in the order of the stream, as numbers: about a tenth of the size of their text. A block is
/// refilled again and again and keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub(super) hosts: HostRows,
    pub(super) trucks: Vec<TruckRow>,
}

/// A block stops growing at this many rows or values.
pub(super) const ROWS_MAX: usize = 512;
pub(super) const VALUES_MAX: usize = 1 << 14;

impl Block {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.hosts.hosts.len() + self.trucks.len()
    }

    pub(super) fn clear(&mut self) {
        self.hosts.hosts.clear();
        self.hosts.values.clear();
        self.trucks.clear();
    }
}

/// Rows of one table at one time, from several hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct HostRows {
    pub(super) table: usize,
    pub(super) time_ns: i64,
    /// How long the hosts have run.
    pub(super) uptime_s: i64,
    pub(super) hosts: Vec<u32>,
    /// The states behind the fields, row after row.
    pub(super) values: Vec<f64>,
}

/// No field, or no tag, of a row is empty.
pub(super) const NONE: u8 = u8::MAX;

/// One row of a truck.
#[derive(Clone, Copy, Debug)]
pub(super) struct TruckRow {
    pub(super) time_ns: i64,
    pub(super) truck: u32,
    pub(super) table: TruckTable,
    pub(super) empty_field: u8,
    pub(super) empty_tag: u8,
    /// Fields times 10 to the power of their places; as many as the table has.
    pub(super) fields: [i32; 7],
}

impl TruckRow {
    /// Number of fields.
    #[inline]
    pub(super) fn width(&self) -> usize {
        match self.table {
            TruckTable::Readings => 7,
            TruckTable::Diagnostics => 3,
        }
    }
}

/// The two tables of a truck.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TruckTable {
    Readings,
    Diagnostics,
}

/// Which of the interleaved groups the next row falls to.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    ours: u32,
    count: u32,
    next: u32,
}

impl Groups {
    pub(super) fn new(ours: u32, count: u32) -> Self {
        Self {
            ours,
            count,
            next: 0,
        }
    }

    /// Counts one row; whether it is ours.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        let ours = self.next == self.ours;
        self.next += 1;
        if self.next == self.count {
            self.next = 0;
        }
        ours
    }
}
