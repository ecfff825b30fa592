//! Clients that end before the run does, and those that come back: counted, and told.

use loadstone_drive::Drive;
use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};

use crate::harness::{Server, done_failed, finish, number, on_both, run, start};

on_both!(
    clients_that_end_are_grouped_by_the_reason,
    an_error_that_ends_clients_is_one_reason_however_it_is_worded,
    what_a_lost_connection_costs_is_counted_where_clients_come_back,
    clients_that_never_come_back_have_ended,
    percentiles_and_the_last_intervals_need_no_files,
);

fn told(drive: &Drive) -> String {
    let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
    let lines = progress["messages"].as_array().unwrap().iter();
    let texts: Vec<_> = lines.map(|line| line["text"].as_str().unwrap()).collect();
    texts.join("\n")
}

fn clients_that_end_are_grouped_by_the_reason(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 30 }]);
    let more = json!({"clients": 4, "threads": 2, "duration_s": 20.0, "on_error": "abort_client",
                      "messages": {"counts": true}});
    let account = run(&server.spec(io, more));
    let ended = account["details"]["ended"].as_array().unwrap();
    assert_eq!(ended.len(), 1, "{account}");
    assert_eq!(ended[0]["sqlstate"], "connection");
    assert_eq!(ended[0]["count"], 4);
    let (first, last) = (number(&ended[0]["first_ns"]), number(&ended[0]["last_ns"]));
    assert!(number(&account["start_ns"]) <= first && first <= last);
    assert!(ended[0]["message"].as_str().unwrap().contains("closed"));
    // What ended its client is no failure in pgbench's count.
    assert_eq!(account["details"]["scripts"][0]["other"], 0);
}

fn an_error_that_ends_clients_is_one_reason_however_it_is_worded(io: &str) {
    let server = Server::faulty(vec![Fault::ErrorEvery {
        n: 7,
        sqlstate: *b"22012",
        message: "division by zero".to_owned(),
    }]);
    let more = json!({"clients": 3, "transactions_per_client": 50, "on_error": "abort_client",
                      "reconnect": true, "messages": {"counts": true}});
    let account = run(&server.spec(io, more));
    let ended = account["details"]["ended"].as_array().unwrap();
    assert_eq!(
        ended.len(),
        1,
        "an error of the script is no lost connection: {account}"
    );
    assert_eq!(
        (&ended[0]["sqlstate"], &ended[0]["count"]),
        (&json!("22012"), &json!(3))
    );
    assert_eq!(account["connect"]["reconnects"], 0);
}

fn what_a_lost_connection_costs_is_counted_where_clients_come_back(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 100 }]);
    let more = json!({"clients": 3, "transactions_per_client": 250, "on_error": "abort_client",
                      "reconnect": true, "messages": {"counts": true}});
    let drive = start(&server.spec(io, more));
    let account = finish(&drive);
    assert_eq!(account["state"], "complete");
    assert_eq!(done_failed(&account), (3 * 248, 3 * 2));
    assert_eq!(account["details"]["ended"], json!([]));
    assert_eq!(account["details"]["scripts"][0]["other"], 6);
    let told = told(&drive);
    assert!(
        told.contains("lost its connection and connects again: "),
        "{told}"
    );
    assert!(
        told.contains("all clients are connected again; up to "),
        "{told}"
    );
}

fn clients_that_never_come_back_have_ended(io: &str) {
    let mut server = Server::new(Behaviour::default());
    let more = json!({"clients": 5, "duration_s": 0.7, "reconnect": true, "interval_s": 0.05,
                      "on_error": "abort_client", "messages": {"counts": true}});
    let drive = start(&server.spec(io, more));
    let progress = || serde_json::from_str::<Value>(&drive.progress()).unwrap();
    while progress()["done"].as_u64() == Some(0) {
        std::thread::yield_now();
    }
    server.inner.stop();
    let account = finish(&drive);
    let ended = account["details"]["ended"].as_array().unwrap();
    assert_eq!(
        (ended.len(), &ended[0]["count"]),
        (1, &json!(5)),
        "{account}"
    );
}

fn percentiles_and_the_last_intervals_need_no_files(io: &str) {
    let server = Server::new(Behaviour::default());
    let pace = json!({"kind": "fixed", "rate_per_s": 200.0});
    let more = json!({"clients": 2, "warmup_s": 0.1, "duration_s": 0.3, "interval_s": 0.1,
                      "pace": pace, "messages": {"counts": true}});
    let drive = start(&server.spec(io, more));
    let account = finish(&drive);
    for (kind, stats) in [("response_ns", "response"), ("lag_ns", "lag")] {
        let percentiles = account["details"][kind].as_object().unwrap();
        let names = ["50", "90", "95", "99", "99.9"];
        let mut last = 0;
        for name in names {
            let ns = number(&percentiles[name]);
            assert!(ns >= last, "{percentiles:?}");
            last = ns;
        }
        assert_eq!(percentiles.len(), names.len());
        // Three digits of the exact highest.
        let max = number(&account[stats]["max_ns"]);
        assert!(last.abs_diff(max) <= max / 500 + 1, "{last} and {max}");
    }
    let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
    let recent = progress["recent"].as_array().unwrap();
    let full: u64 = recent.iter().map(|row| number(&row["done"])).sum();
    assert_eq!(
        full,
        number(&account["counts"]["done"]) + number(&account["warmup_counts"]["done"])
    );
    assert!(
        (recent.len() == 4 || recent.len() == 5) && recent[0]["warmup"] == true,
        "{recent:?}"
    );
    let again: Value = serde_json::from_str(&drive.progress()).unwrap();
    assert!(again.get("recent").is_none(), "each is told once: {again}");
}
