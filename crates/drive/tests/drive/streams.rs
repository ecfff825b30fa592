//! Batches that are sent while they are made: the same rows, transactions and accounts as of those made beforehand.

use serde_json::{Value, json};

use crate::harness::{errors, number, on_both, run};
use crate::load::{assert_every_batch, assert_ledger, expected, into_store};
use crate::store::{Store, Trouble};

on_both!(
    every_row_arrives_once_however_batches_are_cut,
    a_failed_batch_fails_the_load_after_all_its_pieces,
    a_load_goes_on_where_a_dead_server_left_it,
    a_conflict_is_tried_again_with_the_same_rows,
);

const ROWS: u64 = 20_000;

fn load(batch_rows: u64, more: &Value) -> Value {
    let mut load = json!({
        "data": {"kind": "rows", "set": "import", "seed": 3, "rows": ROWS},
        "batch_rows": batch_rows,
    });
    for (key, value) in more.as_object().unwrap() {
        load[key] = value.clone();
    }
    load
}

fn every_row_arrives_once_however_batches_are_cut(io: &str) {
    for (batch_rows, step_rows, limit_rows) in [
        (700, 0, 0),
        (ROWS, 0, 0),
        (ROWS + 1, 0, 0),
        (8000, 9000, 0),
        (6000, 0, 15_000),
    ] {
        let store = Store::new(Trouble::default());
        let load = load(
            batch_rows,
            &json!({"step_rows": step_rows, "limit_rows": limit_rows}),
        );
        let account = run(&into_store(&store, io, &load, &json!({"clients": 1})));
        assert_eq!(account["state"], "complete", "{account}");
        let rows = if limit_rows > 0 { limit_rows } else { ROWS };
        let mut data = load["data"].clone();
        data["rows"] = json!(rows);
        let (tables, ledger) = store.content();
        assert!(tables == expected(&data), "other rows: {account}");
        assert_eq!(account["load"]["rows"], rows);
        assert_eq!(account["load"]["metrics"], 12 * rows);
        assert_eq!(ledger.iter().map(|(_, rows)| rows).sum::<u64>(), rows);
        assert_eq!(assert_every_batch(&account).len(), ledger.len());
        assert_eq!(number(&account["counts"]["done"]), ledger.len() as u64);
        assert_eq!(account["load"]["source"]["exhausted"], true);
        for statement in account["statements"].as_array().unwrap() {
            assert_eq!(
                number(&statement["service"]["count"]),
                ledger.len() as u64,
                "{statement}"
            );
        }
    }
}

fn a_failed_batch_fails_the_load_after_all_its_pieces(io: &str) {
    for trouble in [
        Trouble {
            copy: Some(2),
            ..Trouble::default()
        },
        Trouble {
            refusal: Some(2),
            ..Trouble::default()
        },
    ] {
        let store = Store::new(trouble);
        let account = run(&into_store(
            &store,
            io,
            &load(7000, &json!({})),
            &json!({"clients": 1}),
        ));
        assert_eq!(account["state"], "aborted");
        assert_eq!(account["load"]["failed_batches"], json!([1]));
        assert_eq!(errors(&account).len(), 1);
        assert_eq!(assert_ledger(&store, &account), [0].into());
        assert_eq!(account["load"]["rows"], 7000);
    }
}

fn a_load_goes_on_where_a_dead_server_left_it(io: &str) {
    let store = Store::new(Trouble {
        death: Some(2),
        ..Trouble::default()
    });
    let account = run(&into_store(
        &store,
        io,
        &load(6000, &json!({})),
        &json!({"clients": 1}),
    ));
    assert_eq!(account["state"], "aborted");
    assert_eq!(account["load"]["in_doubt_batches"], json!([1]));
    let stored = assert_ledger(&store, &account);
    assert_eq!(stored, [0, 1].into());
    store.mend();
    let rest = load(6000, &json!({"skip": [[0, 1]]}));
    let resumed = run(&into_store(&store, io, &rest, &json!({"clients": 1})));
    assert_eq!(resumed["state"], "complete", "{resumed}");
    assert!(store.content().0 == expected(&rest["data"]), "other rows");
}

fn a_conflict_is_tried_again_with_the_same_rows(io: &str) {
    let store = Store::new(Trouble {
        conflict: Some(2),
        ..Trouble::default()
    });
    let load = load(7000, &json!({}));
    let more = json!({"clients": 1, "tries_max": 2});
    let account = run(&into_store(&store, io, &load, &more));
    assert_eq!(account["state"], "complete", "{account}");
    assert_eq!(number(&account["retries"]), 1);
    assert!(store.content().0 == expected(&load["data"]), "other rows");
}
