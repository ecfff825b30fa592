#![expect(
    clippy::unnecessary_wraps,
    reason = "values of a row are optional: NULL is None"
)]
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::client::postgres::decoded;
use crate::protocol::Message;

const INT8: u32 = 20;
const TEXT: u32 = 25;
const FLOAT8: u32 = 701;
const TIMESTAMPTZ: u32 = 1184;
const INTERVAL: u32 = 1186;
const NUMERIC: u32 = 1700;

/// A type and the values of one row after the other.
type Value = Option<Vec<u8>>;

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 4).unwrap();
    [&[tag][..], &len.to_be_bytes(), body].concat()
}

fn description(types: &[u32], is_binary: bool) -> Vec<u8> {
    let mut body = u16::try_from(types.len()).unwrap().to_be_bytes().to_vec();
    for oid in types {
        body.extend(b"Name\0\0\0\0\0\0\0");
        body.extend(oid.to_be_bytes());
        body.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, u8::from(is_binary)]);
    }
    frame(b'T', &body)
}

fn data_row(row: &[Value]) -> Vec<u8> {
    let mut body = u16::try_from(row.len()).unwrap().to_be_bytes().to_vec();
    for value in row {
        let len = value
            .as_ref()
            .map_or(-1, |v| i32::try_from(v.len()).unwrap());
        body.extend(len.to_be_bytes());
        body.extend(value.iter().flatten());
    }
    frame(b'D', &body)
}

fn attempt(types: &[u32], is_binary: bool, rows: &[Vec<Value>]) -> Result<Digest, Unreadable> {
    let mut digester = Digester::default();
    let columns = description(types, is_binary);
    let Some(Message::Columns(columns)) = decoded(&columns) else {
        panic!("no description")
    };
    digester.describe(&columns);
    for row in rows {
        let bytes = data_row(row);
        let Some(Message::Row(row)) = decoded(&bytes) else {
            panic!("no row")
        };
        digester.row(&row)?;
    }
    Ok(digester.digest())
}

fn binary(types: &[u32], rows: &[Vec<Value>]) -> Digest {
    attempt(types, true, rows).unwrap()
}

/// One value of one column, as text.
fn read(oid: u32, text: &str) -> Result<Digest, Unreadable> {
    attempt(&[oid], false, &[vec![Some(text.as_bytes().to_vec())]])
}

fn float(value: f64) -> Value {
    Some(value.to_be_bytes().to_vec())
}

fn whole(value: i64) -> Value {
    Some(value.to_be_bytes().to_vec())
}

fn text(value: &str) -> Value {
    Some(value.as_bytes().to_vec())
}

/// Answers as benchmarks get them: a bucket, a name, counts and means.
const TYPES: [u32; 5] = [TIMESTAMPTZ, TEXT, INT8, FLOAT8, FLOAT8];

fn row() -> impl Strategy<Value = Vec<Value>> {
    let name = prop::option::weighted(0.9, "[a-c]{0,3}");
    (
        0_i64..5,
        name,
        0_i64..4,
        -90.0_f64..90.0,
        prop::option::weighted(0.9, 0.0_f64..100.0),
    )
        .prop_map(|(bucket, name, count, mean, other)| {
            let name = name.map(String::into_bytes);
            vec![
                whole(bucket * 3_600_000_000),
                name,
                whole(count),
                float(mean),
                other.and_then(float),
            ]
        })
}

fn rows() -> impl Strategy<Value = Vec<Vec<Value>>> {
    prop::collection::vec(row(), 2..30)
}

