use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::record::booking::{Begun, Rules, Times};
use crate::record::{ErrorClass, Latency, Record, count_error};
use crate::saved::Records;

const SECOND: u64 = 1_000_000_000;
const START_NS: u64 = 500 * SECOND;

fn drive(dir: &Path) -> Value {
    json!({
        "connection": {"host": "nowhere", "port": 1, "user": "u", "database": "d", "sslmode": "disable"},
        "scripts": [{"name": "one", "text": "select 1;\n"}],
        "clients": 8, "duration_s": 3.0, "seed": 1, "out_dir": dir,
    })
}

fn document(dir: &Path, hosts: &[Value]) -> String {
    json!({"drive": drive(dir), "start_ns": START_NS, "hosts": hosts}).to_string()
}

/// One interval: transactions that ended, and those that are still under way.
fn record(samples: &[u64], under_way: u64) -> Record {
    let mut record = Record::new(1, [true], false);
    let begun = Begun {
        measured: true,
        ..Begun::default()
    };
    let rules = Rules {
        under_a_rate: false,
        latency_limit_ns: None,
    };
    for _ in 0..under_way {
        record.book_start(&begun, true);
    }
    for &ended_ns in samples {
        record.book_start(&begun, true);
        let times = Times {
            started_ns: 0,
            ended_ns,
        };
        record.book_done(&begun, times, true, rules);
    }
    record
}

/// The records of a host whose clock reads `start_ns` at the common start.
fn write_host(
    dir: &Path,
    number: usize,
    start_ns: u64,
    intervals: &[Vec<u64>],
    ends: bool,
) -> Value {
    let folder = dir.join(format!("host{number}"));
    std::fs::create_dir(&folder).unwrap();
    let mut file = Records::create(&folder).unwrap();
    let timeline = Timeline::new(start_ns, 0.0, Some(3.0), SECOND);
    file.begin(&timeline).unwrap();
    for (index, samples) in (0..).zip(intervals) {
        let last = index + 1 == intervals.len() as u64;
        let mut record = record(samples, u64::from(last && !ends));
        count_error(
            &mut record.errors,
            ErrorClass::Timeout,
            start_ns + index,
            String::new,
        );
        file.interval(index, (timeline.end_ns(index), 4), &record, &[])
            .unwrap();
    }
    if ends {
        let finish = Finish {
            io: "epoll".into(),
            iterations: 7,
            ..Finish::default()
        };
        let ended = Ended {
            threads: 1,
            finishes: vec![finish],
            ..Ended::default()
        };
        file.end(&ended).unwrap();
    }
    json!({"name": format!("h{number}"), "records": folder.join("records.jsonl")})
}

fn rows(dir: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.join("series.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Numbers of a text, read as those of the account are: their last digit may differ from what was written.
fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn latency<'a>(samples: impl IntoIterator<Item = &'a u64>) -> Latency {
    let mut latency = Latency::new();
    for &ns in samples {
        latency.record(ns);
    }
    latency
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_merged_figures_are_those_of_all_samples(
        hosts in prop::collection::vec(
            (1_u64..1_000, prop::collection::vec(prop::collection::vec(1_u64..10 * SECOND, 0..30), 1..5)), 1..5),
    ) {
        let dir = TempDir::new().unwrap();
        let left: Vec<_> = hosts.iter().enumerate()
            .map(|(number, (start_s, samples))| write_host(dir.path(), number, start_s * SECOND, samples, true))
            .collect();
        let account = read(&merge(&document(dir.path(), &left)).unwrap());
        let all = latency(hosts.iter().flat_map(|(_, intervals)| intervals).flatten());
        prop_assert_eq!(&account["state"], "complete");
        prop_assert_eq!(&account["response"], &read(&json!(all.moments.stats()).to_string()));
        prop_assert_eq!(&account["counts"]["done"], &json!(all.moments.count));
        prop_assert_eq!(&account["clients"], 8);
        prop_assert_eq!(&account["threads"], hosts.len());
        // All hosts saw their first error at their start: that is one instant.
        prop_assert_eq!(&account["errors"][0]["first_ns"], START_NS);
        for (index, row) in rows(dir.path()).iter().enumerate() {
            let of_all = latency(hosts.iter().filter_map(|(_, intervals)| intervals.get(index)).flatten());
            prop_assert_eq!(&row["start_ns"], START_NS + index as u64 * SECOND);
            prop_assert_eq!(&row["end_ns"], START_NS + (index as u64 + 1) * SECOND);
            prop_assert_eq!(&row["done"], of_all.moments.count);
            let p99 = (of_all.moments.count > 0).then(|| of_all.histogram.value_at_quantile(0.99));
            prop_assert_eq!(row["response"]["p99_ns"].as_u64(), p99);
        }
    }
}

#[test]
fn what_a_lost_host_had_in_flight_has_failed_and_the_drive_is_aborted() {
    let dir = TempDir::new().unwrap();
    let whole = write_host(dir.path(), 0, 9 * SECOND, &[vec![5, 6], vec![7]], true);
    let mut cut = write_host(dir.path(), 1, 3 * SECOND, &[vec![5, 6], vec![8]], false);
    cut["lost"] = json!("killed");
    let path = cut["records"].as_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, format!("{text}{{\"interval\":{{\"index\":2")).unwrap();
    let account: Value =
        serde_json::from_str(&merge(&document(dir.path(), &[whole, cut])).unwrap()).unwrap();
    assert_eq!(account["state"], "aborted");
    assert_eq!(account["reason"], "load host h1 was lost: killed");
    let counts = &account["counts"];
    assert_eq!(
        (&counts["scheduled"], &counts["done"], &counts["failed"]),
        (&json!(7), &json!(6), &json!(1))
    );
    assert_eq!(rows(dir.path()).len(), 2);
}

