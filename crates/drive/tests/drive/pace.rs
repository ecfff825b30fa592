//! When transactions start, and what waiting does to their times.

use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::json;

use crate::harness::{Server, done_failed, number, on_both, run};

on_both!(
    a_stall_shows_in_response_time_and_not_in_service_time,
    a_fixed_rate_is_kept_to_the_transaction,
    a_poisson_rate_is_kept_within_its_spread,
    the_warm_up_is_counted_apart_and_in_no_figure,
    what_never_started_is_dropped_not_forgotten,
    a_closed_loop_has_no_waiting,
);

fn a_stall_shows_in_response_time_and_not_in_service_time(io: &str) {
    // One connection, 100 starts a second, and one answer, the 100th, that takes 500 ms.
    let server = Server::faulty(vec![Fault::DelayEvery {
        n: 100,
        ns: 500_000_000,
    }]);
    let more = json!({"clients": 1, "duration_s": 1.9,
                      "pace": {"kind": "fixed", "rate_per_s": 100.0}});
    let account = run(&server.spec(io, more));
    let (done, failed) = done_failed(&account);
    // All 190, but for what a busy machine comes to after the end.
    assert!((180..=190).contains(&done) && failed == 0, "{account}");
    let mean_ms = |kind: &str| account[kind]["mean_ns"].as_f64().unwrap() / 1e6;
    // The stalled one and the 49 that fall due meanwhile wait 500, 490, … 10 ms: 12,750 ms in all.
    let waiting_ms = 12_750.0 / 190.0;
    let response_ms = mean_ms("response");
    assert!(response_ms > waiting_ms - 1.0, "{response_ms} ms");
    assert!(response_ms < waiting_ms + 25.0, "{response_ms} ms");
    // Served, only one of them took long: 500 ms in all.
    let service_ms = mean_ms("service");
    assert!(service_ms >= 500.0 / 190.0, "{service_ms} ms");
    assert!(service_ms < 500.0 / 190.0 + 10.0, "{service_ms} ms");
    assert!((mean_ms("lag") - (response_ms - service_ms)).abs() < 0.01);
    assert_eq!(account["statements"][0]["service"]["count"], done);
}

fn a_fixed_rate_is_kept_to_the_transaction(io: &str) {
    let server = Server::new(Behaviour::default());
    for (threads, rate) in [(1, 2000_u64), (3, 1000)] {
        let more = json!({"clients": 6, "threads": threads, "duration_s": 0.5,
                          "pace": {"kind": "fixed", "rate_per_s": rate}});
        let account = run(&server.spec(io, more));
        assert_eq!(account["counts"]["scheduled"], rate / 2);
        let (done, failed) = done_failed(&account);
        let dropped = number(&account["counts"]["dropped"]);
        assert_eq!(failed, 0);
        assert!(dropped <= rate / 8, "{dropped} never started");
        assert_eq!(account["lag"]["count"], done);
        // Far below the millisecond on a machine of one's own; this one is shared.
        let lag_ms = account["lag"]["mean_ns"].as_f64().unwrap() / 1e6;
        assert!(lag_ms < 50.0, "started {lag_ms} ms late on average");
    }
}

fn a_poisson_rate_is_kept_within_its_spread(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 8, "threads": 2, "duration_s": 0.8,
                      "pace": {"kind": "poisson", "rate_per_s": 2000.0}});
    let account = run(&server.spec(io, more));
    let scheduled = number(&account["counts"]["scheduled"]);
    // 1,600 expected; the standard deviation of a Poisson count is its root, 40.
    assert!((1400..=1800).contains(&scheduled), "{scheduled}");
}

fn the_warm_up_is_counted_apart_and_in_no_figure(io: &str) {
    let server = Server::faulty(vec![Fault::DelayEvery {
        n: 10,
        ns: 60_000_000,
    }]);
    let more = json!({"clients": 1, "warmup_s": 0.3, "duration_s": 0.4, "interval_s": 0.1,
                      "latency_limit_ms": 10000.0,
                      "pace": {"kind": "fixed", "rate_per_s": 50.0}});
    let account = run(&server.spec(io, more));
    assert_eq!(account["warmup_counts"]["scheduled"], 15);
    assert_eq!(account["counts"]["scheduled"], 20);
    // One that began in the warm-up and ended after it is in the rate, and its latency in no figure.
    let counts = &account["counts"];
    let timed = number(&counts["done"]) - number(&counts["carried"]);
    assert_eq!(account["response"]["count"], timed);
    assert_eq!(account["service"]["count"], timed);
    assert_eq!(account["statements"][0]["service"]["count"], timed);
    assert_eq!(account["scripts"][0]["service"]["count"], timed);
    let warmup_ns = number(&account["measure_ns"]) - number(&account["start_ns"]);
    assert_eq!(warmup_ns, 300_000_000);
}

fn what_never_started_is_dropped_not_forgotten(io: &str) {
    let server = Server::faulty(vec![Fault::DelayEvery {
        n: 1,
        ns: 100_000_000,
    }]);
    let more = json!({"clients": 1, "duration_s": 0.55,
                      "pace": {"kind": "fixed", "rate_per_s": 100.0}});
    let account = run(&server.spec(io, more));
    assert_eq!(account["counts"]["scheduled"], 55);
    let (done, _) = done_failed(&account);
    assert!((1..=6).contains(&done), "{account}");
    assert_eq!(number(&account["counts"]["dropped"]), 55 - done);
}

fn a_closed_loop_has_no_waiting(io: &str) {
    let server = Server::new(Behaviour::default());
    let account = run(&server.spec(io, json!({"duration_s": 0.3, "warmup_s": 0.0})));
    assert!(account["lag"].is_null());
    assert_eq!(account["response"], account["service"]);
    assert_eq!(account["warmup_counts"]["scheduled"], 0);
    let (done, failed) = done_failed(&account);
    assert!(done > 50 && failed == 0, "{account}");
    assert_eq!(account["response"]["count"], done);
}
