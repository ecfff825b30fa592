//! How a load begins and grows: clients one after the other, connections at a limited rate, rates that change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use loadstone_drive::Drive;
use loadstone_drive::clock::now_ns;
use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};

use crate::harness::{
    Answer, Scripted, Server, done_failed, finish, number, on_both, run, script, start,
};

on_both!(
    clients_of_a_ramp_up_begin_evenly_one_after_the_other,
    a_request_to_stop_ends_a_ramp_up_at_once,
    connections_are_begun_no_faster_than_allowed,
    a_connection_for_every_transaction_is_no_faster_either,
    nor_are_those_that_are_made_again,
    a_request_to_stop_ends_the_wait_for_leave_to_connect,
    transactions_that_never_got_a_connection_are_dropped_at_the_end_under_a_rate,
    a_rate_that_changes_has_the_starts_of_its_integral,
    the_details_of_a_warm_up_are_not_counted,
    a_run_of_decades_begins_and_is_stopped_at_once,
);

const MS: u64 = 1_000_000;

/// Stop a drive once `is_so`, and see that it ends at once.
fn stop_when(spec: &Value, is_so: impl Fn(&Drive) -> bool) -> Value {
    let drive = start(spec);
    while !is_so(&drive) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let asked_ns = now_ns();
    drive.stop();
    let account = finish(&drive);
    let took_ns = now_ns() - asked_ns;
    assert!(took_ns < 20_000 * MS, "{took_ns}");
    assert_eq!(account["state"], "interrupted");
    account
}

fn clients_of_a_ramp_up_begin_evenly_one_after_the_other(io: &str) {
    const CLIENTS: u64 = 8;
    let first: Arc<Mutex<BTreeMap<u64, u64>>> = Arc::default();
    let seen = Arc::clone(&first);
    let server = Scripted::new(move |number, sql| {
        if number == 0 {
            let client = sql.trim_end_matches(';').rsplit(' ').next().unwrap();
            seen.lock()
                .unwrap()
                .insert(client.parse().unwrap(), now_ns());
        }
        Answer::Row("1")
    });
    let more = json!({"clients": CLIENTS, "threads": 2, "duration_s": 1.0, "ramp_up_s": 0.4,
                      "scripts": script("SELECT :client_id;")});
    let account = run(&server.spec(io, more));
    let start_ns = number(&account["start_ns"]);
    let first = first.lock().unwrap();
    assert_eq!(first.len() as u64, CLIENTS, "{first:?}");
    for (client, at_ns) in &*first {
        assert!(*at_ns >= start_ns + client * 50 * MS, "{client}: {first:?}");
    }
    assert!(account["lost_clients"]["count"] == 0 && account["state"] == "complete");
}

fn a_request_to_stop_ends_a_ramp_up_at_once(io: &str) {
    let server = Server::new(Behaviour::default());
    for reconnect in [false, true] {
        let more = json!({"clients": 4, "ramp_up_s": 1000.0, "connect_per_transaction": reconnect,
                          "interval_s": 0.01});
        let account = stop_when(&server.spec(io, more), |drive| {
            let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
            progress["done"].as_u64() >= Some(10)
        });
        assert_eq!(
            done_failed(&account).0,
            10,
            "only the first client has begun"
        );
    }
}

fn connections_are_begun_no_faster_than_allowed(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 21, "threads": 3, "connect_rate_per_s": 100.0});
    let account = run(&server.spec(io, more));
    // Twenty gaps of 10 ms, of which the first may be caught up on.
    let wall_ns = number(&account["connect"]["wall_ns"]);
    assert!(wall_ns >= 185 * MS, "{wall_ns}");
    assert_eq!(done_failed(&account), (210, 0));
    // The wait for leave is ours, and not in the time that the server took.
    let latency_ns = account["connect"]["latency"]["mean_ns"].as_f64().unwrap();
    assert!(latency_ns < 100e6, "{latency_ns}");
}

fn a_connection_for_every_transaction_is_no_faster_either(io: &str) {
    let server = Server::new(Behaviour::default());
    for (clients, threads) in [(1, 1), (6, 2)] {
        let more = json!({"clients": clients, "threads": threads, "duration_s": 0.4,
                          "connect_rate_per_s": 50.0, "connect_per_transaction": true});
        let account = run(&server.spec(io, more));
        let (done, failed) = done_failed(&account);
        assert!((1..=22).contains(&done) && failed == 0, "{account}");
        let lasted_ns = number(&account["end_ns"]) - number(&account["start_ns"]);
        assert!(
            lasted_ns < 5_000 * MS,
            "nothing waits for leave after the end: {lasted_ns}"
        );
    }
}

