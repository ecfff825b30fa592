//! Requests to stop: whatever the clients do, the run ends within its grace and the account is whole.

use std::time::{Duration, Instant};

use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};

use crate::harness::{Server, done_failed, errors, finish, number, on_both, run, script, start};

on_both!(
    while_it_works,
    while_it_connects,
    while_a_statement_takes_long,
    while_it_sleeps,
    while_it_waits_for_its_rate,
    while_it_comes_back,
    a_second_start_is_refused,
    a_long_sleep_does_not_outlive_the_run,
);

/// Stop a drive after a moment; the account and how long the end took.
fn stop_soon(spec: &Value) -> (Value, Duration) {
    let drive = start(spec);
    std::thread::park_timeout(Duration::from_millis(200));
    let asked = now();
    drive.stop();
    let account = finish(&drive);
    (account, asked.elapsed())
}

fn while_it_works(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 8, "threads": 2, "duration_s": 60.0});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < Duration::from_secs(1), "{took:?}");
    let (done, failed) = done_failed(&account);
    assert!(done > 0 && failed == 0, "{account}");
    let lasted_ns = number(&account["end_ns"]) - number(&account["start_ns"]);
    assert!(lasted_ns < 2_000_000_000);
}

fn while_it_connects(io: &str) {
    let server = Server::faulty(vec![Fault::SilentAtStartup]);
    let more = json!({"connection": {"connect_timeout_s": 60.0}, "threads": 2});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(account["counts"]["scheduled"], 0);
}

fn while_a_statement_takes_long(io: &str) {
    let server = Server::faulty(vec![Fault::SilentAfter { queries: 1 }]);
    let more = json!({"timeout_s": 60.0, "duration_s": 60.0, "reconnect": true});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(done_failed(&account), (2, 2));
    assert_eq!(errors(&account), [("timeout".to_owned(), 2)].into());
    assert!(
        account["errors"][0]["message"]
            .as_str()
            .unwrap()
            .starts_with("cut off")
    );
    assert_eq!(account["in_doubt"], 2);
    assert_eq!(account["outages"], json!([]), "we cut them off ourselves");
    assert_eq!(server.inner.cancels(), [2, 0]);
}

fn while_it_sleeps(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"duration_s": 60.0, "timeout_s": 0.5,
                      "scripts": script("SELECT 1;\n\\sleep 60 s\n")});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(done_failed(&account), (0, 2));
    assert_eq!(account["in_doubt"], 0);
}

fn while_it_waits_for_its_rate(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"duration_s": 60.0, "pace": {"kind": "fixed", "rate_per_s": 0.1}});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(done_failed(&account), (1, 0));
}

fn while_it_comes_back(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 0 }]);
    let more = json!({"duration_s": 60.0, "reconnect": true});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < Duration::from_secs(1), "{took:?}");
    let (done, failed) = done_failed(&account);
    assert!(done == 0 && failed > 0);
}

fn a_second_start_is_refused(io: &str) {
    let server = Server::new(Behaviour::default());
    let drive = start(&server.spec(io, json!({})));
    assert!(
        drive
            .start()
            .unwrap_err()
            .to_string()
            .contains("started already")
    );
    finish(&drive);
}

fn a_long_sleep_does_not_outlive_the_run(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"duration_s": 0.2, "timeout_s": 0.4,
                      "scripts": script("\\sleep 60 s\nSELECT 1;\n")});
    let begun = now();
    let account = run(&server.spec(io, more));
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(account["state"], "complete");
    assert_eq!(done_failed(&account), (0, 2));
    assert_eq!(errors(&account), [("timeout".to_owned(), 2)].into());
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test takes is no figure of a run"
)]
fn now() -> Instant {
    Instant::now()
}
