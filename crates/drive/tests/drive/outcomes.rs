//! What becomes of transactions, and how it is counted.

use loadstone_wire::postgres::Fault;
use serde_json::json;

use crate::harness::{
    Answer, Scripted, Server, done_failed, error, errors, number, on_both, ready, run, script,
};

on_both!(
    every_mode_counts_what_it_did,
    errors_are_counted_by_their_state,
    a_failed_transaction_is_left_before_the_next,
    abort_client_stops_each_client_at_its_first_error,
    a_serialization_failure_is_tried_again_with_the_same_random_numbers,
    tries_come_to_an_end,
    what_is_over_the_latency_limit_is_not_tried_again,
    a_transaction_left_open_is_an_error_with_words,
    transactions_per_client_are_kept_under_a_rate_too,
    late_starts_are_skipped_and_slow_ends_counted,
    a_connection_per_transaction,
);

fn every_mode_counts_what_it_did(io: &str) {
    let server = Server::new(loadstone_wire::postgres::Behaviour::default());
    let text = "\\set x random(1, 100)\nSELECT :x;\nINSERT INTO t VALUES (:x);\n";
    for mode in ["simple", "extended", "prepared"] {
        let more = json!({"mode": mode, "clients": 4, "transactions_per_client": 50,
                          "scripts": script(text)});
        let account = run(&server.spec(io, more));
        assert_eq!(account["state"], "complete", "{mode}");
        assert_eq!(done_failed(&account), (200, 0), "{mode}");
        assert_eq!(account["response"]["count"], 200);
        assert_eq!(account["connect"]["latency"]["count"], 4);
        let statements = account["statements"].as_array().unwrap();
        assert_eq!(statements.len(), 2);
        for statement in statements {
            assert_eq!(statement["service"]["count"], 200, "{mode}");
            assert_eq!(statement["failed"], 0);
        }
        assert!(number(&account["bytes_sent"]) > 200 * 20);
        assert!(number(&account["bytes_received"]) > 200 * 20);
    }
}

fn errors_are_counted_by_their_state(io: &str) {
    for mode in ["simple", "extended", "prepared"] {
        let server = Server::faulty(vec![Fault::ErrorEvery {
            n: 4,
            sqlstate: *b"23505",
            message: "duplicate key".to_owned(),
        }]);
        let more = json!({"mode": mode, "transactions_per_client": 20});
        let account = run(&server.spec(io, more));
        assert_eq!(done_failed(&account), (30, 10), "{mode}");
        assert_eq!(errors(&account), [("23505".to_owned(), 10)].into());
        assert_eq!(account["errors"][0]["message"], "duplicate key");
        assert_eq!(account["statements"][0]["failed"], 10);
        assert_eq!(account["statements"][0]["service"]["count"], 30);
        assert_eq!(account["state"], "complete");
        assert_eq!(account["in_doubt"], 0);
    }
}

fn a_failed_transaction_is_left_before_the_next(io: &str) {
    let server = Server::faulty(vec![Fault::ErrorEvery {
        n: 8,
        sqlstate: *b"22012",
        message: "division by zero".to_owned(),
    }]);
    let more = json!({"scripts": script("BEGIN;\nSELECT 1;\nSELECT 2;\nCOMMIT;\n"),
                      "transactions_per_client": 30});
    let account = run(&server.spec(io, more));
    let (done, failed) = done_failed(&account);
    assert_eq!(done + failed, 60);
    assert!(failed > 5, "{account}");
    // Statements inside a failed transaction would have been refused with 25P02.
    assert_eq!(errors(&account), [("22012".to_owned(), failed)].into());
}

fn abort_client_stops_each_client_at_its_first_error(io: &str) {
    let server = Server::faulty(vec![Fault::ErrorEvery {
        n: 5,
        sqlstate: *b"42P01",
        message: "no such table".to_owned(),
    }]);
    let more = json!({"on_error": "abort_client", "clients": 3, "duration_s": 20.0});
    let account = run(&server.spec(io, more));
    assert_eq!(account["state"], "aborted");
    assert!(
        account["reason"]
            .as_str()
            .unwrap()
            .contains("no such table")
    );
    assert_eq!(done_failed(&account), (12, 3));
    assert_eq!(account["outages"], json!([]));
}

