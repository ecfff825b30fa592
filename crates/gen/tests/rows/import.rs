//! The set `import`, value by value.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use loadstone_gen::rows::Config;

use super::{plain, rows};

const ROWS: usize = 20_000;

fn sample() -> RecordBatch {
    rows(&Config {
        first: 1_000_000_000,
        ..Config::new("import", 42, ROWS as u64)
    })
}

fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    let column = batch.column_by_name(column).expect("a column");
    let texts = column.as_string::<i32>().iter();
    texts
        .map(|text| text.expect("no nulls").to_owned())
        .collect()
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn check(batch: &RecordBatch, column: &str, is_right: impl Fn(&str) -> bool) {
    for text in texts(batch, column) {
        assert!(is_right(&text), "{column}: {text:?}");
    }
}

#[test]
fn texts_look_as_they_should() {
    let batch = sample();
    check(&batch, "a", |text| {
        let lengths: Vec<_> = text.split('-').map(str::len).collect();
        let is_hexadecimal = |c: char| c == '-' || c.is_ascii_digit() || ('a'..='f').contains(&c);
        lengths == [8, 4, 4, 4, 12]
            && text.chars().all(is_hexadecimal)
            && text[14..].starts_with('4')
            && text[19..].starts_with(['8', '9', 'a', 'b'])
    });
    check(&batch, "b", |text| {
        text.len() == 19 && are_digits(text) && !text.starts_with('0')
    });
    check(&batch, "c", |text| {
        matches!(text.chars().count(), 2 | 3) && text.len() % 3 == 0
    });
    check(&batch, "d", |text| {
        text.len() == 11 && are_digits(text) && text.starts_with('1')
    });
    check(&batch, "e", |text| {
        let mut characters = text.chars();
        let province = characters.next();
        let rest: Vec<_> = characters.collect();
        province.is_some_and(|province| province > '\u{4e00}')
            && rest.len() == 6
            && rest[0].is_ascii_uppercase()
            && rest
                .iter()
                .all(|c| c.is_ascii_digit() || (c.is_ascii_uppercase() && !"IO".contains(*c)))
    });
    check(&batch, "g", |text| {
        text.len() == 15 && are_digits(text) && text.starts_with("460")
    });
    check(&batch, "h", |text| {
        let parts: Vec<_> = text.split(':').collect();
        let byte = |part: &&str| part.len() == 2 && u8::from_str_radix(part, 16).is_ok();
        parts.len() == 6 && parts.iter().all(byte) && text == text.to_lowercase()
    });
    check(&batch, "i", |text| {
        text.len() == 10 && are_digits(text) && !text.starts_with('0')
    });
    check(&batch, "j", |text| {
        text.len() == 11
            && text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    });
    check(&batch, "k", |text| ["2G", "3G", "4G", "5G"].contains(&text));
}

/// Luhn's sum as ISO/IEC 7812 has it.
#[test]
fn check_digits_are_right() {
    check(&sample(), "f", |text| {
        let digits = text.bytes().rev().map(|byte| u32::from(byte - b'0'));
        let sum = digits.enumerate().map(|(place, digit)| match place % 2 {
            0 => digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        });
        text.len() == 15 && sum.sum::<u32>() % 10 == 0
    });
}

#[test]
fn values_are_as_many_as_stated() {
    let batch = sample();
    let different = |column| {
        texts(&batch, column)
            .into_iter()
            .collect::<BTreeSet<_>>()
            .len()
    };
    for unique in ["a", "b", "j"] {
        assert_eq!(different(unique), ROWS, "{unique}");
    }
    // 20,000 of 20 million persons: ten are expected to be seen twice.
    for personal in ["d", "e", "f", "g", "h", "i"] {
        let different = different(personal);
        assert!(
            (ROWS - 40..ROWS).contains(&different),
            "{personal}: {different}"
        );
    }
    let shares = |column, share: &dyn Fn(&str) -> bool| {
        texts(&batch, column)
            .iter()
            .filter(|text| share(text))
            .count()
            * 1000
            / ROWS
    };
    for (generation, share) in [("2G", 30), ("3G", 70), ("4G", 600), ("5G", 300)] {
        let found = shares("k", &|text| text == generation);
        assert!(found.abs_diff(share) <= 12, "{generation}: {found}");
    }
    assert!(shares("c", &|text| text.len() == 6).abs_diff(250) <= 12);
    assert!(shares("c", &|text| text.starts_with('王')).abs_diff(100) <= 9);
    assert_eq!(different("k"), 4);
}

#[test]
fn a_person_is_the_same_in_every_row() {
    let batch = rows(&Config::new("import", 1, 60_000));
    let columns = ["c", "d", "e", "f", "g", "h", "i"].map(|column| texts(&batch, column));
    let mut persons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut again = 0;
    for row in 0..batch.num_rows() {
        let values: Vec<_> = columns.iter().map(|column| column[row].as_str()).collect();
        let seen = persons.entry(values[4]).or_insert_with(|| values.clone());
        again += usize::from(*seen == values && row > 0);
        assert_eq!(*seen, values);
    }
    assert!(
        persons.len() < batch.num_rows() - 40 && again > 0,
        "{}",
        persons.len()
    );
}

#[test]
fn time_grows_by_its_step() {
    let sequence = plain(&Config::new("import", 1, 1)).sequence.expect("l");
    let batch = sample();
    let times = batch.column_by_name("l").expect("l");
    for (number, time) in
        (1_000_000_000..).zip(times.as_primitive::<TimestampMicrosecondType>().values())
    {
        assert_eq!(*time, sequence.first + number * sequence.step);
    }
}
