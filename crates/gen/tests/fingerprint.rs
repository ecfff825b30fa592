//! Fingerprints against a plain restatement of their formula.

#![expect(
    clippy::expect_used,
    reason = "what is not as expected must fail the test"
)]

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float64Array, Int32Array, RecordBatch, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use loadstone_gen::dataset::Source;
use loadstone_gen::fingerprint::{Fingerprint, Tables};
use loadstone_gen::tsbs::{Config, SimulationSource, UseCase};
use proptest::prelude::*;

const FIELDS: usize = 9;

/// Time in nanoseconds, `tags_id`, fields.
type Row = (i64, i32, Vec<Option<f64>>);

fn batch(rows: &[Row]) -> RecordBatch {
    let times = rows.iter().map(|row| row.0);
    let tags = rows.iter().map(|row| row.1);
    let mut columns: Vec<(String, ArrayRef)> = vec![
        (
            "time".to_owned(),
            Arc::new(TimestampNanosecondArray::from_iter_values(times)),
        ),
        (
            "tags_id".to_owned(),
            Arc::new(Int32Array::from_iter_values(tags)),
        ),
    ];
    for field in 0..FIELDS {
        let values: Float64Array = rows.iter().map(|row| row.2[field]).collect();
        columns.push((format!("f{field}"), Arc::new(values)));
    }
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn fingerprint(batch: &RecordBatch) -> Fingerprint {
    let mut fingerprint = Fingerprint::new(FIELDS);
    fingerprint.add(batch).expect("a table of time series");
    fingerprint
}

/// `content` as the documentation of the module has it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "sums of fields are below 2^53"
)]
fn content(rows: &[Row]) -> i128 {
    let row = |(time_ns, tags, fields): &Row| {
        let time_us = time_ns.div_euclid(1000);
        let k = 1 + (i128::from(time_us) + 7919 * i128::from(*tags)).rem_euclid(65_521);
        let (mut s, mut factor) = (0.0, 0.0);
        for field in fields {
            factor += 1.0;
            s += field.unwrap_or(0.0) * factor;
        }
        let v = ((s - (s / 65_521.0).floor() * 65_521.0) * 1_048_576.0).floor();
        k * i128::from(v as i64)
    };
    rows.iter().map(row).sum()
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let value = prop_oneof![
        any::<i32>().prop_map(f64::from),
        any::<i32>().prop_map(|value| f64::from(value) / 100_000.0),
        0.0..1e12,
        Just(-0.0),
    ];
    let fields = prop::collection::vec(prop::option::weighted(0.8, value), FIELDS);
    prop::collection::vec((any::<i64>(), 0..i32::MAX, fields), 0..1200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_figure_follows_its_formula(rows in rows()) {
        let print = fingerprint(&batch(&rows));
        prop_assert_eq!(print.rows(), rows.len() as u64);
        let time_sum: i128 = rows.iter().map(|row| i128::from(row.0.div_euclid(1000))).sum();
        prop_assert_eq!(print.time_sum(), time_sum);
        prop_assert_eq!(print.tags_sum(), rows.iter().map(|row| i128::from(row.1)).sum::<i128>());
        let nulls = |field: usize| rows.iter().filter(|row| row.2[field].is_none()).count() as u64;
        prop_assert_eq!(print.nulls(), (0..FIELDS).map(nulls).collect::<Vec<_>>());
        prop_assert_eq!(print.content(), content(&rows));
    }

    #[test]
    fn order_and_parts_do_not_count(rows in rows(), cut in 0..1200_usize) {
        let whole = batch(&rows);
        let cut = cut.min(rows.len());
        let mut parts = fingerprint(&whole.slice(cut, rows.len() - cut));
        parts.merge(&fingerprint(&whole.slice(0, cut)));
        prop_assert_eq!(&parts, &fingerprint(&whole));
        let mut reversed = rows;
        reversed.reverse();
        prop_assert_eq!(&parts, &fingerprint(&batch(&reversed)));
    }

    #[test]
    fn a_change_is_noticed(rows in rows(), row: prop::sample::Index, field in 0..FIELDS, change in 0..5_u8) {
        prop_assume!(!rows.is_empty());
        let before = fingerprint(&batch(&rows));
        let mut changed = rows;
        let index = row.index(changed.len());
        match change {
            0 => drop(changed.swap_remove(index)),
            1 => changed.push(changed[index].clone()),
            2 => changed[index].0 = changed[index].0.wrapping_add(1_000_000),
            3 => changed[index].1 ^= 1,
            _ => {
                let value = &mut changed[index].2[field];
                *value = value.is_none().then_some(1.0);
            }
        }
        prop_assert_ne!(before, fingerprint(&batch(&changed)));
    }
}

#[test]
fn microseconds_count_like_nanoseconds() {
    let rows = [(1_451_606_400_000_001_999, 3, vec![Some(1.5); FIELDS])];
    let nanoseconds = batch(&rows);
    let mut columns = nanoseconds.columns().to_vec();
    columns[0] = Arc::new(TimestampMicrosecondArray::from_iter_values([
        1_451_606_400_000_001,
    ]));
    let names = (0..).map(|index: usize| format!("c{index}"));
    let microseconds = RecordBatch::try_from_iter(names.zip(columns)).expect("a batch");
    assert_eq!(fingerprint(&microseconds), fingerprint(&nanoseconds));
}

#[test]
fn rows_of_another_shape_are_refused_and_not_counted() {
    let rows = batch(&[(0, 1, vec![None; FIELDS])]);
    let mut fingerprint = Fingerprint::new(FIELDS + 1);
    let refusal = fingerprint.add(&rows).expect_err("a field is missing");
    assert!(
        refusal.to_string().ends_with("column 11 is missing"),
        "{refusal}"
    );
    let swapped = rows.project(&[0, 2, 1]).expect("columns");
    let refusal = Fingerprint::new(1)
        .add(&swapped)
        .expect_err("tags are no doubles");
    assert!(
        refusal.to_string().ends_with("column 1 is Float64"),
        "{refusal}"
    );
    assert_eq!(fingerprint, Fingerprint::new(FIELDS + 1));
}

/// Figures that `PostgreSQL` and `DuckDB` computed from the same rows.
#[test]
fn databases_agree() {
    let start = Config::new(UseCase::Iot, 123);
    let end_ns = start.start_ns + 200 * start.interval_ns;
    let config = Config {
        scale: 20,
        end_ns,
        ..start
    };
    let mut source = SimulationSource::new(&config).expect("good");
    let mut tables = Tables::new(source.dataset());
    while let Some(chunk) = source.next(777).expect("rows") {
        tables.add(&chunk).expect("chunks of the data set");
    }
    let shown: Vec<_> = tables
        .as_slice()
        .iter()
        .map(|print| {
            (
                print.rows(),
                print.time_sum(),
                print.tags_sum(),
                print.content(),
                print.nulls(),
            )
        })
        .collect();
    let diagnostics: [u64; 3] = [125, 99, 99];
    let readings: [u64; 7] = [39, 49, 46, 44, 35, 42, 54];
    let expected = [
        (
            3595,
            5_218_528_578_320_000_000,
            44_844,
            633_511_571_306_626_976,
            &diagnostics[..],
        ),
        (
            3606,
            5_234_496_282_930_000_000,
            44_538,
            290_644_696_178_576_163,
            &readings[..],
        ),
    ];
    assert_eq!(shown, expected);
}