proptest! {
    #[test]
    fn the_order_of_rows_does_not_matter(rows in rows(), seed in any::<u64>()) {
        let mut shuffled = rows.clone();
        let len = shuffled.len();
        for at in 0..len {
            let to = usize::try_from(seed.wrapping_mul(at as u64 + 7) >> 33).unwrap() % len;
            shuffled.swap(at, to);
        }
        let (a, b) = (binary(&TYPES, &rows), binary(&TYPES, &shuffled));
        prop_assert_eq!(a.difference(&b), None);
        prop_assert_eq!(a.keys, b.keys);
    }

    #[test]
    fn a_changed_value_is_seen(rows in rows(), at in any::<prop::sample::Index>(), column in 0_usize..5) {
        let mut changed = rows.clone();
        let value = &mut at.get_mut(&mut changed)[column];
        *value = match (column, &*value) {
            (1, Some(_)) => text("another"),
            (0 | 2, Some(bytes)) => {
                whole(i64::from_be_bytes(bytes.as_slice().try_into().unwrap()) + 1)
            }
            (_, Some(bytes)) => {
                float(f64::from_be_bytes(bytes.as_slice().try_into().unwrap()) + 1e-4)
            }
            (1, None) => text(""),
            (_, None) => float(0.0),
        };
        let words = binary(&TYPES, &rows).difference(&binary(&TYPES, &changed)).unwrap();
        let place = format!("column {} (name)", column + 1);
        prop_assert!(words.contains(&place), "{}", words);
    }

    #[test]
    fn values_of_two_rows_swapped_are_seen(
        rows in rows(), column in 0_usize..5, from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(),
    ) {
        let (from, to) = (from.index(rows.len()), to.index(rows.len()));
        let mut swapped = rows.clone();
        let value = swapped[from][column].clone();
        swapped[from][column] = std::mem::replace(&mut swapped[to][column], value);
        let sorted = |rows: &[Vec<Value>]| {
            let mut rows = rows.to_vec();
            rows.sort();
            rows
        };
        let words = binary(&TYPES, &rows).difference(&binary(&TYPES, &swapped));
        prop_assert_eq!(words.is_none(), sorted(&rows) == sorted(&swapped), "{:?}", words);
    }

    #[test]
    fn numbers_alone_tie_the_values_of_a_row_together(
        left in prop::collection::vec(0_i64..50, 2), right in prop::collection::vec(-50.0_f64..50.0, 2),
    ) {
        prop_assume!(left[0] != left[1] && (right[0] - right[1]).abs() > 1e-3);
        let pair = |a: usize, b: usize| vec![whole(left[a]), float(right[b])];
        let straight = binary(&[INT8, FLOAT8], &[pair(0, 0), pair(1, 1)]);
        let crossed = binary(&[INT8, FLOAT8], &[pair(0, 1), pair(1, 0)]);
        prop_assert!(straight.difference(&crossed).unwrap().contains("other rows"));
    }

    #[test]
    fn a_missing_row_and_a_duplicate_are_seen(rows in rows(), at in any::<prop::sample::Index>()) {
        let whole = binary(&TYPES, &rows);
        let (mut fewer, mut more) = (rows.clone(), rows.clone());
        fewer.remove(at.index(rows.len()));
        more.push(at.get(&rows).clone());
        let counts = |other: usize| Some(format!("row count {} here, {other} there", rows.len()));
        prop_assert_eq!(whole.difference(&binary(&TYPES, &fewer)), counts(rows.len() - 1));
        prop_assert_eq!(whole.difference(&binary(&TYPES, &more)), counts(rows.len() + 1));
        // The same number of rows, one of them twice instead of another.
        let other = (at.index(rows.len()) + 1) % rows.len();
        let mut twice = rows.clone();
        twice[other] = rows[at.index(rows.len())].clone();
        let differs = whole.difference(&binary(&TYPES, &twice)).is_some();
        prop_assert_eq!(differs, twice[other] != rows[other]);
    }

    #[test]
    fn noise_in_the_last_digits_is_no_difference(rows in rows(), noise in prop::collection::vec(-1.0_f64..1.0, 60)) {
        let mut noisy = rows.clone();
        let mut noise = noise.iter().cycle();
        for value in noisy.iter_mut().flat_map(|row| &mut row[3..]).flatten() {
            let exact = f64::from_be_bytes(value.as_slice().try_into().unwrap());
            *value = (exact * (1.0 + 1e-13 * noise.next().unwrap())).to_be_bytes().to_vec();
        }
        prop_assert_eq!(binary(&TYPES, &rows).difference(&binary(&TYPES, &noisy)), None);
    }

    #[test]
    fn both_forms_of_a_value_have_one_digest(
        count in any::<i64>(), mean in any::<f64>(), name in "[^\0]{0,8}", us in -3_000_000_000_000_000_i64..9_000_000_000_000_000,
    ) {
        let time = us + 946_684_800_000_000;
        let shown = utc(time).replace('T', " ").replace('Z', "+00");
        prop_assume!(!shown.starts_with('-'));
        let texts = [shown, name.clone(), count.to_string(), mean.to_string(), "0".to_owned()];
        let texts = vec![texts.iter().map(|value| text(value)).collect()];
        let binaries = vec![vec![whole(us), text(&name), whole(count), float(mean), float(0.0)]];
        let digest = attempt(&TYPES, false, &texts).unwrap();
        prop_assert_eq!(digest, binary(&TYPES, &binaries));
    }

    #[test]
    fn no_bytes_make_it_panic(value in prop::collection::vec(any::<u8>(), 0..40), is_binary: bool) {
        for oid in [16, 17, 18, 20, 21, 23, 25, 26, 700, 701, 1082, 1083, 1114, 1186, 1700, 2950, 3802, 99_999] {
            let _ = attempt(&[oid], is_binary, &[vec![Some(value.clone())]]);
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_does(days in -700_000_i64..3_000_000) {
        let shown = utc(days * 86_400_000_000);
        prop_assume!(!shown.starts_with('-') && !shown.starts_with("0000"));
        let digest = read(1082, &shown[..shown.find('T').unwrap()]).unwrap();
        prop_assert_eq!(digest.columns[0].min_us, days * 86_400_000_000);
    }
}

#[test]
fn the_text_forms_of_times_and_spans_are_read() {
    let hour = 3_600_000_000_i64;
    let times = [
        ("1970-01-01", 0),
        ("1970-01-01 00:00:00.25", 250_000),
        ("2016-01-01 05:30:00+05:30", 1_451_606_400_000_000),
        ("2016-01-01 00:00:00-03", 1_451_606_400_000_000 + 3 * hour),
        ("0001-01-01 BC", -62_167_219_200_000_000),
        ("infinity", i64::MAX),
        ("-infinity", i64::MIN),
    ];
    for (shown, us) in times {
        assert_eq!(
            read(TIMESTAMPTZ, shown).unwrap().columns[0].min_us,
            us,
            "{shown}"
        );
    }
    let day = 86_400e6;
    let spans = [
        ("00:00:00.000001", 1.0),
        ("-00:00:01.5", -1.5e6),
        ("3 days", 3.0 * day),
        ("1 mon -1 days +02:00:00", 29.0 * day + 7200e6),
        ("1 year 2 mons", 420.0 * day),
        ("-1 days -00:00:01", -day - 1e6),
    ];
    for (shown, us) in spans {
        assert!(
            (read(INTERVAL, shown).unwrap().columns[0].sum - us).abs() < 1e-3,
            "{shown}"
        );
    }
    for (oid, shown) in [
        (TIMESTAMPTZ, "01/02/2016"),
        (TIMESTAMPTZ, "2016-13-01"),
        (TIMESTAMPTZ, "2016-01-01 1:2:3:4:5"),
        (INTERVAL, "P1D"),
        (INTERVAL, "5"),
        (FLOAT8, "1,5"),
        (16, "yes"),
        (17, "abc"),
    ] {
        let words = read(oid, shown).unwrap_err().to_string();
        assert!(
            words.contains("DateStyle") && words.contains("column 1 (name)"),
            "{words}"
        );
    }
}

/// The bytes of a numeric: digits to base 10,000, weight of the first, sign.
fn numeric(digits: &[u16], weight: i16, sign: u16) -> Value {
    let mut bytes = u16::try_from(digits.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(weight.to_be_bytes());
    bytes.extend(sign.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(digits.iter().flat_map(|digit| digit.to_be_bytes()));
    Some(bytes)
}

#[test]
fn numerics_become_the_nearest_doubles() {
    let long = [1, 2345, 6789, 123, 4567, 8901, 2345, 6789, 123, 4567, 8901];
    for (value, expected) in [
        (numeric(&[], 0, 0), 0.0),
        (numeric(&[1, 5000], 0, 0), 1.5),
        (numeric(&[12, 3456], 1, 0x4000), -123_456.0),
        (numeric(&[1], -3, 0), 1e-12),
        (numeric(&[1], 40, 0), 1e160),
        (numeric(&[5], -80, 0), 5e-320),
        (numeric(&long, 0, 0), 1.234_567_890_123_456_7),
    ] {
        let sum = binary(&[NUMERIC], &[vec![value]]).columns[0].sum;
        assert!(
            (sum - expected).abs() <= expected.abs() * 1e-14,
            "{sum} {expected}"
        );
    }
    let special = [0xC000, 0xD000, 0xF000].map(|sign| vec![numeric(&[], 0, sign)]);
    let column = &binary(&[NUMERIC], &special).columns[0];
    assert_eq!(
        (column.count, column.nan, column.inf, column.neg_inf),
        (3, 1, 1, 1)
    );
}

#[test]
fn a_digest_is_what_the_definition_says() {
    let rows = [
        vec![text("a"), float(2.0), None],
        vec![text("b"), float(-1.0), whole(7)],
    ];
    let digest = json!(binary(&[TEXT, FLOAT8, TIMESTAMPTZ], &rows));
    let time_us = 946_684_800_000_007_u64;
    assert_eq!(digest["rows"], 2);
    assert_eq!(
        digest["columns"][0],
        json!({"name": "name", "kind": "text", "count": 2, "crc": 3_904_355_907_u64 + 1_908_338_681})
    );
    assert_eq!(digest["columns"][1]["sum"], 1.0);
    assert_eq!(digest["columns"][1]["abs"], 3.0);
    assert_eq!(digest["columns"][2]["count"], 1);
    assert_eq!(digest["columns"][2]["min_us"], time_us);
    assert_eq!(digest["columns"][2]["max_us"], time_us);
    // What the Python twin computes for these rows (tests/test_answer.py).
    assert_eq!(digest["keys"], 2_732_375_162_u64);
    assert_eq!(digest["columns"][1]["weighted"], 2.128_461_355_803_964);
    assert_eq!(digest["columns"][2]["crc"], 1_413_236_640);
}

#[test]
fn differences_are_said_in_words() {
    let one = |types: &[u32], row: Vec<Value>| binary(types, &[row]);
    let words = |a: &Digest, b: &Digest| a.difference(b).unwrap();
    let base = one(&[TIMESTAMPTZ, FLOAT8], vec![whole(0), float(5.0)]);
    let cases = [
        (
            one(&[TIMESTAMPTZ], vec![whole(0)]),
            "column count 2 here, 1 there",
        ),
        (
            one(&[FLOAT8, FLOAT8], vec![float(0.0), float(5.0)]),
            "column 1 (name): a time here, a number there",
        ),
        (
            one(&[TIMESTAMPTZ, FLOAT8], vec![None, float(5.0)]),
            "not NULL 1 here, 0 there",
        ),
        (
            one(&[TIMESTAMPTZ, FLOAT8], vec![whole(0), float(f64::NAN)]),
            "column 2 (name): count of NaN 0 here, 1 there",
        ),
        (
            one(
                &[TIMESTAMPTZ, FLOAT8],
                vec![whole(3_600_000_000), float(5.0)],
            ),
            "times differ: 2000-01-01T00:00:00Z to 2000-01-01T00:00:00Z here, 2000-01-01T01:00:00Z to",
        ),
        (
            one(&[TIMESTAMPTZ, FLOAT8], vec![whole(0), float(5.001)]),
            "column 2 (name): sums differ by 2.00e-4",
        ),
    ];
    for (other, expected) in cases {
        let words = words(&base, &other);
        assert!(words.contains(expected), "{words}");
    }
    // A column without a value has no kind that could differ.
    assert_eq!(
        one(&[FLOAT8], vec![None]).difference(&one(&[TEXT], vec![None])),
        None
    );
    let unknown = |bytes: &str| one(&[99_999], vec![text(bytes)]);
    assert!(words(&unknown("a"), &unknown("b")).contains("type 99999"));
}
