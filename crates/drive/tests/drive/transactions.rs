//! Long transactions: rows one by one, many in each, in pieces.

use loadstone_drive::{Drive, DriveSpec};
use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, has_begun, number, on_both, run, start};
use crate::load::{assert_every_batch, into_sink};

on_both!(
    rows_go_in_one_by_one_and_every_mark_is_noted,
    what_was_open_when_the_server_went_is_lost,
    transactions_that_are_stored_are_passed_over,
);

fn load(more: &Value) -> Value {
    let mut load = json!({
        "data": {"kind": "rows", "set": "import", "seed": 3, "rows": 2500},
        "method": "insert", "batch_rows": 1000, "ledger": "ledger",
        "transaction": {"statement_rows": 1, "pipeline": true, "mark_rows": 100},
    });
    for (key, value) in more.as_object().unwrap() {
        load[key] = value.clone();
    }
    load
}

fn progress(out: &TempDir) -> Vec<Value> {
    let text = std::fs::read_to_string(out.path().join("progress.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn rows_go_in_one_by_one_and_every_mark_is_noted(io: &str) {
    let server = Server::new(Behaviour::default());
    for (pipeline, statement_rows, clients) in
        [(true, 1, 1), (false, 1, 2), (true, 10, 3), (false, 5, 1)]
    {
        let out = TempDir::new().unwrap();
        let long =
            json!({"statement_rows": statement_rows, "pipeline": pipeline, "mark_rows": 100});
        let more = json!({"transaction": long, "step_rows": 2000});
        let account = run(&into_sink(
            &server,
            io,
            &load(&more),
            &json!({"out_dir": out.path(), "clients": clients}),
        ));
        assert_eq!(account["state"], "complete", "{account}");
        assert_eq!(account["counts"]["done"], 3);
        assert_eq!(account["load"]["rows"], 2500);
        assert_eq!(account["load"]["batches"], 3);
        assert_every_batch(&account);
        let rows: Vec<u64> = account["load"]["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| number(&s["rows"]))
            .collect();
        assert_eq!(rows, [2000, 500]);
        assert_marks(&account["load"]["transactions"], &progress(&out));
        let statements = account["statements"].as_array().unwrap();
        let inserts = statements
            .iter()
            .find(|s| s["text"] == "INSERT INTO \"test\"")
            .unwrap();
        let exchanges = if pipeline { 25 } else { 2500 / statement_rows };
        assert_eq!(inserts["service"]["count"], exchanges, "{inserts}");
    }
}

/// A line every hundred rows of each transaction, and one at its end.
fn assert_marks(transactions: &Value, lines: &[Value]) {
    for (number_of, transaction) in transactions.as_array().unwrap().iter().enumerate() {
        let marks: Vec<&Value> = lines
            .iter()
            .filter(|l| l["transaction"] == number_of)
            .collect();
        let (end, open) = marks.split_last().unwrap();
        assert_eq!(end["state"], "committed");
        assert_eq!(end["rows"], transaction["rows"]);
        assert_eq!(end["t_ns"], transaction["end_ns"]);
        let counts: Vec<u64> = open.iter().map(|line| number(&line["rows"])).collect();
        assert_eq!(
            counts,
            (1..=number(&transaction["rows"]) / 100)
                .map(|n| n * 100)
                .collect::<Vec<_>>()
        );
        assert!(
            open.windows(2)
                .all(|pair| number(&pair[0]["t_ns"]) <= number(&pair[1]["t_ns"]))
        );
        assert!(open.iter().all(|line| line["state"] == "open"));
        assert!(number(&transaction["start_ns"]) <= number(&open[0]["t_ns"]));
    }
}

fn what_was_open_when_the_server_went_is_lost(io: &str) {
    for fault in [
        Fault::CloseAfter { queries: 700 },
        Fault::SilentAfter { queries: 700 },
    ] {
        let server = Server::faulty(vec![fault]);
        let out = TempDir::new().unwrap();
        let long = json!({"pipeline": false, "mark_rows": 50});
        let more = json!({"out_dir": out.path(), "clients": 1, "timeout_s": 0.5});
        let account = run(&into_sink(
            &server,
            io,
            &load(&json!({"transaction": long, "batch_rows": 300})),
            &more,
        ));
        assert_eq!(account["state"], "aborted");
        let transactions = account["load"]["transactions"].as_array().unwrap();
        let (lost, before) = transactions.split_last().unwrap();
        assert!(
            !before.is_empty() && before.iter().all(|t| t["state"] == "committed"),
            "{transactions:?}"
        );
        assert_eq!(lost["state"], "lost");
        assert!((1..300).contains(&number(&lost["rows"])), "{lost}");
        assert_eq!(
            account["load"]["failed_batches"],
            json!([lost["transaction"]])
        );
        assert_eq!(
            (&account["load"]["in_doubt_batches"], &account["in_doubt"]),
            (&json!([]), &json!(0))
        );
        assert_eq!(number(&account["load"]["rows"]), 300 * before.len() as u64);
        assert_every_batch(&account);
        let lines = progress(&out);
        assert_eq!(lines.last().unwrap()["state"], "lost");
    }
}

fn transactions_that_are_stored_are_passed_over(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"skip": [[0, 0], [2, 2]], "batch_rows": 600});
    let account = run(&into_sink(
        &server,
        io,
        &load(&more),
        &json!({"clients": 2}),
    ));
    assert_eq!(account["state"], "complete");
    let numbers: Vec<u64> = account["load"]["transactions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| number(&t["transaction"]))
        .collect();
    assert_eq!(numbers, [1, 3, 4]);
    assert_eq!(account["load"]["skipped_batches"], 2);
    assert_eq!(account["load"]["rows"], 2500 - 1200);
}

#[test]
fn a_stop_ends_a_long_transaction_in_time() {
    let server = Server::new(Behaviour::default());
    let data = json!({"kind": "rows", "set": "import", "seed": 3, "rows": 50_000_000});
    let long = load(&json!({"data": data, "batch_rows": 10_000_000}));
    let drive = start(&into_sink(&server, "epoll", &long, &json!({"clients": 2})));
    while !has_begun(&drive) {
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
    std::thread::park_timeout(std::time::Duration::from_millis(300));
    drive.stop();
    let account = crate::harness::finish(&drive);
    assert_eq!(account["state"], "aborted");
    assert_eq!(account["load"]["transactions"][0]["state"], "lost");
    assert_eq!(account["load"]["rows"], 0);
    assert_every_batch(&account);
}

#[test]
fn long_transactions_that_cannot_be_are_refused_at_once() {
    let cases = [
        (
            json!({"method": "copy_text"}),
            json!({}),
            "use the method insert",
        ),
        (
            json!({"transaction": {"statement_rows": 3, "mark_rows": 100}}),
            json!({}),
            "multiple of statement_rows",
        ),
        (
            json!({"transaction": {"statement_rows": 0}}),
            json!({}),
            "is out of range",
        ),
        (
            json!({"data": crate::load::data("devops")}),
            json!({}),
            "data of the kind rows",
        ),
        (json!({}), json!({"tries_max": 2}), "not tried again"),
    ];
    for (more, drive, words) in cases {
        let spec = crate::load::spec("127.0.0.1", 1, "epoll", &load(&more), &drive).to_string();
        let error = DriveSpec::from_json(&spec)
            .and_then(Drive::new)
            .err()
            .unwrap();
        let said = format!("{error} / {}", error.hint());
        assert!(said.contains(words), "{more}: {said}");
    }
}
