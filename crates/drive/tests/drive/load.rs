//! Loads: every row arrives once, whatever happens, and the account says what became of each batch.

use std::collections::BTreeSet;
use std::time::Duration;

use loadstone_drive::{DataSpec, Drive, DriveSpec};
use loadstone_gen::encode::copy_text;
use loadstone_wire::postgres::Behaviour;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, errors, finish, number, on_both, run, start};
use crate::store::{Store, Tables, Trouble};

on_both!(
    the_sink_takes_every_kind_of_batch,
    the_files_of_a_load_say_the_same,
    a_failed_batch_fails_the_load,
    a_refused_table_leaves_both_sides_in_step,
    a_conflict_is_tried_again_as_often_as_asked,
    a_load_goes_on_where_a_dead_server_left_it,
    a_stopped_load_says_how_far_it_came,
    a_rate_paces_batches,
    a_server_that_never_answers_leaves_batches_in_doubt,
);

const HOUR_NS: i64 = 3_600_000_000_000;
const START_NS: i64 = 1_451_606_400_000_000_000;

/// Half an hour of five hosts or trucks.
pub(crate) fn data(use_case: &str) -> Value {
    json!({"kind": "tsbs", "use_case": use_case, "seed": 5, "scale": 5, "start_ns": START_NS,
           "end_ns": START_NS + HOUR_NS / 2, "interval_ns": 10_000_000_000_i64})
}

