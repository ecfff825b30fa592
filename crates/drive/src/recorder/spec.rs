//! What a recorder is asked for, read and checked.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::json;

use crate::error::DriveError;
use crate::pace::Pace;
use crate::spec::DriveSpec;

/// What is to be recorded.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecorderSpec {
    /// Kinds of samples.
    pub labels: Vec<String>,
    /// Workers.
    pub clients: usize,
    /// Seed of the random choices, for the account.
    #[serde(default)]
    pub seed: u64,
    /// When samples are meant to begin.
    #[serde(default = "closed")]
    pub pace: Pace,
    /// Length of an interval of the series.
    #[serde(default = "one")]
    pub interval_s: f64,
    /// Samples intended to begin before are counted apart.
    #[serde(default)]
    pub warmup_s: f64,
    /// Length of the measured window, where it is known beforehand.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Slower samples are counted late.
    #[serde(default)]
    pub latency_limit_ms: Option<f64>,
    /// The first so many samples are counted with the warm-up.
    #[serde(default)]
    pub burn_in: u64,
    /// Rows are stored: series.jsonl and progress show how many.
    #[serde(default)]
    pub load: bool,
    /// Folder for series.jsonl and latency.hlog; nothing is written when absent.
    #[serde(default)]
    pub out_dir: Option<PathBuf>,
}

fn closed() -> Pace {
    Pace::Closed
}
fn one() -> f64 {
    1.0
}

/// Refuse what cannot be recorded.
pub(super) fn check(spec: &RecorderSpec) -> Result<(), DriveError> {
    let refuse = |message: String, hint: &str| Err(DriveError::bad_spec(message, hint));
    if spec.labels.is_empty() || spec.clients == 0 {
        let message = "a recorder without labels or without clients".to_owned();
        return refuse(message, "give at least one of each");
    }
    let numbers = [
        ("interval_s", Some(spec.interval_s), false),
        ("warmup_s", Some(spec.warmup_s), true),
        ("duration_s", spec.duration_s, false),
        ("latency_limit_ms", spec.latency_limit_ms, false),
        ("rate_per_s", spec.pace.rate_per_s(), false),
    ];
    for (name, value, may_be_zero) in numbers {
        let bad = |v: f64| !v.is_finite() || v < 0.0 || (v == 0.0 && !may_be_zero);
        if let Some(value) = value.filter(|&v| bad(v)) {
            return refuse(
                format!("{name} is {value}"),
                "it must be a number above zero",
            );
        }
    }
    Ok(())
}

/// What a drive would have been asked; a recorder has no connection.
pub(super) fn drive_spec(spec: &RecorderSpec) -> Result<DriveSpec, DriveError> {
    let document = json!({
        "connection": {"host": "/", "port": 0, "user": "", "database": "", "sslmode": "disable"},
        "mode": "driver", "clients": spec.clients, "seed": spec.seed, "pace": spec.pace,
        "interval_s": spec.interval_s, "warmup_s": spec.warmup_s, "duration_s": spec.duration_s,
        "latency_limit_ms": spec.latency_limit_ms,
    });
    serde_json::from_value(document).map_err(|e| DriveError::bad_spec(e.to_string(), ""))
}
