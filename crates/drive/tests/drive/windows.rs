//! The rate against the server's own count: what ends in the measured window is in its rate, whenever it should have
//! begun.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use loadstone_drive::clock::now_ns;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Answer, Scripted, number, on_both, run};

on_both!(
    a_fixed_rate_agrees_with_the_server,
    a_poisson_rate_agrees_with_the_server,
    a_closed_loop_agrees_with_the_server,
    skipped_and_failed_starts_of_the_warm_up_are_counted_where_they_end,
);

const CLIENTS: u64 = 2;
/// Each answer takes so long: the server's capacity is 200 a second at most, and less on a busy machine.
const SERVICE: Duration = Duration::from_millis(10);
const CAPACITY_PER_S: f64 = 200.0;

/// A server of known capacity, and when it was done with each query.
fn server() -> (Scripted, Arc<Mutex<Vec<u64>>>) {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&ends);
    let server = Scripted::new(move |_, _| {
        let until_ns = now_ns() + u64::try_from(SERVICE.as_nanos()).unwrap();
        while now_ns() < until_ns {
            thread::park_timeout(Duration::from_nanos(until_ns.saturating_sub(now_ns())));
        }
        log.lock().unwrap().push(now_ns());
        Answer::Row("1")
    });
    (server, ends)
}

/// Drive it, and compare the counts of both windows, and those of the intervals, with the server's.
fn compare(io: &str, more: &Value) -> Value {
    let (server, ends) = server();
    let folder = TempDir::new().unwrap();
    let mut spec = server.spec(io, more.clone());
    spec["clients"] = json!(CLIENTS);
    spec["interval_s"] = json!(0.1);
    spec["out_dir"] = json!(folder.path());
    let account = run(&spec);
    let ends = ends.lock().unwrap();
    let (measure_ns, end_ns) = (number(&account["measure_ns"]), number(&account["end_ns"]));
    let inside = ends
        .iter()
        .filter(|&&end| (measure_ns..=end_ns).contains(&end));
    let answered = inside.count() as u64;
    let (counts, warmup) = (&account["counts"], &account["warmup_counts"]);
    // An answer that was on its way when the warm-up ended is in one window there and in the other here.
    assert!(
        number(&counts["done"]).abs_diff(answered) <= CLIENTS,
        "{answered}: {account}"
    );
    assert_eq!(
        number(&counts["done"]) + number(&warmup["done"]),
        ends.len() as u64
    );
    let text = std::fs::read_to_string(folder.path().join("series.jsonl")).unwrap();
    for (window, is_warmup) in [(counts, false), (warmup, true)] {
        let lines = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines = lines.filter(|line| line["warmup"] == is_warmup);
        let done: u64 = lines.map(|line| number(&line["done"])).sum();
        assert_eq!(done, number(&window["done"]), "{text}");
    }
    account
}

fn rates_agree(io: &str, kind: &str) {
    for factor in [0.2, 1.0, 3.0] {
        for warmup_s in [0.0, 0.3] {
            let rate = factor * CAPACITY_PER_S;
            let account = compare(
                io,
                &json!({"warmup_s": warmup_s, "duration_s": 0.3,
                        "pace": {"kind": kind, "rate_per_s": rate}}),
            );
            let counts = &account["counts"];
            let carried = number(&counts["carried"]);
            assert_eq!(carried, number(&account["warmup_counts"]["carried"]));
            assert!(warmup_s > 0.0 || carried == 0, "{account}");
            if factor > 2.0 && warmup_s > 0.0 {
                // Of about 180 starts no more than 62 can have been served.
                assert!(carried > 60, "{account}");
                // Their latencies belong to the warm-up; what is measured is of the window's own starts.
                assert!(number(&account["response"]["count"]) < number(&counts["done"]).max(1));
            }
        }
    }
}

fn a_fixed_rate_agrees_with_the_server(io: &str) {
    rates_agree(io, "fixed");
}

fn a_poisson_rate_agrees_with_the_server(io: &str) {
    rates_agree(io, "poisson");
}

fn a_closed_loop_agrees_with_the_server(io: &str) {
    for warmup_s in [0.0, 0.2] {
        let account = compare(io, &json!({"warmup_s": warmup_s, "duration_s": 0.2}));
        assert!(number(&account["counts"]["carried"]) <= CLIENTS);
    }
}

fn skipped_and_failed_starts_of_the_warm_up_are_counted_where_they_end(io: &str) {
    let pace = json!({"kind": "fixed", "rate_per_s": 2000.0});
    let more = json!({"warmup_s": 0.3, "duration_s": 0.1, "pace": pace, "latency_limit_ms": 200.0});
    let account = compare(io, &more);
    // Sixty starts were served in the warm-up at most, and hundreds were not: they are skipped, then or later.
    let (counts, warmup) = (&account["counts"], &account["warmup_counts"]);
    assert!(number(&counts["carried"]) > 100, "{account}");
    assert!(
        number(&counts["skipped"]) + number(&counts["dropped"]) > 100,
        "{account}"
    );
    assert_eq!(number(&warmup["scheduled"]), 600);
}
