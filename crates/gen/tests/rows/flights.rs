//! The set `flights`: what its module says, row by row and in shares.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float32Type, Int16Type, TimestampMicrosecondType};
use arrow_schema::DataType;
use loadstone_gen::encode::copy_text;
use loadstone_gen::rows::Config;

use super::{batches, rows, source, table};

const DAY_MINUTES: i64 = 1440;

fn sample(first: u64, count: u64) -> RecordBatch {
    rows(&Config {
        first,
        ..Config::new("flights", 42, count)
    })
}

fn small(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(column).expect("a column");
    let values = column.as_primitive::<Int16Type>().iter();
    values.map(|value| value.map(i64::from)).collect()
}

fn whole(batch: &RecordBatch, column: &str) -> Vec<i64> {
    let values = small(batch, column).into_iter();
    values.map(|value| value.expect("never null")).collect()
}

fn texts<'a>(batch: &'a RecordBatch, column: &str) -> Vec<Option<&'a str>> {
    let column = batch.column_by_name(column).expect("a column");
    column.as_string::<i32>().iter().collect()
}

/// Minutes from the begin of 2008.
fn times(batch: &RecordBatch, column: &str) -> Vec<Option<i64>> {
    let column = batch.column_by_name(column).expect("a column");
    let values = column.as_primitive::<TimestampMicrosecondType>().iter();
    let minutes = |us: i64| {
        assert_eq!(us % 60_000_000, 0, "whole minutes");
        us / 60_000_000 - 1_199_145_600 / 60
    };
    values.map(|value| value.map(minutes)).collect()
}

