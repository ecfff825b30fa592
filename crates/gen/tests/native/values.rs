//! Values: their formula, their bounds, how they move.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_schema::DataType;
use loadstone_gen::dataset::Source;
use loadstone_gen::native::Config;
use loadstone_gen::tsbs::UseCase;

use super::{chunks, config, source};

/// One field of one device over time, by table and name.
type Series = BTreeMap<(String, String), Vec<f64>>;

fn series(config: &Config) -> Series {
    let mut source = source(config);
    let dataset = source.dataset().clone();
    let mut series = Series::new();
    for chunk in chunks(&mut source, 10_000) {
        for table in &chunk.tables {
            let description = &dataset.tables[table.table];
            let rows = table.rows.batch();
            let fields = description.schema.fields().iter().zip(rows.columns());
            for (field, column) in
                fields.filter(|(field, _)| *field.data_type() == DataType::Float64)
            {
                let key = (description.name.clone(), field.name().clone());
                let values = column.as_primitive::<Float64Type>().values();
                series.entry(key).or_default().extend(values.iter());
            }
        }
    }
    series
}

/// The module's formula, written down a second time.
struct Formula {
    key: u64,
    column: u64,
    epoch: u64,
}

impl Formula {
    const STEP: u64 = 0xa076_1d64_78bd_642f;
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    fn split_mix(word: u64) -> u64 {
        let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn new(seed: u64, device: u64, column: u64, epoch: u64) -> Self {
        let seed = Self::split_mix(seed.wrapping_add(Self::GAMMA));
        let key = Self::split_mix(seed.wrapping_add(Self::GAMMA.wrapping_mul(device + 1)));
        Self { key, column, epoch }
    }

    fn h(&self, used: u64, number: u64) -> f64 {
        let place = ((4 * (self.column / 2) + used) << 48) + number;
        let state = self.key.wrapping_add(Self::STEP.wrapping_mul(place));
        let product = u128::from(state) * u128::from(state ^ 0xe703_7ed1_a0b4_28db);
        let halves = (product >> 64) ^ product;
        let half = halves >> (32 * (self.column % 2)) & 0xffff_ffff;
        f64::from(u32::try_from(half).expect("32 bits")) / 4_294_967_296.0
    }

    fn line(&self, used: u64, every: u64) -> f64 {
        let whole = |number: u64| f64::from(u32::try_from(number).expect("small"));
        let passed = whole(self.epoch % every) / whole(every);
        let (a, b) = (
            self.h(used, self.epoch / every),
            self.h(used, self.epoch / every + 1),
        );
        a + (b - a) * passed
    }

    fn walk(&self) -> f64 {
        let sum =
            0.80 * self.line(0, 2048) + 0.17 * self.line(1, 64) + 0.03 * self.h(2, self.epoch);
        (1.25 * sum - 0.125).clamp(0.0, 1.0)
    }
}

#[test]
fn values_follow_the_formula() {
    let (devices, epochs) = (5, 5000);
    let start = config(UseCase::Iot, 77, devices, epochs);
    let (trucks, hosts) = (
        series(&start),
        series(&config(UseCase::Devops, 77, devices, epochs)),
    );
    for row in 0..25_000 {
        let (epoch, device) = (row as u64 / devices, row as u64 % devices);
        let at = |column| Formula::new(77, device, column, epoch);
        let now = f64::from(u32::try_from(epoch).expect("small"));
        let counter = at(64 + 2);
        let expected = [
            (
                &trucks,
                "readings",
                "velocity",
                at(9 * 64 + 3).walk() * 100.0,
                1.0,
            ),
            (
                &trucks,
                "readings",
                "latitude",
                at(9 * 64).h(3, 0) * 89.0 + at(9 * 64).walk(),
                1e-5,
            ),
            (
                &trucks,
                "diagnostics",
                "current_load",
                at(10 * 64 + 1).h(1, epoch / 64) * 5000.0,
                1.0,
            ),
            (&hosts, "cpu", "usage_guest_nice", at(9).walk() * 100.0, 1.0),
            (
                &hosts,
                "disk",
                "free",
                at(2 * 64).walk() * 1_099_511_627_776.0,
                1.0,
            ),
            (
                &hosts,
                "diskio",
                "read_bytes",
                100.0 * (now + 32.0 * counter.line(1, 64) + 0.25 * counter.h(2, epoch)),
                1.0,
            ),
        ];
        for (series, table, field, expected, step) in expected {
            let value = series[&(table.to_owned(), field.to_owned())][row];
            // fractions are cut off
            assert!(
                (-step * 1.001..=0.001 * step).contains(&(value - expected)),
                "{field}: {value} {expected}"
            );
        }
    }
}

/// What TSBS only lets rise.
const COUNTERS: [&str; 27] = [
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "read_time",
    "write_time",
    "io_time",
    "interrupts",
    "context_switches",
    "processes_forked",
    "disk_pages_in",
    "disk_pages_out",
    "bytes_sent",
    "bytes_recv",
    "packets_sent",
    "packets_recv",
    "err_in",
    "err_out",
    "drop_in",
    "drop_out",
    "accepts",
    "handled",
    "requests",
    "uptime_in_seconds",
    "total_connections_received",
    "expired_keys",
    "evicted_keys",
];

#[test]
fn counters_never_fall() {
    let series = series(&config(UseCase::Devops, 9, 1, 3000));
    let counters: Vec<_> = series
        .iter()
        .filter(|((_, field), _)| COUNTERS.contains(&&**field))
        .collect();
    assert_eq!(counters.len(), 27);
    for (name, values) in counters {
        assert!(values.is_sorted() && values[0] < values[2999], "{name:?}");
    }
}

const GIB: f64 = 1_073_741_824.0;

/// Fields that wander from 0 up to a bound.
const BOUNDS: [(f64, &str, &[&str]); 14] = [
    (100.0, "nginx", &["active", "reading", "waiting", "writing"]),
    (1024.0 * GIB, "disk", &["free", "used"]),
    (
        100.0,
        "mem",
        &["used_percent", "available_percent", "buffered_percent"],
    ),
    (
        16.0 * GIB,
        "mem",
        &["total", "available", "used", "free", "cached", "buffered"],
    ),
    (GIB, "postgresl", &["temp_bytes"]),
    (
        1000.0,
        "postgresl",
        &[
            "numbackends",
            "blks_hit",
            "conflicts",
            "deadlocks",
            "blk_write_time",
        ],
    ),
    (
        16.0 * GIB,
        "redis",
        &[
            "used_memory",
            "used_memory_rss",
            "used_memory_peak",
            "used_memory_lua",
        ],
    ),
    (
        10_000.0,
        "redis",
        &["connected_clients", "rdb_changes_since_last_save"],
    ),
    (90.0, "readings", &["latitude"]),
    (180.0, "readings", &["longitude"]),
    (5000.0, "readings", &["elevation"]),
    (100.0, "readings", &["velocity", "grade"]),
    (360.0, "readings", &["heading"]),
    (50.0, "readings", &["fuel_consumption"]),
];
const MORE_BOUNDS: [(f64, &str, &[&str]); 4] = [
    (
        100.0,
        "cpu",
        &[
            "usage_user",
            "usage_system",
            "usage_idle",
            "usage_guest",
            "usage_guest_nice",
        ],
    ),
    (1.0, "diagnostics", &["fuel_state"]),
    (5000.0, "diagnostics", &["current_load"]),
    (5.0, "diagnostics", &["status"]),
];

#[test]
fn fields_stay_within_the_bounds_of_tsbs() {
    let mut all = series(&config(UseCase::Devops, 10, 1, 20_000));
    all.extend(series(&config(UseCase::Iot, 10, 1, 20_000)));
    for (high, table, fields) in BOUNDS.into_iter().chain(MORE_BOUNDS) {
        for field in fields {
            let values = &all[&(table.to_owned(), (*field).to_owned())];
            assert!(
                values.iter().all(|value| (0.0..=high).contains(value)),
                "{table}.{field}"
            );
            let (least, most) = values
                .iter()
                .fold((high, 0.0_f64), |(a, b), &v| (v.min(a), v.max(b)));
            let still = matches!(*field, "latitude" | "longitude" | "total");
            assert!(
                still || most - least > 0.3 * high.min(8.0),
                "{table}.{field} moves"
            );
        }
    }
}

/// The mean size of a step, as a part of that of two values drawn apart.
fn roughness(values: &[f64]) -> f64 {
    let count = f64::from(u32::try_from(values.len()).expect("few"));
    let mean = values.iter().sum::<f64>() / count;
    let variance = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / count;
    let steps = values
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(2))
        .sum::<f64>()
        / count;
    (steps / (2.0 * variance)).sqrt()
}