fn a_serialization_failure_is_tried_again_with_the_same_random_numbers(io: &str) {
    // Every third query fails, on its first try.
    let server = Scripted::new(|number, _| match number % 3 {
        2 => Answer::Bytes([error("ERROR", "40001", "could not serialize"), ready(b'I')].concat()),
        _ => Answer::Row("1"),
    });
    let more = json!({"clients": 1, "tries_max": 2, "transactions_per_client": 20,
                      "scripts": script("\\set x random(1, 1000000)\nSELECT :x;\n")});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (20, 0));
    let queries = server.queries();
    let failed: Vec<usize> = (0..queries.len()).filter(|i| i % 3 == 2).collect();
    assert_eq!(number(&account["retries"]), failed.len() as u64);
    assert_eq!(account["retried"], account["retries"]);
    for at in failed {
        assert_eq!(queries[at], queries[at + 1], "the retry asks for the same");
    }
    let mut different = queries.clone();
    different.dedup();
    assert_eq!(different.len(), 20, "and the next transaction for another");
}

fn tries_come_to_an_end(io: &str) {
    let server = Scripted::new(|_, _| {
        Answer::Bytes([error("ERROR", "40P01", "deadlock"), ready(b'I')].concat())
    });
    let more = json!({"clients": 1, "tries_max": 3, "transactions_per_client": 5,
                      "on_error": "abort_client"});
    let account = run(&server.spec(io, more));
    assert_eq!(account["state"], "complete", "a deadlock aborts no client");
    assert_eq!(done_failed(&account), (0, 5));
    assert_eq!(server.queries().len(), 15);
    assert_eq!(errors(&account), [("40P01".to_owned(), 5)].into());
    assert_eq!(
        (number(&account["retries"]), number(&account["retried"])),
        (10, 5)
    );
}

fn what_is_over_the_latency_limit_is_not_tried_again(io: &str) {
    let server = Scripted::new(|_, _| {
        std::thread::park_timeout(std::time::Duration::from_millis(30));
        Answer::Bytes([error("ERROR", "40001", "could not serialize"), ready(b'I')].concat())
    });
    let more = json!({"clients": 1, "tries_max": 1000, "transactions_per_client": 2,
                      "latency_limit_ms": 50.0});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (0, 2));
    assert!(server.queries().len() <= 4, "{:?}", server.queries());
}

fn a_transaction_left_open_is_an_error_with_words(io: &str) {
    let server = Server::new(loadstone_wire::postgres::Behaviour::default());
    let more = json!({"scripts": script("BEGIN;\nSELECT 1;\n")});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (0, 20));
    let words = account["errors"][0]["message"].as_str().unwrap();
    assert!(words.contains("COMMIT"), "{words}");
}

fn transactions_per_client_are_kept_under_a_rate_too(io: &str) {
    let server = Server::new(loadstone_wire::postgres::Behaviour::default());
    for pace in ["fixed", "poisson"] {
        let more = json!({"clients": 3, "transactions_per_client": 20,
                          "pace": {"kind": pace, "rate_per_s": 500.0}});
        let account = run(&server.spec(io, more));
        assert_eq!(account["counts"]["scheduled"], 60, "{pace}");
        assert_eq!(done_failed(&account), (60, 0), "{pace}");
    }
}

fn late_starts_are_skipped_and_slow_ends_counted(io: &str) {
    let server = Server::faulty(vec![Fault::DelayEvery {
        n: 10,
        ns: 200_000_000,
    }]);
    let more = json!({"clients": 1, "duration_s": 1.0, "latency_limit_ms": 50.0,
                      "pace": {"kind": "fixed", "rate_per_s": 50.0}});
    let account = run(&server.spec(io, more));
    assert_eq!(account["counts"]["scheduled"], 50);
    // Each stall of 200 ms lets starts fall due every 20 ms; those older than 50 ms at its end are skipped.
    let skipped = number(&account["counts"]["skipped"]);
    assert!((5..=40).contains(&skipped), "{account}");
    let late = number(&account["late"]);
    assert!(late >= 2, "the stalled ones themselves are late: {account}");
    assert!(late <= number(&account["counts"]["done"]));
}

fn a_connection_per_transaction(io: &str) {
    let server = Server::new(loadstone_wire::postgres::Behaviour::default());
    for (mode, rate) in [("simple", None), ("prepared", Some(400.0))] {
        let mut more = json!({"mode": mode, "clients": 5, "transactions_per_client": 20,
                              "connect_per_transaction": true});
        if let Some(rate) = rate {
            more["pace"] = json!({"kind": "poisson", "rate_per_s": rate});
        }
        let account = run(&server.spec(io, more));
        assert_eq!(done_failed(&account), (100, 0), "{mode}");
        assert_eq!(account["connect"]["latency"]["count"], 100);
        assert_eq!(account["connect"]["reconnects"], 0);
        assert_eq!(account["outages"], json!([]));
    }
}
