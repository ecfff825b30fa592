//! Many clients, several threads.

use std::collections::BTreeMap;

use loadstone_wire::postgres::Behaviour;
use serde_json::json;

use crate::harness::{Answer, Scripted, Server, done_failed, number, on_both, run, script};

on_both!(
    two_thousand_clients,
    the_same_seed_gives_the_same_bytes_however_many_threads,
    more_threads_than_clients,
);

fn two_thousand_clients(io: &str) {
    let server = Server::with_room(Behaviour::default(), 2000);
    let more = json!({"clients": 2000, "threads": 2, "mode": "prepared", "duration_s": 0.5,
                      "timeout_s": 20.0, "connection": {"connect_timeout_s": 20.0}});
    let account = run(&server.spec(io, more));
    assert_eq!(account["connect"]["latency"]["count"], 2000);
    let (done, failed) = done_failed(&account);
    assert!(done >= 2000 && failed == 0, "{account}");
}

fn the_same_seed_gives_the_same_bytes_however_many_threads(io: &str) {
    let mut seen: Vec<BTreeMap<String, Vec<String>>> = Vec::new();
    for threads in [1, 2, 3] {
        let server = Scripted::new(|_, _| Answer::Row("1"));
        let text = |n: u32| {
            format!(
                "\\set x random(1, 1000000)\n\\set h hash(:x)\nSELECT {n}, :x, :h /*:client_id*/;\n"
            )
        };
        let more = json!({"clients": 5, "threads": threads, "transactions_per_client": 20,
                          "scripts": [{"name": "a", "text": text(1)}, {"name": "b", "text": text(2)}]});
        let account = run(&server.spec(io, more));
        assert_eq!(account["threads"], threads);
        assert_eq!(done_failed(&account), (100, 0));
        let mut by_client: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for query in server.queries() {
            let (sql, client) = query.split_once("/*").unwrap();
            by_client
                .entry(client.to_owned())
                .or_default()
                .push(sql.to_owned());
        }
        assert_eq!(by_client.len(), 5);
        seen.push(by_client);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    let all: Vec<&Vec<String>> = seen[0].values().collect();
    assert!(
        all.windows(2).all(|w| w[0] != w[1]),
        "each client makes its own choices"
    );
}

fn more_threads_than_clients(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 2, "threads": 8, "scripts": script("SELECT 1;\n")});
    let account = run(&server.spec(io, more));
    assert_eq!(account["threads"], 2);
    assert_eq!(done_failed(&account), (20, 0));
    assert!(number(&account["loop"]["iterations"]) > 0);
}

#[test]
fn recording_a_sample_is_cheap() {
    // 50 ns with optimisation; tests are built with little of it, and share the machine.
    let cost = loadstone_drive::record::cost_ns();
    assert!(cost < 2000.0, "{cost} ns");
}