#[test]
fn gauges_wander_and_do_not_jump() {
    for ((_, field), values) in series(&config(UseCase::CpuOnly, 11, 1, 20_000)) {
        let roughness = roughness(&values);
        assert!((0.001..0.15).contains(&roughness), "{field}: {roughness}");
        let above = values.iter().filter(|value| **value > 90.0).count();
        assert!(
            above < 10_000,
            "{field} is above 90 in {above} of 20000 rows"
        );
    }
    let mut above = 0;
    for (_, values) in series(&config(UseCase::CpuOnly, 12, 100, 2000)) {
        above += values.iter().filter(|value| **value > 90.0).count();
    }
    // of two million
    assert!(
        (20_000..200_000).contains(&above),
        "{above} values are above 90"
    );
}

#[test]
fn devices_and_fields_and_seeds_differ() {
    let (one, other) = (
        config(UseCase::CpuOnly, 3, 2, 50),
        config(UseCase::CpuOnly, 4, 2, 50),
    );
    let (one, other) = (series(&one), series(&other));
    let mut all: Vec<Vec<f64>> = Vec::new();
    for values in one.values().chain(other.values()) {
        for device in 0..2 {
            all.push(values.iter().skip(device).step_by(2).copied().collect());
        }
    }
    for (number, values) in all.iter().enumerate() {
        assert!(!all[..number].contains(values));
    }
}

/// Fields are numbered in pairs that share the halves of one random number; devices follow each other by one step.
#[test]
fn neighbours_are_not_correlated() {
    let all = series(&config(UseCase::CpuOnly, 5, 5000, 1));
    let all: Vec<_> = all.values().collect();
    let devices_apart = all[0]
        .iter()
        .skip(1)
        .chain(all[0].first())
        .copied()
        .collect();
    for (one, other) in all
        .iter()
        .zip(&all[1..])
        .chain([(&all[0], &&devices_apart)])
    {
        let correlation = correlation(one, other);
        // four standard deviations
        assert!(correlation.abs() < 4.0 / 5000_f64.sqrt(), "{correlation}");
    }
}

fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let count = f64::from(u32::try_from(one.len()).expect("few"));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let (mean_one, mean_other) = (mean(one), mean(other));
    let product = |a: &[f64], mean_a: f64, b: &[f64], mean_b: f64| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - mean_a) * (b - mean_b))
            .sum()
    };
    let spread =
        product(one, mean_one, one, mean_one) * product(other, mean_other, other, mean_other);
    product(one, mean_one, other, mean_other) / spread.sqrt()
}