fn hhmm(minutes: i64) -> i64 {
    let minute = minutes.rem_euclid(DAY_MINUTES);
    minute / 60 * 100 + minute % 60
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn share(found: usize, of: usize) -> f64 {
    found as f64 / of as f64
}

#[test]
fn the_columns_are_the_published_ones() {
    let table = table(&Config::new("flights", 1, 1));
    let fields = table.schema.fields();
    assert_eq!(fields.len(), 56);
    let of = |kind: DataType| {
        fields
            .iter()
            .filter(|field| *field.data_type() == kind)
            .count()
    };
    assert_eq!(of(DataType::Int16), 25);
    assert_eq!(of(DataType::Utf8), 20);
    assert_eq!(of(DataType::Float32), 8);
    assert_eq!(of(DataType::Date32), 1);
    let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
    assert_eq!(
        names[..4],
        [
            "flight_year",
            "flight_month",
            "flight_dayofmonth",
            "flight_dayofweek"
        ]
    );
    assert_eq!(
        names[24..31].join(" "),
        "carrierdelay weatherdelay nasdelay securitydelay lateaircraftdelay dep_timestamp arr_timestamp"
    );
    assert_eq!(
        names[38..41],
        ["plane_engine_type", "plane_year", "origin_name"][..]
    );
    assert_eq!(
        names[52..],
        [
            "origin_merc_x",
            "origin_merc_y",
            "dest_merc_x",
            "dest_merc_y"
        ]
    );
}

#[test]
fn times_agree_with_their_parts() {
    let batch = sample(1_000_000_007, 20_000);
    let (month, day) = (
        whole(&batch, "flight_month"),
        whole(&batch, "flight_dayofmonth"),
    );
    let (departure, arrival) = (
        times(&batch, "dep_timestamp"),
        times(&batch, "arr_timestamp"),
    );
    let planned = whole(&batch, "crsdeptime");
    let elapsed = small(&batch, "actualelapsedtime");
    let delays = [small(&batch, "depdelay"), small(&batch, "arrdelay")];
    let hours = [small(&batch, "deptime"), small(&batch, "arrtime")];
    let parts = ["taxiout", "airtime", "taxiin"].map(|part| small(&batch, part));
    let planned_elapsed = whole(&batch, "crselapsedtime");
    let lengths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for row in 0..batch.num_rows() {
        let before: i64 = lengths
            .iter()
            .take(usize::try_from(month[row]).expect("a month") - 1)
            .sum();
        let begin = (before + day[row] - 1) * DAY_MINUTES;
        let plan = begin + planned[row] / 100 * 60 + planned[row] % 100;
        assert_eq!(
            whole(&batch.slice(row, 1), "flight_dayofweek"),
            [(before + day[row]) % 7 + 1]
        );
        let Some(departed) = departure[row] else {
            assert!(hours[0][row].is_none() && delays[0][row].is_none());
            continue;
        };
        assert_eq!(delays[0][row], Some(departed - plan));
        assert_eq!(hours[0][row], Some(hhmm(departed)));
        let Some(arrived) = arrival[row] else {
            assert!(hours[1][row].is_none() && elapsed[row].is_none());
            continue;
        };
        assert_eq!(hours[1][row], Some(hhmm(arrived)));
        let minutes = elapsed[row].expect("it arrived");
        assert_eq!(
            parts
                .iter()
                .map(|part| part[row].expect("it arrived"))
                .sum::<i64>(),
            minutes
        );
        // Local times differ by whole hours, at most from Hawaii to the east coast.
        let zone = arrived - departed - minutes;
        assert!(zone % 60 == 0 && zone.abs() <= 6 * 60, "{zone}");
        let later = delays[1][row].expect("it arrived") - (departed - plan);
        assert_eq!(later, minutes - planned_elapsed[row]);
        let planned_arrival = arrived - later - (departed - plan);
        assert_eq!(
            whole(&batch.slice(row, 1), "crsarrtime"),
            [hhmm(planned_arrival)]
        );
    }
}

#[test]
fn what_did_not_happen_is_null() {
    let batch = sample(0, 50_000);
    let (cancelled, diverted) = (whole(&batch, "cancelled"), whole(&batch, "diverted"));
    let codes = texts(&batch, "cancellationcode");
    let departed = ["deptime", "depdelay", "taxiout"].map(|column| small(&batch, column));
    let arrived = [
        "arrtime",
        "arrdelay",
        "taxiin",
        "airtime",
        "actualelapsedtime",
    ];
    let arrived = arrived.map(|column| small(&batch, column));
    let causes = ["carrier", "weather", "nas", "security", "lateaircraft"];
    let causes = causes.map(|cause| small(&batch, &format!("{cause}delay")));
    let mut late_rows = 0;
    for row in 0..batch.num_rows() {
        assert!(cancelled[row] + diverted[row] < 2);
        assert_eq!(codes[row].is_some(), cancelled[row] == 1);
        assert!(codes[row].is_none_or(|code| ["A", "B", "C", "D"].contains(&code)));
        for column in &departed {
            assert_eq!(column[row].is_some(), cancelled[row] == 0);
        }
        for column in &arrived {
            assert_eq!(column[row].is_some(), cancelled[row] + diverted[row] == 0);
        }
        let delay = arrived[1][row];
        let parts: Vec<_> = causes.iter().filter_map(|cause| cause[row]).collect();
        if delay.is_some_and(|delay| delay >= 15) {
            assert!(parts.len() == 5 && parts.iter().all(|part| *part >= 0));
            assert_eq!(Some(parts.iter().sum()), delay);
            late_rows += 1;
        } else {
            assert!(parts.is_empty());
        }
    }
    let count = batch.num_rows();
    let cancelled = share(cancelled.iter().filter(|one| **one == 1).count(), count);
    assert!((cancelled - 0.0196).abs() < 0.002, "{cancelled}");
    let late = share(late_rows, count);
    assert!((0.17..0.25).contains(&late), "{late}");
}

#[test]
fn a_plane_and_an_airport_are_the_same_in_every_row() {
    let batch = sample(5, 100_000);
    let plane = [
        "type",
        "manufacturer",
        "model",
        "status",
        "aircraft_type",
        "engine_type",
    ];
    let plane = plane.map(|column| texts(&batch, &format!("plane_{column}")));
    let years = small(&batch, "plane_year");
    let issued = batch.column_by_name("plane_issue_date").expect("a column");
    let issued: Vec<_> = issued.as_primitive::<Date32Type>().iter().collect();
    let (tails, carriers) = (texts(&batch, "tailnum"), texts(&batch, "uniquecarrier"));
    let mut planes = BTreeMap::new();
    for row in 0..batch.num_rows() {
        let about: Vec<_> = plane.iter().map(|column| column[row]).collect();
        let known = about.iter().filter(|text| text.is_some()).count();
        assert!(known == 0 || known == 6);
        assert_eq!(
            (years[row].is_some(), issued[row].is_some()),
            (known == 6, known == 6)
        );
        let Some(tail) = tails[row] else {
            assert_eq!(known, 0);
            continue;
        };
        let about = (carriers[row], about, years[row], issued[row]);
        assert_eq!(
            *planes.entry(tail).or_insert_with(|| about.clone()),
            about,
            "{tail}"
        );
    }
    assert!((4000..6000).contains(&planes.len()), "{}", planes.len());
    let mut airports = BTreeMap::new();
    for end in ["origin", "dest"] {
        let codes = texts(&batch, end);
        let about = ["name", "city", "state", "country"];
        let about = about.map(|column| texts(&batch, &format!("{end}_{column}")));
        let reals = ["lat", "lon", "merc_x", "merc_y"].map(|column| {
            let column = batch
                .column_by_name(&format!("{end}_{column}"))
                .expect("a column");
            column.as_primitive::<Float32Type>().values().to_vec()
        });
        for row in 0..batch.num_rows() {
            let about: Vec<_> = about.iter().map(|column| column[row]).collect();
            let reals: Vec<_> = reals.iter().map(|column| column[row].to_bits()).collect();
            let seen = airports
                .entry(codes[row])
                .or_insert_with(|| (about.clone(), reals.clone()));
            assert_eq!(*seen, (about, reals));
        }
    }
    assert!(airports.len() > 240, "{}", airports.len());
}

#[test]
fn a_slice_has_the_shares_of_the_whole() {
    let config = Config {
        first: 123_456_789,
        ..Config::new("flights", 1, 1_000_000)
    };
    let (mut october, mut near, mut usa, mut count) = (0, 0, 0, 0);
    let (mut cities, mut states, mut near_states) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for batch in batches(&mut source(&config), 50_000) {
        let distances = whole(&batch, "distance");
        october += whole(&batch, "flight_month")
            .iter()
            .filter(|month| **month == 10)
            .count();
        near += distances.iter().filter(|miles| **miles < 175).count();
        usa += texts(&batch, "origin_country")
            .iter()
            .filter(|one| **one == Some("USA"))
            .count();
        count += batch.num_rows();
        let pairs = |what: &str| -> Vec<String> {
            let ends = ["origin", "dest"].map(|end| texts(&batch, &format!("{end}_{what}")));
            let rows = ends[0].iter().zip(&ends[1]);
            rows.map(|(from, to)| format!("{from:?} {to:?}")).collect()
        };
        cities.extend(pairs("city"));
        let pairs = pairs("state");
        near_states.extend(
            pairs
                .iter()
                .zip(&distances)
                .filter(|(_, miles)| **miles < 175)
                .map(|(pair, _)| pair.clone()),
        );
        states.extend(pairs);
    }
    assert_eq!(usa, count);
    assert!(
        (share(october, count) - 0.0793).abs() < 0.001,
        "{}",
        share(october, count)
    );
    let groups = [cities.len(), states.len(), near_states.len()];
    assert!(
        (share(near, count) - 0.068).abs() < 0.0015,
        "{} {groups:?}",
        share(near, count)
    );
    for (found, stated) in groups.into_iter().zip([4900, 1280, 105]) {
        assert!(found.abs_diff(stated) * 20 <= stated, "{groups:?}");
    }
}

#[test]
fn a_row_is_about_400_bytes_of_text() {
    let mut text = Vec::new();
    copy_text(&sample(9, 10_000), &mut text).expect("every type can be written");
    assert!(
        (3_800_000..4_400_000).contains(&text.len()),
        "{}",
        text.len()
    );
}
