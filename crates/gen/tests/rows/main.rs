//! Rows of plain tables: pinned, the same in slices as in one piece, and as their modules say.

#![expect(
    clippy::expect_used,
    reason = "what is not as expected must fail the test"
)]

mod fingerprint;
mod flights;
mod import;
mod types;

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use loadstone_gen::dataset::{Chunk, Plain, Source, Table};
use loadstone_gen::encode::copy_binary;
use loadstone_gen::rows::{Config, ConfigError, RowsSource, SETS, logical_bytes};
use md5::{Digest, Md5};
use proptest::prelude::*;

const DISTRIBUTIONS: [&str; 3] = ["compressible", "random", "repeated"];
const TABLES: [&str; 7] = ["bigint", "int", "float", "json", "text", "varchar", "union"];

fn types(table: &str, distribution: &str, seed: i64, rows: u64) -> Config {
    let options = [("table", table), ("distribution", distribution)];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Config {
        options: BTreeMap::from(options),
        ..Config::new("types", seed, rows)
    }
}

fn every(seed: i64, rows: u64) -> Vec<Config> {
    let types = TABLES
        .into_iter()
        .flat_map(|table| DISTRIBUTIONS.map(|distribution| types(table, distribution, seed, rows)));
    let others = ["import", "flights"].map(|set| Config::new(set, seed, rows));
    others.into_iter().chain(types).collect()
}

fn source(config: &Config) -> RowsSource {
    RowsSource::new(config).expect("the configuration is good")
}

fn table(config: &Config) -> Table {
    source(config).dataset().tables[0].clone()
}

fn plain(config: &Config) -> Plain {
    table(config).plain.expect("a plain table")
}

fn batches(source: &mut dyn Source, rows: usize) -> Vec<RecordBatch> {
    let chunks = std::iter::from_fn(|| source.next(rows).expect("rows"));
    let batch = |chunk: Chunk| {
        assert_eq!(chunk.rows, chunk.tables[0].rows.num_rows() as u64);
        chunk.tables[0].rows.batch()
    };
    chunks.map(batch).collect()
}

/// All rows in one batch.
fn rows(config: &Config) -> RecordBatch {
    let count = usize::try_from(config.rows).expect("few");
    batches(&mut source(config), count).remove(0)
}

/// Everything the rows hold, in order.
fn content(batches: &[RecordBatch]) -> Vec<u8> {
    let mut content = Vec::new();
    for batch in batches {
        copy_binary(batch, &mut content).expect("encodable");
    }
    content
}

/// A change of one of these is a change of everybody's data.
#[test]
fn values_are_pinned() {
    let digest = |config: &Config| {
        let content = content(&batches(&mut source(config), 1000));
        format!("{:x}", Md5::digest(content))
    };
    let at = |first: u64, config: &Config| Config {
        first,
        ..config.clone()
    };
    let import = Config::new("import", 1, 3000);
    let mut lines = vec![
        format!("import {}", digest(&import)),
        format!(
            "import, far on {}",
            digest(&at(1 << 40, &Config::new("import", -7, 100)))
        ),
    ];
    let flights = Config::new("flights", 1, 3000);
    lines.push(format!("flights {}", digest(&flights)));
    let far = at(1 << 40, &Config::new("flights", -7, 100));
    lines.push(format!("flights, far on {}", digest(&far)));
    for config in every(3, 300).iter().skip(2) {
        let chosen: Vec<_> = config.options.values().map(String::as_str).collect();
        lines.push(format!(
            "{} {}",
            chosen.join(" "),
            digest(&at(2_000_000_000, config))
        ));
    }
    assert_eq!(lines.join("\n"), include_str!("digests.txt").trim_end());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn slices_together_are_the_whole(
        which in 0..23_usize,
        seed: i64,
        first in 0..2_000_000_000_u64,
        count in 1..400_u64,
        cuts in proptest::collection::vec(0..400_u64, 0..4),
        sizes in (1..500_usize, 1..500_usize),
    ) {
        let config = Config { first, ..every(seed, count)[which].clone() };
        let whole = content(&batches(&mut source(&config), sizes.0));
        let mut bounds: Vec<_> = cuts.into_iter().filter(|cut| *cut < count).collect();
        bounds.extend([0, count]);
        bounds.sort_unstable();
        let mut together = Vec::new();
        for bound in bounds.windows(2) {
            let slice = Config {
                first: first + bound[0],
                rows: bound[1] - bound[0],
                ..config.clone()
            };
            together.extend(content(&batches(&mut source(&slice), sizes.1)));
        }
        prop_assert!(together == whole);
    }

    #[test]
    fn what_is_passed_is_left_out(which in 0..23_usize, passed in 0..300_u64, size in 1..100_usize) {
        let config = every(5, 200)[which].clone();
        let mut jumping = source(&config);
        prop_assert_eq!(jumping.pass(passed).expect("no rows are made"), passed.min(200));
        prop_assert_eq!(jumping.rows_left(), 200 - passed.min(200));
        let rest = Config { first: passed.min(200), rows: 200 - passed.min(200), ..config };
        let expected = content(&batches(&mut source(&rest), 200));
        prop_assert!(content(&batches(&mut jumping, size)) == expected);
    }
}

