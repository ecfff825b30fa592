//! What the fields of each table are, and how a table's rows of one epoch are made.

use super::field::{At, Field, extend_gauges, extend_shares};
use crate::tsbs::devices::Devices;
use crate::tsbs::fields::{as_double, disk, memory};

/// How the fields of a table come about.
#[derive(Clone, Debug)]
enum Shape {
    Fields(Vec<Field>),
    /// A time since boot for each host, then fields.
    Kernel(Vec<f64>, Vec<Field>),
    /// The seconds since the first epoch, then fields.
    Redis(Vec<Field>),
    /// All from the free space.
    Disk,
    /// All from the bytes used, cached and buffered, of so many for each host.
    Memory(Vec<i64>),
}

/// A table's own part of the formula.
#[derive(Clone, Debug)]
pub(super) struct Maker {
    shape: Shape,
    /// Number of the first field among those of all tables.
    first: u64,
}

/// Every table of every use case. Its place here is part of the formula: new ones come last.
const TABLES: [&str; 11] = [
    "cpu",
    "diskio",
    "disk",
    "kernel",
    "mem",
    "net",
    "nginx",
    "postgresl",
    "redis",
    "readings",
    "diagnostics",
];
/// No table has as many fields.
const FIELDS_MAX: u64 = 64;

const GIB: f64 = 1_073_741_824.0;
const DISK_BYTES: f64 = 1024.0 * GIB;

const CPU: [Field; 10] = [Field::Gauge { high: 100.0 }; 10];

fn rising(mean: f64) -> Field {
    Field::Counter { mean }
}

fn gauge(high: f64) -> Field {
    Field::Gauge { high }
}

/// The same ranges and rates as TSBS's.
fn fields(table: &str) -> Vec<Field> {
    match table {
        "cpu" => CPU.to_vec(),
        "diskio" => [50.0, 50.0, 100.0, 100.0, 5.0, 5.0, 5.0]
            .map(rising)
            .to_vec(),
        "kernel" => [rising(5.0); 5].to_vec(),
        "net" => [50.0, 50.0, 50.0, 50.0, 5.0, 5.0, 5.0, 5.0]
            .map(rising)
            .to_vec(),
        "nginx" => {
            let (counter, level) = (rising(5.0), gauge(100.0));
            vec![counter, level, counter, level, counter, level, level]
        }
        "postgresl" => {
            let mut fields = vec![gauge(1000.0); 16];
            fields[12] = gauge(GIB); // temp_bytes
            fields
        }
        "redis" => redis(),
        "readings" => vec![
            Field::Position { span: 90.0 },
            Field::Position { span: 180.0 },
            gauge(5000.0),
            gauge(100.0),
            gauge(360.0),
            gauge(100.0),
            Field::Tenths { high: 50.0 },
        ],
        "diagnostics" => vec![Field::Fuel, Field::Load, gauge(5.0)],
        _ => Vec::new(),
    }
}

/// All but the uptime.
fn redis() -> Vec<Field> {
    let mut fields = vec![rising(5.0)];
    fields.extend([rising(50.0); 4]);
    fields.extend([Field::Drift { mean: 1.0 }; 3]);
    fields.push(gauge(10_000.0));
    fields.extend([gauge(16.0 * GIB); 4]);
    fields.push(gauge(10_000.0));
    fields.extend([gauge(1000.0); 11]);
    fields.push(gauge(100.0)); // mem_fragmentation_ratio
    fields.extend([gauge(1000.0); 4]);
    fields
}

impl Maker {
    /// For a table of this name with so many fields.
    pub(super) fn new(table: &str, fields_count: usize, devices: &Devices) -> Self {
        let number = TABLES.iter().position(|&name| name == table).unwrap_or(0);
        let fields = fields(table);
        let shape = match table {
            "disk" => Shape::Disk,
            "mem" => Shape::Memory(devices.memory_bytes.clone()),
            "kernel" => {
                let times = devices.boot_times.iter().map(|&time| as_double(time));
                Shape::Kernel(times.collect(), fields)
            }
            "redis" => Shape::Redis(fields),
            // cpu-single has the first of cpu's fields
            _ => Shape::Fields(fields.into_iter().take(fields_count).collect()),
        };
        Self {
            shape,
            first: number as u64 * FIELDS_MAX,
        }
    }

    /// Appends the rows of some devices at one epoch, `columns` being those of the fields.
    pub(super) fn extend(&self, rows: &EpochRows<'_>, columns: &mut [Vec<f64>]) {
        match &self.shape {
            Shape::Fields(fields) => self.extend_fields(fields, rows, columns),
            Shape::Kernel(boot_times, fields) => {
                if let [first, columns @ ..] = columns {
                    first.extend_from_slice(&boot_times[rows.first..][..rows.keys.len()]);
                    self.extend_fields(fields, rows, columns);
                }
            }
            Shape::Redis(fields) => {
                if let [first, columns @ ..] = columns {
                    first.resize(first.len() + rows.keys.len(), rows.uptime_s);
                    self.extend_fields(fields, rows, columns);
                }
            }
            Shape::Disk => self.extend_disk(rows, columns),
            Shape::Memory(totals) => self.extend_memory(&totals[rows.first..], rows, columns),
        }
    }

    fn at(&self, field: u64, rows: &EpochRows<'_>) -> At {
        At {
            column: self.first + field,
            epoch: rows.epoch,
        }
    }

    fn extend_fields(&self, fields: &[Field], rows: &EpochRows<'_>, columns: &mut [Vec<f64>]) {
        let pairs = fields.chunks(2).zip(columns.chunks_mut(2));
        for (first, (fields, columns)) in (0..).step_by(2).zip(pairs) {
            let at = self.at(first, rows);
            match (fields, columns) {
                ([Field::Gauge { high: a }, Field::Gauge { high: b }], [x, y]) => {
                    extend_gauges(at, rows.keys, [*a, *b], [x, y]);
                }
                (fields, columns) => {
                    for ((number, field), column) in (first..).zip(fields).zip(columns) {
                        field.extend(self.at(number, rows), rows.keys, column);
                    }
                }
            }
        }
    }

    fn extend_disk(&self, rows: &EpochRows<'_>, columns: &mut [Vec<f64>]) {
        let mut free = Vec::with_capacity(rows.keys.len());
        gauge(DISK_BYTES).extend(self.at(0, rows), rows.keys, &mut free);
        for free in free {
            for (column, field) in columns.iter_mut().zip(disk(free)) {
                column.push(as_double(field));
            }
        }
    }

    fn extend_memory(&self, totals: &[i64], rows: &EpochRows<'_>, columns: &mut [Vec<f64>]) {
        let shares: [Vec<f64>; 3] = std::array::from_fn(|state| {
            let mut shares = Vec::with_capacity(rows.keys.len());
            extend_shares(self.at(state as u64, rows), rows.keys, &mut shares);
            shares
        });
        for (row, &total) in totals.iter().enumerate().take(rows.keys.len()) {
            let states = [0, 1, 2].map(|state: usize| shares[state][row] * as_double(total));
            let (bytes, percents) = memory(total, &states);
            let fields = bytes.map(as_double).into_iter().chain(percents);
            for (column, field) in columns.iter_mut().zip(fields) {
                column.push(field);
            }
        }
    }
}

/// Which rows to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct EpochRows<'a> {
    pub(super) epoch: u64,
    /// Seconds from the first epoch to this one.
    pub(super) uptime_s: f64,
    /// Number of the first device, counted from 0, and the keys of all.
    pub(super) first: usize,
    pub(super) keys: &'a [u64],
}
