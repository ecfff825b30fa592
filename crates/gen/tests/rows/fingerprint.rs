//! Fingerprints of plain rows against a plain restatement of their formula.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use loadstone_gen::rows::Fingerprint;
use md5::{Digest, Md5};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct Row {
    int: Option<i32>,
    first: Option<f64>,
    text: Option<String>,
    bigint: Option<i64>,
    second: Option<f64>,
    time: Option<i64>,
    flag: Option<bool>,
    small: Option<i16>,
    /// A date, by its year and month.
    date: Option<(i32, u8)>,
    single: Option<f32>,
}

fn row() -> impl Strategy<Value = Row> {
    let numbers = (any::<Option<i32>>(), any::<Option<i64>>());
    let doubles = prop::option::of(-1e9..1e9_f64);
    let values = (prop::option::of(".{0,20}"), doubles.clone(), doubles);
    let others = (any::<Option<i64>>(), any::<Option<bool>>());
    let dates = prop::option::of((1970..2100, 1..=12_u8));
    let later = (any::<Option<i16>>(), dates, prop::option::of(-1e6..1e6_f32));
    let all = (numbers, values, others, later);
    all.prop_map(
        |((int, bigint), (text, first, second), (time, flag), later)| Row {
            int,
            first,
            text,
            bigint,
            second,
            time,
            flag,
            small: later.0,
            date: later.1,
            single: later.2,
        },
    )
}

fn batch(rows: &[Row]) -> RecordBatch {
    let int: Int32Array = rows.iter().map(|row| row.int).collect();
    let first: Float64Array = rows.iter().map(|row| row.first).collect();
    let text: StringArray = rows.iter().map(|row| row.text.clone()).collect();
    let bigint: Int64Array = rows.iter().map(|row| row.bigint).collect();
    let second: Float64Array = rows.iter().map(|row| row.second).collect();
    let time: TimestampMicrosecondArray = rows.iter().map(|row| row.time).collect();
    let flag: BooleanArray = rows.iter().map(|row| row.flag).collect();
    let small: Int16Array = rows.iter().map(|row| row.small).collect();
    let date: Date32Array = rows.iter().map(|row| row.date.map(days)).collect();
    let single: Float32Array = rows.iter().map(|row| row.single).collect();
    let columns: [(&str, ArrayRef); 10] = [
        ("int", Arc::new(int)),
        ("first", Arc::new(first)),
        ("text", Arc::new(text)),
        ("bigint", Arc::new(bigint)),
        ("second", Arc::new(second)),
        ("time", Arc::new(time)),
        ("flag", Arc::new(flag)),
        ("small", Arc::new(small)),
        ("date", Arc::new(date)),
        ("single", Arc::new(single)),
    ];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn fingerprint(batches: &[RecordBatch]) -> Fingerprint {
    let mut fingerprint = Fingerprint::new(10);
    for batch in batches {
        fingerprint.add(batch).expect("known types");
    }
    fingerprint
}

/// Days from 1970 to the first of a month.
fn days((year, month): (i32, u8)) -> i32 {
    let is_leap = |year: i32| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let years = (1970..year).map(|year| 365 + i32::from(is_leap(year)));
    let lengths = [
        31,
        28 + i32::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    years
        .chain(lengths.into_iter().take(usize::from(month) - 1))
        .sum()
}

/// `content` and `numbers` as the documentation of the module has them.
#[expect(clippy::cast_possible_truncation, reason = "sums are below 2^53")]
fn expected(rows: &[Row]) -> (u128, i128) {
    let shown = |value: Option<String>| value.unwrap_or_else(|| "\\N".to_owned());
    let mut sums = (0, 0);
    for row in rows {
        let r = [
            shown(row.int.map(|v| v.to_string())),
            shown(row.text.clone()),
            shown(row.bigint.map(|v| v.to_string())),
            shown(row.time.map(|v| v.to_string())),
            shown(row.flag.map(|v| u8::from(v).to_string())),
            shown(row.small.map(|v| v.to_string())),
            shown(
                row.date
                    .map(|(year, month)| format!("{year}-{month:02}-01")),
            ),
        ];
        let digest = format!("{:x}", Md5::digest(r.join("|")));
        let k = u128::from_str_radix(&digest[..8], 16).expect("hexadecimal");
        let s = row.first.unwrap_or(0.0) * 1.0
            + row.second.unwrap_or(0.0) * 2.0
            + f64::from(row.single.unwrap_or(0.0)) * 3.0;
        let v = ((s - (s / 65521.0).floor() * 65521.0) * 1_048_576.0).floor() as i128;
        sums.0 += k;
        sums.1 += (1 + i128::try_from(k % 65521).expect("small")) * v;
    }
    sums
}

proptest! {
    #[test]
    fn the_formula_is_the_documented_one(rows in prop::collection::vec(row(), 0..40)) {
        let taken = fingerprint(&[batch(&rows)]);
        prop_assert_eq!((taken.content(), taken.numbers()), expected(&rows));
        let bytes: usize = rows.iter().filter_map(|row| row.text.as_ref().map(String::len)).sum();
        prop_assert_eq!((taken.rows(), taken.bytes()), (rows.len() as u64, bytes as u64));
        prop_assert_eq!(taken.nulls()[2], rows.iter().filter(|row| row.text.is_none()).count() as u64);
    }

    #[test]
    fn order_and_batches_do_not_matter(rows in prop::collection::vec(row(), 1..40), cut in 0..40_usize) {
        let whole = fingerprint(&[batch(&rows)]);
        let (head, tail) = rows.split_at(cut.min(rows.len()));
        let sliced = batch(&rows).slice(cut.min(rows.len()), tail.len());
        let mut merged = fingerprint(&[sliced]);
        merged.merge(&fingerprint(&[batch(head)]));
        prop_assert_eq!(&merged, &whole);
        let changed: Vec<_> = rows.iter().skip(1).cloned().collect();
        prop_assert_ne!(&fingerprint(&[batch(&changed)]), &whole);
    }
}

#[test]
fn another_number_of_columns_is_refused() {
    let error = Fingerprint::new(6)
        .add(&batch(&[]))
        .expect_err("ten columns");
    assert_eq!(
        error.to_string(),
        "the rows have 10 columns, but the rows before had 6"
    );
}
