//! The set `types`, value by value.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use loadstone_gen::encode::sql_type;

use super::{DISTRIBUTIONS, mean, rows, table, types};

const ROWS: u64 = 3000;

fn sample(name: &str, distribution: &str) -> RecordBatch {
    rows(&types(name, distribution, 9, ROWS))
}

fn texts(name: &str, distribution: &str) -> Vec<String> {
    let batch = sample(name, distribution);
    let texts = batch.column(1).as_string::<i32>().iter();
    texts
        .map(|text| text.expect("no nulls").to_owned())
        .collect()
}

fn compressed_share(texts: &[String]) -> f64 {
    let share = |text: &String| {
        let packed = matched_bytes(text.as_bytes());
        mean(packed, text.len() as u64)
    };
    let few: Vec<_> = texts.iter().take(5).map(share).collect();
    few.iter().sum::<f64>() / 5.0
}

/// How many bytes are left when what was seen in the last bytes, four or more of it, costs three: what pglz and
/// lz4 do.
fn matched_bytes(text: &[u8]) -> u64 {
    let (mut at, mut size) = (0, 0);
    while at < text.len() {
        let longest = (4..=60.min(text.len() - at)).rev().find(|length| {
            let wanted = &text[at..at + length];
            text[..at].windows(*length).any(|seen| seen == wanted)
        });
        size += if longest.is_some() { 3 } else { 1 };
        at += longest.unwrap_or(1);
    }
    size
}

#[test]
fn ids_count_from_one() {
    for distribution in DISTRIBUTIONS {
        let batch = sample("int", distribution);
        let ids = batch.column(0).as_primitive::<Int32Type>().values();
        assert!(ids.iter().copied().eq(1..=3000));
    }
}

#[test]
fn numbers_are_drawn_as_stated() {
    let small = sample("int", "compressible");
    assert!(
        small
            .column(1)
            .as_primitive::<Int32Type>()
            .values()
            .iter()
            .all(|v| (0..1000).contains(v))
    );
    let wide = sample("int", "random");
    let wide = wide.column(1).as_primitive::<Int32Type>().values().to_vec();
    assert!(wide.iter().any(|v| *v < -2_000_000_000) && wide.iter().any(|v| *v > 2_000_000_000));
    let small = sample("bigint", "compressible");
    let all = small.column(1).as_primitive::<Int64Type>().values().iter();
    assert!(
        all.copied()
            .all(|v| (1_000_000_000..1_000_001_000).contains(&v))
    );
    let cents = sample("float", "compressible");
    let cents = cents
        .column(1)
        .as_primitive::<Float64Type>()
        .values()
        .to_vec();
    assert!(
        cents
            .iter()
            .all(|v| (0.0..100.0).contains(v) && (v * 100.0 - (v * 100.0).round()).abs() < 1e-9)
    );
    let fine = sample("float", "random");
    let fine = fine
        .column(1)
        .as_primitive::<Float64Type>()
        .values()
        .to_vec();
    let average = fine.iter().sum::<f64>() / 3000.0;
    assert!(fine.iter().all(|v| (0.0..1.0).contains(v)) && (average - 0.5).abs() < 0.02);
}

#[test]
fn texts_have_the_lengths_that_are_stated() {
    for distribution in DISTRIBUTIONS {
        for (name, least, most) in [("text", 1000, 3999), ("varchar", 200, 2000)] {
            for text in texts(name, distribution) {
                assert!((least..=most).contains(&text.len()), "{}", text.len());
                assert!(!text.contains(['\\', '"', '\n', '\t', ',']), "{text}");
            }
        }
        let long = texts("text", distribution)
            .iter()
            .filter(|text| text.len() >= 2000)
            .count();
        assert!((1700..=2300).contains(&long), "{distribution}: {long}");
    }
}

#[test]
fn compressible_texts_compress_and_random_ones_do_not() {
    let compressible = compressed_share(&texts("text", "compressible"));
    assert!((0.25..0.6).contains(&compressible), "{compressible}");
    for distribution in ["random", "repeated"] {
        let share = compressed_share(&texts("text", distribution));
        assert!(share > 0.98, "{distribution}: {share}");
    }
}

#[test]
fn repeated_values_are_a_hundred_random_ones() {
    for name in ["text", "varchar", "json"] {
        let repeated: BTreeSet<_> = texts(name, "repeated").into_iter().collect();
        let random: BTreeSet<_> = texts(name, "random").into_iter().take(100).collect();
        assert_eq!(repeated, random, "{name}");
        assert_eq!(
            texts(name, "random")
                .into_iter()
                .collect::<BTreeSet<_>>()
                .len(),
            3000
        );
    }
}

#[test]
fn objects_are_json() {
    for distribution in DISTRIBUTIONS {
        for text in texts("json", distribution) {
            let object: serde_json::Value = serde_json::from_str(&text).expect("json");
            let note = object["note"].as_str().expect("a note").len();
            assert!((100..=499).contains(&note), "{note}");
            let score = object["score"].as_f64().expect("a score");
            assert!((100.0..1000.0).contains(&score) && object["level"].as_u64() < Some(10));
            assert_eq!(object["tags"].as_array().map(Vec::len), Some(2));
        }
    }
}

#[test]
fn columns_say_what_they_are_in_sql() {
    let union = table(&types("union", "random", 1, 1));
    let names: Vec<_> = union
        .schema
        .fields()
        .iter()
        .map(|field| sql_type(field))
        .collect();
    let expected = [
        None,
        None,
        Some("varchar(2000)"),
        None,
        None,
        Some("json"),
        None,
    ];
    assert_eq!(
        (names.as_slice(), union.name.as_str()),
        (expected.as_slice(), "table_union")
    );
    let batch = sample("union", "random");
    assert!(
        batch
            .columns()
            .iter()
            .all(|column| column.null_count() == 0)
    );
}
