//! Slices, and digests of what they hold.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use loadstone_gen::dataset::{Chunk, Source};
use loadstone_gen::native::Config;
use loadstone_gen::tsbs::UseCase;
use md5::{Digest, Md5};
use proptest::prelude::*;

use super::{chunks, column_bytes, config, source};

const USE_CASES: [UseCase; 4] = [
    UseCase::CpuOnly,
    UseCase::CpuSingle,
    UseCase::Devops,
    UseCase::Iot,
];

/// The columns of each table, `tags` among them, as bytes.
fn content(config: &Config, rows: usize) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut source = source(config);
    let dataset = source.dataset().clone();
    let mut content: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    let mut add = |name: &str, rows: &RecordBatch| {
        let columns = content.entry(name.to_owned()).or_default();
        columns.resize(rows.num_columns(), Vec::new());
        for (bytes, column) in columns.iter_mut().zip(rows.columns()) {
            bytes.extend(column_bytes(column));
        }
    };
    for chunk in chunks(&mut source, rows) {
        if let Some(tags) = &chunk.tags {
            add("tags", tags);
        }
        for table in &chunk.tables {
            add(&dataset.tables[table.table].name, &table.rows.batch());
        }
    }
    content
}

fn digest(config: &Config) -> String {
    let mut md5 = Md5::new();
    for (name, columns) in content(config, 1000) {
        md5.update(name);
        for column in columns {
            md5.update(column);
        }
    }
    format!("{:x}", md5.finalize())
}

/// A change of one of these is a change of everybody's data.
#[test]
fn values_are_pinned() {
    let cases = [
        (
            "0fffdf4c4e1f3dc2b786483b62b1c909",
            config(UseCase::CpuOnly, 123, 10, 3000),
        ),
        (
            "6aaf5c9eb4f6aa774708f0e0ccab90bc",
            config(UseCase::CpuSingle, -1, 3, 100),
        ),
        (
            "717a08d032a83741444c5634ebd70d4b",
            config(UseCase::Devops, 123, 10, 500),
        ),
        (
            "c7542dd926d7246efd5cd82bdaecb41d",
            config(UseCase::Iot, 123, 10, 3000),
        ),
        (
            "203e4c9dad6a2ce5e5ef952477ac15d4",
            Config {
                slice: (7, 11),
                ..config(UseCase::Iot, i64::MIN, 7, 6000)
            },
        ),
    ];
    let digests: Vec<_> = cases.iter().map(|(_, config)| digest(config)).collect();
    let expected = cases.map(|(digest, _)| digest);
    assert_eq!(digests, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn slices_together_are_the_whole(
        which in 0..USE_CASES.len(),
        seed: i64,
        scale in 1..50_u64,
        epochs in 0..40_i64,
        count in 1..60_u32,
        rows in proptest::collection::vec(1..2000_usize, 2),
    ) {
        let config = config(USE_CASES[which], seed, scale, epochs);
        let whole = content(&config, rows[0]);
        let mut together: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for index in 0..count {
            let slice = Config { slice: (index, count), ..config.clone() };
            for (name, columns) in content(&slice, rows[1]) {
                let to = together.entry(name).or_insert_with(|| vec![Vec::new(); columns.len()]);
                to.iter_mut().zip(columns).for_each(|(to, bytes)| to.extend(bytes));
            }
        }
        prop_assert!(together == whole);
    }

    #[test]
    fn slices_are_even_and_counted(
        which in 0..USE_CASES.len(),
        scale in 1..50_u64,
        epochs in 0..40_i64,
        count in 1..60_u32,
        rows in 1..2000_usize,
    ) {
        let config = config(USE_CASES[which], 1, scale, epochs);
        let tables = source(&config).dataset().tables.len() as u64;
        let width: usize = source(&config).dataset().tables.iter().map(|table| table.metrics).sum();
        let mut lengths = Vec::new();
        for index in 0..count {
            let mut source = source(&Config { slice: (index, count), ..config.clone() });
            let left = source.rows_left();
            let chunks = chunks(&mut source, rows);
            let total = |of: fn(&Chunk) -> u64| chunks.iter().map(of).sum::<u64>();
            prop_assert_eq!(total(|chunk| chunk.rows), left);
            prop_assert_eq!(total(|chunk| chunk.metrics), left / tables * width as u64);
            for (number, chunk) in chunks.iter().enumerate() {
                let sum: usize = chunk.tables.iter().map(|table| table.rows.num_rows()).sum();
                prop_assert_eq!(sum as u64, chunk.rows);
                prop_assert!(sum == rows || number + 1 == chunks.len());
                prop_assert_eq!(chunk.tags.is_some(), index == 0 && number == 0);
            }
            lengths.push(left / tables);
        }
        prop_assert_eq!(lengths.iter().sum::<u64>(), scale * epochs.cast_unsigned());
        let (least, most) = (lengths.iter().min(), lengths.iter().max());
        prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1));
    }
}

#[test]
fn a_slice_of_a_trillion_rows_begins_at_once() {
    let whole = Config {
        scale: 1000,
        end_ns: i64::MAX,
        interval_ns: 1_000_000_000,
        ..Config::new(UseCase::Devops, 5)
    };
    let mut last = source(&Config {
        slice: (u32::MAX - 1, u32::MAX),
        ..whole.clone()
    });
    let chunk = last.next(10_000).expect("rows").expect("a chunk");
    let rows = chunk.tables[0].rows.batch();
    let cpu = rows.column(0).as_primitive::<TimestampNanosecondType>();
    assert!(cpu.value(0) > i64::MAX - 10_000_000_000);
    assert!(source(&whole).rows_left() > 1_000_000_000_000);
}