fn nor_are_those_that_are_made_again(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 1 }]);
    let more =
        json!({"clients": 8, "duration_s": 0.6, "connect_rate_per_s": 40.0, "reconnect": true});
    let account = run(&server.spec(io, more));
    let reconnects = number(&account["connect"]["reconnects"]);
    assert!((1..=26).contains(&reconnects), "{account}");
}

fn a_request_to_stop_ends_the_wait_for_leave_to_connect(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 3, "connect_rate_per_s": 0.001});
    let account = stop_when(&server.spec(io, more), |_| true);
    assert_eq!(account["counts"]["scheduled"], 0);
    let more = json!({"clients": 3, "connect_rate_per_s": 0.001, "connect_per_transaction": true,
                      "interval_s": 0.01});
    let account = stop_when(&server.spec(io, more), |drive| {
        let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
        progress["done"] == 1
    });
    assert_eq!(done_failed(&account), (1, 0));
}

fn transactions_that_never_got_a_connection_are_dropped_at_the_end_under_a_rate(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 4, "duration_s": 0.4, "connect_rate_per_s": 20.0,
                      "connect_per_transaction": true, "pace": {"kind": "fixed", "rate_per_s": 500.0}});
    let account = run(&server.spec(io, more));
    let counts = &account["counts"];
    assert_eq!(counts["scheduled"], 200);
    assert!(number(&counts["done"]) <= 10, "{counts}");
    assert!(number(&counts["dropped"]) >= 190, "{counts}");
}

fn a_rate_that_changes_has_the_starts_of_its_integral(io: &str) {
    let server = Server::new(Behaviour::default());
    let pieces = json!([
        {"from_per_s": 1000.0, "to_per_s": 5000.0, "length_s": 0.3},
        {"from_per_s": 500.0, "to_per_s": 500.0, "length_s": 0.3},
    ]);
    let more = json!({"clients": 8, "threads": 2, "warmup_s": 0.2, "duration_s": 0.8,
                      "pace": {"kind": "varying", "pieces": pieces}});
    let account = run(&server.spec(io, more));
    // 1000/s in the warm-up; then 900, 150, and 100 at the last rate. Five standard deviations either way.
    let warmup = number(&account["warmup_counts"]["scheduled"]);
    assert!((129..=271).contains(&warmup), "{account}");
    let scheduled = number(&account["counts"]["scheduled"]);
    assert!((980..=1320).contains(&scheduled), "{account}");
    assert_eq!(account["pace"]["pieces"], pieces);
    assert!(number(&account["lag"]["count"]) > 0);
}

fn the_details_of_a_warm_up_are_not_counted(io: &str) {
    let server = Server::faulty(vec![Fault::ErrorEvery {
        n: 5,
        sqlstate: *b"40001",
        message: "conflict".to_owned(),
    }]);
    let more = json!({"clients": 1, "warmup_s": 0.2, "duration_s": 0.2, "on_error": "abort_client",
                      "connect_per_transaction": false, "messages": {"counts": true}});
    let account = run(&server.spec(io, more));
    let failed = number(&account["counts"]["failed"]);
    assert!(failed > 0 && number(&account["warmup_counts"]["failed"]) > 0);
    assert_eq!(account["details"]["scripts"][0]["serialization"], failed);
}

fn a_run_of_decades_begins_and_is_stopped_at_once(io: &str) {
    let server = Server::new(Behaviour::default());
    let decades_s = f64::from(i32::MAX);
    for warmup_s in [0.0, decades_s] {
        let more = json!({"clients": 3, "threads": 2, "duration_s": decades_s, "warmup_s": warmup_s,
                          "interval_s": decades_s, "ramp_up_s": 1e9, "reconnect": true,
                          "pace": {"kind": "poisson", "rate_per_s": 1e-9}});
        let account = stop_when(&server.spec(io, more), |drive| {
            let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
            !progress["start_ns"].is_null()
        });
        assert_eq!(account["counts"]["scheduled"], 0, "once in thirty years");
        let lasted_ns = number(&account["end_ns"]) - number(&account["start_ns"]);
        assert!(lasted_ns < 20_000 * MS, "{lasted_ns}");
    }
}