#[test]
fn a_host_of_which_nothing_came_is_lost_and_one_that_cannot_be_read_is_said() {
    let dir = TempDir::new().unwrap();
    let whole = write_host(dir.path(), 0, 9 * SECOND, &[vec![5, 6]], true);
    let hosts = [whole, json!({"name": "h1", "lost": "gone"})];
    let account: Value =
        serde_json::from_str(&merge(&document(dir.path(), &hosts)).unwrap()).unwrap();
    assert_eq!(account["reason"], "load host h1 was lost: gone");
    assert_eq!(account["counts"]["done"], 2);
    let absent = json!({"name": "h2", "records": dir.path().join("absent")});
    let error = merge(&document(dir.path(), &[absent])).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the records of h2 cannot be read"),
        "{error}"
    );
}

/// Put lines before the last one of a host's records.
fn add_parts(host: &Value, parts: &[Value]) {
    let path = host["records"].as_str().unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let (rest, end) = text.trim_end().rsplit_once('\n').unwrap();
    let parts = parts
        .iter()
        .map(|part| format!("{}\n", json!({"part": part})));
    let parts: String = parts.collect();
    std::fs::write(path, format!("{rest}\n{parts}{end}\n")).unwrap();
}

fn query_drive(dir: &Path, hosts: &[Value]) -> Value {
    let mut drive = drive(dir);
    drive.as_object_mut().unwrap().remove("scripts");
    // The first and the third are the same: two hosts have answered it.
    drive["queries"] = json!({
        "labels": ["one"],
        "queries": [[0, "select a"], [0, "select b"], [0, "select a"], [0, "select c"]],
    });
    let asked = json!({"drive": drive, "start_ns": START_NS, "hosts": hosts});
    read(&merge(&asked.to_string()).unwrap())
}

fn answer(number: u64, rows: u64) -> Value {
    let digest = json!({"rows": rows, "keys": u64::MAX, "columns": []});
    json!({"answer": [number, {"digest": digest}]})
}

#[test]
fn answers_of_all_hosts_are_put_together_and_must_be_the_same() {
    for (rows, agree) in [(5, true), (6, false)] {
        let dir = TempDir::new().unwrap();
        let hosts = [0, 1].map(|host| {
            let start_ns = (9 - host as u64) * SECOND;
            write_host(dir.path(), host, start_ns, &[vec![5, 6]], true)
        });
        add_parts(
            &hosts[0],
            &[answer(2, rows), answer(1, 7), json!({"rows": [[12], 3]})],
        );
        add_parts(&hosts[1], &[answer(0, 5), json!({"rows": [[5], 1]})]);
        let account = query_drive(dir.path(), &hosts);
        let queries = &account["queries"];
        assert_eq!(queries["labels"][0]["rows"], 17);
        assert_eq!(queries["answers_left_out"], 4);
        let answers: Vec<_> = queries["answers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|answer| (answer["query"].as_u64(), answer["digest"]["rows"].as_u64()))
            .collect();
        assert_eq!(answers, [(Some(0), Some(5)), (Some(1), Some(7))]);
        let wrong: Vec<_> = account["errors"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|error| error["sqlstate"] == "answer")
            .collect();
        assert_eq!(wrong.is_empty(), agree, "{wrong:?}");
        if let Some(wrong) = wrong.first() {
            let words = wrong["message"].as_str().unwrap();
            assert!(words.contains("row count 6 here, 5 there"), "{words}");
        }
    }
}