#[test]
fn the_average_row_has_the_bytes_that_are_stated() {
    for config in every(11, 20_000) {
        let batch = rows(&Config {
            first: 500_000,
            ..config.clone()
        });
        let found = mean(logical_bytes(&batch), config.rows);
        let stated = plain(&config).row_bytes;
        let options = &config.options;
        assert!(
            (found / stated - 1.0).abs() < 0.01,
            "{options:?}: {found}, not {stated}"
        );
    }
}

#[test]
fn what_can_be_indexed_are_columns_of_the_table() {
    for config in every(1, 1) {
        let (table, plain) = (table(&config), plain(&config));
        let sequence = plain.sequence.map(|sequence| sequence.column.to_owned());
        assert_eq!(sequence.is_none(), config.set == "flights");
        for column in plain.usual_indexes.iter().chain(&sequence) {
            assert!(table.schema.field_with_name(column).is_ok(), "{column}");
        }
        assert_eq!(table.metrics, table.schema.fields().len());
    }
    let union = plain(&types("union", "random", 1, 1));
    assert_eq!(
        union.usual_indexes,
        ["id", "data1", "data2", "data4", "data6"]
    );
}

#[test]
fn what_there_is_not_is_refused_with_what_there_is() {
    let option = |name: &str, value: &str| Config {
        options: BTreeMap::from([(name.to_owned(), value.to_owned())]),
        ..Config::new("types", 1, 1)
    };
    let far = |set: &str, first, rows| Config {
        first,
        rows,
        ..Config::new(set, 1, 0)
    };
    let cases = [
        (
            Config::new("imports", 1, 1),
            "there are import, types and flights",
        ),
        (option("colour", "red"), "it has table and distribution"),
        (
            option("distribution", "even"),
            "choose random, compressible and repeated",
        ),
        (
            option("table", "jsonb"),
            "choose text, bigint, int, float, json, varchar and union",
        ),
        (
            Config {
                options: option("table", "int").options,
                ..Config::new("import", 1, 1)
            },
            "it has none",
        ),
        (
            far("types", 2_147_483_647, 1),
            "its last row is number 2147483646",
        ),
        (
            far("import", u64::MAX, 2),
            "more than the data set \"import\" has",
        ),
    ];
    for (config, words) in cases {
        let error: ConfigError = RowsSource::new(&config).err().expect("refused");
        assert!(error.to_string().contains(words), "{error}");
    }
    assert!(RowsSource::new(&far("types", 2_147_483_646, 1)).is_ok());
    assert_eq!(SETS.len(), 3);
}

#[test]
fn more_text_than_a_batch_holds_is_refused() {
    let config = types("text", "random", 1, 2_000_000);
    let error = source(&config).next(1_000_000).expect_err("too many");
    assert!(error.to_string().contains("use 1 to 524287"), "{error}");
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count as f64
}
