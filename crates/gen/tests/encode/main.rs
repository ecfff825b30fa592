//! What encoders write, read back by small decoders of our own.

#![expect(
    clippy::expect_used,
    reason = "what is not as expected must fail the test"
)]

mod batch;
mod calendar;
mod decode;

use std::sync::Arc;

use arrow_array::{ArrayRef, Date64Array, Int32Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use loadstone_gen::encode::{
    EncodeError, copy_binary, copy_text, csv, csv_header, is_json, json_field,
};
use proptest::prelude::*;

use batch::{Batch, Value};
use decode::Read;

fn encoded(
    encode: fn(&RecordBatch, &mut Vec<u8>) -> Result<(), EncodeError>,
    batch: &Batch,
) -> Vec<u8> {
    let mut out = b"before".to_vec();
    encode(&batch.record_batch(), &mut out).expect("every type can be written");
    assert!(out.starts_with(b"before"), "encoders append");
    out.split_off(b"before".len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn copy_binary_reads_back(batch in batch::batches()) {
        let bytes = encoded(copy_binary, &batch);
        prop_assert_eq!(decode::binary(&bytes, &batch.kinds), batch.rows_to_microseconds());
    }

    #[test]
    fn copy_text_reads_back(batch in batch::batches()) {
        let bytes = encoded(copy_text, &batch);
        prop_assert_eq!(decode::text(&bytes, &batch.kinds), batch.rows_to_microseconds());
    }

    #[test]
    fn csv_reads_back(batch in batch::batches()) {
        let bytes = encoded(csv, &batch);
        prop_assert_eq!(decode::csv(&bytes, &batch.kinds), batch.rows());
    }

    #[test]
    fn batches_one_after_the_other_are_one(batch in batch::batches(), cut in 0..200_usize) {
        let whole = batch.record_batch();
        let cut = cut.min(whole.num_rows());
        let parts = [whole.slice(0, cut), whole.slice(cut, whole.num_rows() - cut)];
        for encode in [copy_binary, copy_text, csv] {
            let (mut joined, mut at_once) = (Vec::new(), Vec::new());
            encode(&whole, &mut at_once).expect("every type can be written");
            for part in &parts {
                encode(part, &mut joined).expect("every type can be written");
            }
            prop_assert_eq!(&joined, &at_once);
        }
    }

    #[test]
    fn numbers_are_written_short(scaled in -1_000_000_000..1_000_000_000_i32) {
        for value in [f64::from(scaled), f64::from(scaled) / 10.0, f64::from(scaled) / 100_000.0] {
            let batch = Batch::single(Value::Float64(value.to_bits()));
            prop_assert_eq!(encoded(copy_text, &batch), format!("{value}\n").into_bytes());
        }
    }
}

#[test]
fn what_postgresql_documents_is_written_byte_for_byte() {
    assert_eq!(copy_binary::HEADER, b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
    assert_eq!(copy_binary::TRAILER, [0xff, 0xff]);
    let row = Batch::of_row(vec![
        Value::Micros(946_684_800_000_001),
        Value::Int32(-2),
        Value::Null,
        Value::Json("{}".to_owned()),
        Value::Text("a\\b\tc\nd\r\\N".to_owned()),
        Value::Bool(true),
        Value::Float32(1.5_f32.to_bits()),
        Value::Int16(-2),
        Value::Days(10_956),
    ]);
    let binary = encoded(copy_binary, &row);
    let expected = b"\0\x09\0\0\0\x08\0\0\0\0\0\0\0\x01\0\0\0\x04\xff\xff\xff\xfe\xff\xff\xff\xff\
        \0\0\0\x03\x01{}\0\0\0\x0aa\\b\tc\nd\r\\N\0\0\0\x01\x01\0\0\0\x04\x3f\xc0\0\0\
        \0\0\0\x02\xff\xfe\0\0\0\x04\xff\xff\xff\xff";
    assert_eq!(binary, expected);
    let text = encoded(copy_text, &row);
    let expected = "2000-01-01 00:00:00.000001+00\t-2\t\\N\t{}\ta\\\\b\\tc\\nd\\r\\\\N\tt\t1.5\t-2\t1999-12-31\n";
    assert_eq!(String::from_utf8_lossy(&text), expected);
}

#[test]
fn csv_is_as_rfc_4180_says() {
    let row = Batch::of_row(vec![
        Value::Nanos(-1),
        Value::Null,
        Value::Text(String::new()),
        Value::Text("a \"b\", c\r\nd".to_owned()),
        Value::Bool(false),
        Value::Float64(f64::NEG_INFINITY.to_bits()),
    ]);
    let text = encoded(csv, &row);
    let expected =
        "1969-12-31T23:59:59.999999999Z,,\"\",\"a \"\"b\"\", c\r\nd\",false,-Infinity\r\n";
    assert_eq!(String::from_utf8_lossy(&text), expected);
    let names = ["time", "a,b", "say \"x\""].map(|name| Field::new(name, DataType::Utf8, true));
    let mut header = Vec::new();
    csv_header(&Schema::new(names.to_vec()), &mut header);
    assert_eq!(header, b"time,\"a,b\",\"say \"\"x\"\"\"\r\n");
}

#[test]
fn times_far_away_stay_what_they_are() {
    for (micros, postgres, iso) in [
        (
            i64::MIN,
            "290309-12-21 19:59:05.224192+00 BC",
            "-290308-12-21T19:59:05.224192Z",
        ),
        (
            i64::MAX,
            "294247-01-10 04:00:54.775807+00",
            "294247-01-10T04:00:54.775807Z",
        ),
        (
            -62_135_596_800_000_001,
            "0001-12-31 23:59:59.999999+00 BC",
            "0000-12-31T23:59:59.999999Z",
        ),
        (
            -62_135_596_800_000_000,
            "0001-01-01 00:00:00+00",
            "0001-01-01T00:00:00Z",
        ),
        (
            951_782_400_000_000,
            "2000-02-29 00:00:00+00",
            "2000-02-29T00:00:00Z",
        ),
    ] {
        let row = Batch::single(Value::Micros(micros));
        let lines = [
            (encoded(copy_text, &row), format!("{postgres}\n")),
            (encoded(csv, &row), format!("{iso}\r\n")),
        ];
        for (line, expected) in lines {
            assert_eq!(String::from_utf8_lossy(&line), expected);
        }
    }
    // PostgreSQL takes the least and the greatest number as -infinity and infinity.
    let binary = encoded(copy_binary, &Batch::single(Value::Micros(i64::MIN)));
    assert_eq!(binary[6..], (i64::MIN + 1).to_be_bytes());
}

#[test]
fn dates_far_away_stay_what_they_are() {
    for (days, postgres, iso) in [
        (i32::MAX, "5881580-07-11", "5881580-07-11"),
        (-719_163, "0001-12-31 BC", "0000-12-31"),
        (-719_162, "0001-01-01", "0001-01-01"),
        (13_938, "2008-02-29", "2008-02-29"),
        (i32::MIN, "5877642-06-23 BC", "-5877641-06-23"),
    ] {
        let row = Batch::single(Value::Days(days));
        let lines = [
            (encoded(copy_text, &row), format!("{postgres}\n")),
            (encoded(csv, &row), format!("{iso}\r\n")),
        ];
        for (line, expected) in lines {
            assert_eq!(String::from_utf8_lossy(&line), expected);
        }
    }
    // PostgreSQL takes the least and the greatest number as -infinity and infinity.
    let binary = encoded(copy_binary, &Batch::single(Value::Days(i32::MIN)));
    assert_eq!(binary[6..], (i32::MIN + 1).to_be_bytes());
}

#[test]
fn singles_are_written_as_the_shortest_decimals() {
    for number in (-9_999_999..10_000_000).step_by(97) {
        let value: f32 = format!("{number}e-4").parse().expect("a number");
        let batch = Batch::single(Value::Float32(value.to_bits()));
        let expected = format!("{value}\n");
        assert_eq!(encoded(copy_text, &batch), expected.into_bytes());
    }
}

#[test]
fn unknown_types_are_refused_before_a_byte_is_written() {
    let columns: [(&str, ArrayRef); 2] = [
        ("a", Arc::new(Int32Array::from(vec![1]))),
        ("b", Arc::new(Date64Array::from(vec![1]))),
    ];
    let rows = RecordBatch::try_from_iter(columns).expect("a batch");
    for encode in [copy_binary, copy_text, csv] {
        let mut out = Vec::new();
        let refusal = encode(&rows, &mut out).expect_err("no encoder knows milliseconds");
        assert_eq!(
            refusal.to_string(),
            "column \"b\" is of the Arrow type Date64, which cannot be written"
        );
        assert!(out.is_empty());
    }
}

#[test]
fn a_row_of_copy_has_at_most_32767_fields() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let columns = (0..32_768).map(|i| (format!("c{i}"), Arc::clone(&column)));
    let rows = RecordBatch::try_from_iter(columns).expect("a batch");
    let refusal = copy_binary(&rows, &mut Vec::new());
    assert_eq!(refusal, Err(EncodeError::Columns(32_768)));
}

#[test]
fn json_is_known_by_its_mark() {
    assert!(is_json(&json_field("a")));
    assert!(!is_json(&Field::new("a", DataType::Utf8, true)));
}

#[test]
fn long_texts_need_not_fit_anywhere() {
    let text = "x\"\\\n".repeat(50_000);
    let row = Batch::of_row(vec![Value::Int32(1), Value::Text(text), Value::Int32(2)]);
    let kinds = &row.kinds;
    assert_eq!(decode::text(&encoded(copy_text, &row), kinds), row.rows());
    assert_eq!(decode::csv(&encoded(csv, &row), kinds), row.rows());
    assert_eq!(
        decode::binary(&encoded(copy_binary, &row), kinds),
        row.rows()
    );
}

#[test]
fn decoders_refuse_what_is_cut_off() {
    let row = Batch::of_row(vec![Value::Int32(7)]);
    let bytes = encoded(copy_binary, &row);
    assert_eq!(Read::new(&bytes[..bytes.len() - 1]).tuple(&row.kinds), None);
}
