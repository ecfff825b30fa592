use super::*;
use serde_json::{Value, json};

fn spec(more: &Value) -> Result<DriveSpec, DriveError> {
    let mut spec = json!({
        "connection": {"host": "db", "port": 5432, "user": "u", "database": "d", "password": "s3cret"},
        "scripts": [{"name": "s", "text": "SELECT 1;"}],
        "mode": "simple", "clients": 1, "seed": 1, "duration_s": 1.0,
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    DriveSpec::from_json(&spec.to_string())
}

#[test]
fn what_is_impossible_is_refused_by_name() {
    let cases = [
        (json!({"clients": 0}), "clients is 0"),
        (json!({"duration_s": null}), "duration"),
        (json!({"duration_s": 0.0}), "duration_s is 0"),
        (json!({"transactions_per_client": 5}), "duration"),
        (
            json!({"duration_s": null, "transactions_per_client": 0}),
            "is 0",
        ),
        (
            json!({"duration_s": null, "transactions_per_client": 1, "warmup_s": 1.0}),
            "warm-up",
        ),
        (json!({"tries_max": 0}), "tries_max"),
        (json!({"scripts": []}), "no script"),
        (
            json!({"scripts": [{"name": "s", "text": "", "weight": 0}]}),
            "no script",
        ),
        (
            json!({"pace": {"kind": "fixed", "rate_per_s": -1.0}}),
            "rate_per_s is -1",
        ),
        (
            json!({"pace": {"kind": "poisson", "rate_per_s": 1e9}}),
            "ten million",
        ),
        (json!({"latency_limit_ms": 0.0}), "latency_limit_ms"),
        (json!({"timeout_s": -3.0}), "timeout_s is -3"),
        (json!({"interval_s": 0.0}), "interval_s"),
        (json!({"warmup_s": -1.0}), "warmup_s is -1"),
        (json!({"ramp_up_s": -1.0}), "ramp_up_s is -1"),
        (json!({"ramp_up_s": 1.5}), "as long as the drive"),
        (
            json!({"connect_rate_per_s": 0.0}),
            "connect_rate_per_s is 0",
        ),
        (
            json!({"pace": {"kind": "varying", "pieces": []}}),
            "rate_per_s is 0",
        ),
        (
            json!({"pace": {"kind": "varying", "pieces": [{"from_per_s": 5.0, "to_per_s": 0.0, "length_s": 1.0}]}}),
            "last rate",
        ),
        (json!({"io": "aio"}), "does not parse"),
        (json!({"colour": "red"}), "colour"),
    ];
    for (more, words) in cases {
        let error = spec(&more).unwrap_err();
        assert!(error.to_string().contains(words), "{more}: {error}");
    }
    assert!(!format!("{:?}", spec(&json!({})).unwrap()).contains("s3cret"));
}

#[test]
fn threads_are_chosen_by_cores_and_never_exceed_the_clients() {
    let threads = |clients: usize, threads: Value, cores: usize| {
        let spec = spec(&json!({"clients": clients, "threads": threads})).unwrap();
        spec.threads_or(cores)
    };
    assert_eq!(threads(100, Value::Null, 2), 1);
    assert_eq!(threads(100, Value::Null, 64), 8);
    assert_eq!(threads(3, Value::Null, 64), 3);
    assert_eq!(threads(3, json!(0), 2), 1);
    assert_eq!(threads(3, json!(2), 2), 2);
}

#[test]
fn hosts_with_other_cores_have_as_many_threads_as_the_smallest() {
    let spec = spec(&json!({"clients": 100, "cores": 24})).unwrap();
    assert_eq!([2, 24, 64].map(|own| spec.threads_or(own)), [3, 3, 3]);
}
