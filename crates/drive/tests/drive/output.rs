//! The files of a drive.

use std::path::Path;

use loadstone_drive::{Drive, DriveSpec};
use loadstone_wire::postgres::Behaviour;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, done_failed, number, on_both, run, script};

on_both!(
    every_file_says_the_same,
    a_full_disk_spoils_the_files_and_not_the_run,
    a_folder_that_cannot_be_written_is_refused_at_once,
);

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn every_file_says_the_same(io: &str) {
    let server = Server::new(Behaviour::default());
    let out = TempDir::new().unwrap();
    let more = json!({"clients": 4, "threads": 2, "warmup_s": 0.15, "duration_s": 0.5,
                      "interval_s": 0.1, "out_dir": out.path(),
                      "scripts": script("SELECT 1;\nSELECT 2;\n"),
                      "pace": {"kind": "fixed", "rate_per_s": 1000.0}});
    let account = run(&server.spec(io, more));
    assert_eq!(account["output_error"], Value::Null);
    let series = lines(&out.path().join("series.jsonl"));
    assert!(series.len() >= 7, "{} intervals", series.len());
    assert_eq!(series.iter().filter(|row| row["warmup"] == true).count(), 2);
    for kind in ["done", "failed", "skipped", "dropped"] {
        let sum: u64 = series.iter().map(|row| number(&row[kind])).sum();
        let total = number(&account["counts"][kind]) + number(&account["warmup_counts"][kind]);
        assert_eq!(sum, total, "{kind}");
    }
    for pair in series.windows(2) {
        assert_eq!(pair[0]["end_ns"], pair[1]["start_ns"]);
    }
    assert_eq!(series[0]["start_ns"], account["start_ns"]);
    assert_eq!(series.last().unwrap()["end_ns"], account["end_ns"]);
    assert_eq!(series[3]["connected"], 4);
    let log = std::fs::read_to_string(out.path().join("latency.hlog")).unwrap();
    for tag in ["response", "service", "statement-0.0", "statement-0.1"] {
        assert!(log.contains(&format!("Tag={tag},")), "{tag}");
        assert!(log.contains(&format!("Tag=warmup-{tag},")), "warmup-{tag}");
    }
    assert!(done_failed(&account).0 > 400, "{account}");
}

fn a_full_disk_spoils_the_files_and_not_the_run(io: &str) {
    let server = Server::new(Behaviour::default());
    let out = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/dev/full", out.path().join("series.jsonl")).unwrap();
    let more = json!({"duration_s": 0.4, "interval_s": 0.1, "out_dir": out.path()});
    let account = run(&server.spec(io, more));
    assert_eq!(account["state"], "complete");
    let words = account["output_error"].as_str().unwrap();
    assert!(
        words.contains("series.jsonl") && words.contains("No space left"),
        "{words}"
    );
    assert!(done_failed(&account).0 > 100);
}

fn a_folder_that_cannot_be_written_is_refused_at_once(io: &str) {
    let server = Server::new(Behaviour::default());
    let spec = server.spec(io, json!({"out_dir": "/proc/nowhere"}));
    let drive = Drive::new(DriveSpec::from_json(&spec.to_string()).unwrap()).unwrap();
    let error = drive.start().unwrap_err();
    assert!(
        error.to_string().contains("/proc/nowhere/latency.hlog"),
        "{error}"
    );
    assert!(error.hint().contains("--out"));
}