/// A drive of `load` for a server on `host`.
pub(crate) fn spec(host: &str, port: u16, io: &str, load: &Value, more: &Value) -> Value {
    let mut load = load.clone();
    if load.get("data").is_none() {
        load["data"] = data("devops");
    }
    let mut spec = json!({
        "connection": {"host": host, "port": port, "user": "tester", "database": "test",
                       "connect_timeout_s": 5.0, "sslmode": "disable"},
        "load": load, "clients": 3, "threads": 1, "seed": 7, "io": io, "timeout_s": 5.0,
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

pub(crate) fn into_store(store: &Store, io: &str, load: &Value, more: &Value) -> Value {
    let mut load = load.clone();
    load["method"] = json!("copy_text");
    load["ledger"] = json!("ledger");
    spec("127.0.0.1", store.port, io, &load, more)
}

pub(crate) fn into_sink(server: &Server, io: &str, load: &Value, more: &Value) -> Value {
    let host = server.folder.path().to_str().unwrap();
    spec(host, server.inner.port(), io, load, more)
}

/// All rows of a data set as COPY's text has them, sorted.
pub(crate) fn expected(data: &Value) -> Tables {
    let mut source = DataSpec::from_json(&data.to_string())
        .unwrap()
        .open()
        .unwrap();
    let dataset = std::sync::Arc::clone(source.dataset());
    let mut tables = Tables::new();
    let mut add = |name: &str, rows: &_| {
        let mut text = Vec::new();
        copy_text(rows, &mut text).unwrap();
        let lines = text.split_inclusive(|&byte| byte == b'\n').map(Vec::from);
        tables.entry(name.to_owned()).or_default().extend(lines);
    };
    while let Some(chunk) = source.next(1000).unwrap() {
        if let Some(tags) = &chunk.tags {
            add("tags", tags);
        }
        for part in &chunk.tables {
            add(&dataset.tables[part.table].name, &part.rows.batch());
        }
    }
    for rows in tables.values_mut() {
        rows.sort_unstable();
    }
    tables
}

/// Made = committed + in doubt + failed + never sent; returns the committed numbers.
pub(crate) fn assert_every_batch(account: &Value) -> BTreeSet<u64> {
    let load = &account["load"];
    let listed = |key: &str| load[key].as_array().unwrap().len() as u64;
    let ended = number(&load["batches"]) + number(&load["unsent_batches"]);
    let ended = ended + listed("in_doubt_batches") + listed("failed_batches");
    assert_eq!(number(&load["made_batches"]), ended, "{load}");
    let ranges = load["committed"].as_array().unwrap();
    let numbers = ranges
        .iter()
        .flat_map(|range| number(&range[0])..=number(&range[1]));
    numbers.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_arrives_once(
        batch_rows in 1_usize..3000, clients in 1_usize..6, threads in 1_usize..3, hash: bool, uring: bool,
        trucks: bool,
    ) {
        let batch_rows = batch_rows.max(40);
        let data = data(if trucks { "iot" } else { "devops" });
        let store = Store::new(Trouble::default());
        let load = json!({"data": data, "batch_rows": batch_rows, "hash_workers": hash});
        let io = if uring { "io_uring" } else { "epoll" };
        let account = run(&into_store(&store, io, &load, &json!({"clients": clients, "threads": threads})));
        prop_assert_eq!(&account["state"], "complete");
        let (tables, ledger) = store.content();
        let wanted = expected(&data);
        prop_assert_eq!(&tables, &wanted);
        let load = &account["load"];
        let rows: usize = wanted.iter().filter(|(name, _)| *name != "tags").map(|(_, rows)| rows.len()).sum();
        prop_assert_eq!(number(&load["rows"]), rows as u64);
        prop_assert_eq!(number(&load["tags_rows"]), wanted["tags"].len() as u64);
        prop_assert_eq!(ledger.iter().map(|(_, rows)| rows).sum::<u64>(), rows as u64);
        prop_assert_eq!(ledger.len() as u64, number(&load["batches"]));
        prop_assert_eq!(number(&account["counts"]["done"]), number(&load["batches"]));
        let numbers = assert_every_batch(&account);
        prop_assert!(ledger.iter().all(|(batch, _)| numbers.contains(batch)));
        for table in load["tables"].as_array().unwrap() {
            let rows = wanted.get(table["name"].as_str().unwrap()).map_or(0, Vec::len);
            prop_assert_eq!(number(&table["rows"]), rows as u64);
        }
    }
}

fn the_sink_takes_every_kind_of_batch(io: &str) {
    let server = Server::new(Behaviour::default());
    for method in ["copy_binary", "copy_text", "insert"] {
        for more in [
            json!({}),
            json!({"prepared": false, "jsonb_tags": true, "in_table_tag": true}),
            json!({"hash_workers": true, "limit_rows": 5000}),
        ] {
            let mut load = json!({"method": method, "batch_rows": 700, "ledger": "ledger"});
            for (key, value) in more.as_object().unwrap() {
                load[key] = value.clone();
            }
            let account = run(&into_sink(&server, io, &load, &json!({})));
            assert_eq!(account["state"], "complete", "{account}");
            let wanted = if more["limit_rows"] == 5000 {
                5000
            } else {
                8100
            };
            assert_eq!(account["load"]["rows"], wanted, "{load}");
            assert_eq!(account["load"]["source"]["exhausted"], true);
            assert_every_batch(&account);
            assert_eq!(account["mode"], method);
            let statements = account["statements"].as_array().unwrap();
            let texts: Vec<&str> = statements
                .iter()
                .map(|s| s["text"].as_str().unwrap())
                .collect();
            let verb = if method == "insert" {
                "INSERT INTO"
            } else {
                "COPY"
            };
            assert!(
                texts.contains(&format!("{verb} \"cpu\"").as_str()),
                "{texts:?}"
            );
            assert!(
                statements
                    .iter()
                    .all(|s| number(&s["service"]["count"]) > 0),
                "{statements:?}"
            );
        }
    }
}

fn the_files_of_a_load_say_the_same(io: &str) {
    let server = Server::new(Behaviour::default());
    let out = TempDir::new().unwrap();
    let load = json!({"batch_rows": 100});
    let more = json!({"out_dir": out.path(), "interval_s": 0.02});
    let drive = start(&into_sink(&server, io, &load, &more));
    let account = finish(&drive);
    let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
    for kind in ["rows", "metrics"] {
        assert_eq!(progress[kind], account["load"][kind], "{progress}");
        let text = std::fs::read_to_string(out.path().join("series.jsonl")).unwrap();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        assert_eq!(
            lines.map(|line| number(&line[kind])).sum::<u64>(),
            progress[kind]
        );
    }
    let sent = std::fs::read_to_string(out.path().join("sent.jsonl")).unwrap();
    let marks: Vec<Value> = sent
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(account["load"]["marks"], marks.len());
    assert!(marks.len() > 10, "{sent}");
    for pair in marks.windows(2) {
        assert!(pair[0]["time_us"].as_i64() < pair[1]["time_us"].as_i64());
    }
    for mark in &marks {
        assert!(number(&account["start_ns"]) <= number(&mark["sent_ns"]));
        assert!(number(&mark["sent_ns"]) <= number(&mark["acked_ns"]));
        assert!(number(&mark["acked_ns"]) <= number(&account["end_ns"]));
    }
    let last_us = (START_NS + HOUR_NS / 2) / 1000 - 10_000_000;
    assert_eq!(marks.last().unwrap()["time_us"], last_us);
}

/// The ledger holds what the account calls committed, and nothing but what it calls in doubt besides.
pub(crate) fn assert_ledger(store: &Store, account: &Value) -> BTreeSet<u64> {
    let committed = assert_every_batch(account);
    let (tables, ledger) = store.content();
    let stored: BTreeSet<u64> = ledger.iter().map(|(batch, _)| *batch).collect();
    assert_eq!(stored.len(), ledger.len(), "a batch is stored twice");
    assert!(committed.is_subset(&stored), "{committed:?} {stored:?}");
    let in_doubt = account["load"]["in_doubt_batches"].as_array().unwrap();
    assert!(
        stored
            .difference(&committed)
            .all(|batch| in_doubt.contains(&json!(batch)))
    );
    let rows: usize = tables
        .iter()
        .filter(|(name, _)| *name != "tags")
        .map(|(_, rows)| rows.len())
        .sum();
    assert_eq!(
        ledger.iter().map(|(_, rows)| rows).sum::<u64>(),
        rows as u64
    );
    stored
}

fn a_failed_batch_fails_the_load(io: &str) {
    for hash in [false, true] {
        let store = Store::new(Trouble {
            copy: Some(60),
            ..Trouble::default()
        });
        let load = json!({"batch_rows": 200, "hash_workers": hash});
        let account = run(&into_store(&store, io, &load, &json!({})));
        assert_eq!(account["state"], "aborted");
        let reason = account["reason"].as_str().unwrap();
        assert!(
            reason.contains("the key is there already (SQLSTATE 23505)"),
            "{reason}"
        );
        assert_eq!(
            account["load"]["failed_batches"].as_array().unwrap().len(),
            1
        );
        assert_eq!(account["load"]["in_doubt_batches"], json!([]));
        assert_eq!(errors(&account)["23505"], 1);
        assert!(!assert_ledger(&store, &account).is_empty());
        assert_eq!(account["load"]["source"]["exhausted"], false);
    }
}

fn a_refused_table_leaves_both_sides_in_step(io: &str) {
    // Its data is passed over, and so is that of the tables after it.
    let store = Store::new(Trouble {
        refusal: Some(25),
        ..Trouble::default()
    });
    let account = run(&into_store(
        &store,
        io,
        &json!({"batch_rows": 3000}),
        &json!({}),
    ));
    assert_eq!(account["state"], "aborted");
    assert_eq!(errors(&account), [("42P01".to_owned(), 1)].into());
    assert_ledger(&store, &account);
}

fn a_conflict_is_tried_again_as_often_as_asked(io: &str) {
    let trouble = Trouble {
        conflict: Some(3),
        ..Trouble::default()
    };
    let store = Store::new(trouble);
    let load = json!({"batch_rows": 500});
    let account = run(&into_store(&store, io, &load, &json!({"tries_max": 2})));
    assert_eq!(account["state"], "complete");
    assert_eq!(
        (number(&account["retries"]), number(&account["retried"])),
        (1, 1)
    );
    assert_eq!(store.content().0, expected(&data("devops")));
    let store = Store::new(trouble);
    let account = run(&into_store(&store, io, &load, &json!({})));
    assert_eq!(account["state"], "aborted");
    assert_ledger(&store, &account);
}

fn a_load_goes_on_where_a_dead_server_left_it(io: &str) {
    for hash in [false, true] {
        let store = Store::new(Trouble {
            death: Some(20),
            ..Trouble::default()
        });
        let mut load = json!({"batch_rows": 150, "hash_workers": hash});
        let account = run(&into_store(&store, io, &load, &json!({})));
        assert_eq!(account["state"], "aborted");
        let reason = account["reason"].as_str().unwrap();
        assert!(reason.contains("connection"), "{reason}");
        assert_ne!(account["load"]["in_doubt_batches"], json!([]));
        let stored = assert_ledger(&store, &account);
        assert_eq!(stored.len(), 20);
        store.mend();
        load["skip"] = stored.iter().map(|batch| json!([batch, batch])).collect();
        let resumed = run(&into_store(&store, io, &load, &json!({})));
        assert_eq!(resumed["state"], "complete");
        assert_eq!(resumed["load"]["skipped_batches"], 20);
        assert_eq!(store.content().0, expected(&data("devops")));
        // The fingerprint is of what both have stored.
        load["skip"] = json!([]);
        let other = Store::new(Trouble::default());
        let whole = run(&into_store(&other, io, &load, &json!({})));
        let fingerprints = |account: &Value| -> Vec<Value> {
            let tables = account["load"]["tables"].as_array().unwrap();
            tables
                .iter()
                .map(|table| table["fingerprint"].clone())
                .collect()
        };
        assert_eq!(fingerprints(&resumed), fingerprints(&whole));
    }
}

fn a_stopped_load_says_how_far_it_came(io: &str) {
    let store = Store::new(Trouble::default());
    let more = json!({"pace": {"kind": "fixed", "rate_per_s": 20.0}});
    let drive = start(&into_store(&store, io, &json!({"batch_rows": 100}), &more));
    while !drive.progress().contains("\"start_ns\":") || store.content().1.len() < 3 {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    drive.stop();
    let account = finish(&drive);
    assert_eq!(account["state"], "interrupted");
    let stored = assert_ledger(&store, &account);
    assert_eq!(number(&account["load"]["batches"]), stored.len() as u64);
    assert!(number(&account["load"]["rows"]) < 8100);
}

fn a_rate_paces_batches(io: &str) {
    let store = Store::new(Trouble::default());
    let more = json!({"pace": {"kind": "fixed", "rate_per_s": 50.0}});
    let load = json!({"batch_rows": 405});
    let account = run(&into_store(&store, io, &load, &more));
    assert_eq!(
        (&account["state"], &account["load"]["batches"]),
        (&json!("complete"), &json!(20))
    );
    let took_ns = number(&account["end_ns"]) - number(&account["start_ns"]);
    assert!(
        (370_000_000..15_000_000_000).contains(&took_ns),
        "{took_ns}"
    );
    assert_eq!(number(&account["lag"]["count"]), 20);
    let load = json!({"batch_rows": 2700, "insert_intervals": "1"});
    let account = run(&into_store(
        &Store::new(Trouble::default()),
        io,
        &load,
        &json!({"clients": 2}),
    ));
    let took_ns = number(&account["end_ns"]) - number(&account["start_ns"]);
    assert!(
        (990_000_000..15_000_000_000).contains(&took_ns),
        "{took_ns}"
    );
}

fn a_server_that_never_answers_leaves_batches_in_doubt(io: &str) {
    use loadstone_wire::postgres::Fault;
    let server = Server::faulty(vec![Fault::SilentAfter { queries: 30 }]);
    let load = json!({"batch_rows": 200});
    let account = run(&into_sink(&server, io, &load, &json!({"timeout_s": 0.3})));
    assert_eq!(account["state"], "aborted");
    assert_eq!(
        account["load"]["in_doubt_batches"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(errors(&account), [("timeout".to_owned(), 3)].into());
    assert_every_batch(&account);
}

#[test]
fn what_cannot_be_loaded_is_refused_at_once() {
    let refused = |load: &Value, more: &Value| {
        let spec = spec("127.0.0.1", 1, "epoll", load, more).to_string();
        let error = DriveSpec::from_json(&spec)
            .and_then(Drive::new)
            .err()
            .unwrap();
        format!("{error} / {}", error.hint())
    };
    let nothing = json!({});
    let cases = [
        (json!({"batch_rows": 0}), &nothing, "batch_rows is 0"),
        (json!({"skip": [[3, 1]]}), &nothing, "from 3 to 1"),
        (
            json!({"insert_intervals": "2-1"}),
            &nothing,
            "is not an interval",
        ),
        (json!({"ledger": "a\u{0}"}), &nothing, "NUL"),
        (
            json!({"tables": {}}),
            &nothing,
            "the rows of \"tags\" have no table",
        ),
        (
            json!({"tables": {"tags": null}}),
            &nothing,
            "the rows of \"cpu\" have no table",
        ),
        (
            json!({"tables": {"tags": {"name": "t", "columns": ["id"]}}}),
            &nothing,
            "1 columns are listed",
        ),
        (json!({"method": "telepathy"}), &nothing, "does not parse"),
        (
            json!({"data": {"kind": "tsbs", "use_case": "iot", "seed": 1, "scale": 0, "start_ns": 0,
                         "end_ns": 1, "interval_ns": 1}}),
            &nothing,
            "scale",
        ),
    ];
    for (load, more, words) in cases {
        let said = refused(&load, more);
        assert!(said.contains(words), "{load}: {said}");
    }
    let said = refused(&json!({}), &json!({"latency_limit_ms": 5.0}));
    assert!(said.contains("skips no batch"), "{said}");
    let said = refused(
        &json!({}),
        &json!({"scripts": [{"name": "s", "text": "SELECT 1;"}]}),
    );
    assert!(
        said.contains("exactly one of scripts, load, queries and lua"),
        "{said}"
    );
}
