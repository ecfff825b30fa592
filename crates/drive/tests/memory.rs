//! What a connection costs the driver in memory, measured in a process that does nothing else; and ten thousand of them
//! at work, whose open files need a process of their own.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop at the first surprise, and tells what it found"
)]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadstone_drive::null_server::NullServer;
use loadstone_drive::{Drive, DriveSpec};
use loadstone_wire::postgres::Behaviour;
use serde_json::{Value, json};
use tempfile::TempDir;

const FEW: u64 = 10;
const MANY: u64 = 10_000;
/// 10,000 connections are to need less than 200 MB.
const LIMIT_BYTES: u64 = 20_000;
const FEW_ROWS: u64 = 100_000;
const MANY_ROWS: u64 = 1_000_000;
/// What ten times the rows may cost a load: nothing but the accidents of its threads' timing.
const LOAD_LIMIT_BYTES: u64 = 8_000_000;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("drive-one") {
        return drive_one();
    }
    for io in ["io_uring", "epoll"] {
        let (few, many) = (resident_bytes_with(FEW, io), resident_bytes_with(MANY, io));
        let each = many.saturating_sub(few) / (MANY - FEW);
        println!("{io}: {each} bytes per connection, {few} bytes with {FEW} of them");
        assert!(each < LIMIT_BYTES, "{io}: {each} bytes per connection");
    }
    few_starts_for_many_clients();
    let (few, many) = (
        resident_bytes_loading(FEW_ROWS),
        resident_bytes_loading(MANY_ROWS),
    );
    println!("load: {few} bytes with {FEW_ROWS} rows, {many} with {MANY_ROWS}");
    assert!(
        many < few + LOAD_LIMIT_BYTES,
        "a load's memory grows with its rows: {few} to {many} bytes"
    );
}

/// Starts at less than one a second, and ten thousand clients that could make them: on time, at little cost.
fn few_starts_for_many_clients() {
    let more = json!({"duration_s": 3.0, "pace": {"kind": "fixed", "rate_per_s": 0.5}});
    let account = drive_with(MANY, "io_uring", &more);
    // At 0 s and at 2 s.
    assert_eq!(account["counts"]["done"], 2, "{account}");
    assert_eq!(account["lag"]["count"], 2);
    let cpu = &account["client_cpu"];
    let busy_ns = cpu["user_ns"].as_u64().unwrap() + cpu["system_ns"].as_u64().unwrap();
    assert!(busy_ns < 1_000_000_000, "{cpu}");
    let turns = account["loop"]["iterations"].as_u64().unwrap();
    assert!(turns < 1_000, "{turns} turns");
}

/// The child: drive what standard input says, and tell when transactions flow.
fn drive_one() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let drive = Drive::new(DriveSpec::from_json(&text).unwrap()).unwrap();
    drive.start().unwrap();
    let account = drive.wait(Duration::from_mins(2)).unwrap().unwrap();
    let mut account: Value = serde_json::from_str(&account).unwrap();
    assert_eq!(account["counts"]["failed"], 0, "{account}");
    account["peak_bytes"] = json!(status_bytes(std::process::id(), "VmHWM:"));
    std::io::stdout()
        .write_all(account.to_string().as_bytes())
        .unwrap();
}

/// Most memory that a process which drives so many clients ever had in use.
fn resident_bytes_with(clients: u64, io: &str) -> u64 {
    let more = json!({"duration_s": 0.5, "ramp_up_s": 0.2});
    let account = drive_with(clients, io, &more);
    let counts = &account["counts"];
    assert!(counts["done"].as_u64().unwrap() >= clients, "{counts}");
    // What is asleep at the end wakes up, and ends: late only for want of CPU.
    let lasted_ns = account["end_ns"].as_u64().unwrap() - account["start_ns"].as_u64().unwrap();
    assert!(lasted_ns < 20_000_000_000, "{lasted_ns} ns");
    assert!(account["response"]["min_ns"].as_u64().unwrap() >= 100_000_000);
    account["peak_bytes"].as_u64().unwrap()
}

/// The account of a drive by a process of its own, each client of which thinks after its statement.
fn drive_with(clients: u64, io: &str, more: &Value) -> Value {
    let folder = TempDir::new().unwrap();
    let room = usize::try_from(clients).unwrap();
    let server = NullServer::start(Behaviour::default(), folder.path(), room).unwrap();
    let mut spec = json!({
        "connection": {"host": folder.path(), "port": server.port(), "user": "tester",
                       "database": "test", "connect_timeout_s": 20.0},
        "scripts": [{"name": "think", "text": "SELECT 1;\n\\sleep 100 ms\n"}], "mode": "prepared",
        "clients": clients, "threads": 1, "seed": 1, "io": io,
    });
    let spec_fields = spec.as_object_mut().unwrap();
    spec_fields.extend(more.as_object().unwrap().clone());
    account_of(&spec)
}

/// Most memory that a process which loads so many rows ever had in use.
fn resident_bytes_loading(rows: u64) -> u64 {
    let folder = TempDir::new().unwrap();
    let server = NullServer::start(Behaviour::default(), folder.path(), 10).unwrap();
    let spec = json!({
        "connection": {"host": folder.path(), "port": server.port(), "user": "tester", "database": "test"},
        "load": {"data": {"kind": "tsbs", "use_case": "cpu-only", "seed": 1, "scale": 1000, "start_ns": 0,
                          "end_ns": i64::MAX / 2, "interval_ns": 10_000_000_000_i64},
                 "limit_rows": rows, "batch_rows": 5000},
        "clients": 4, "threads": 1, "seed": 1,
    });
    account_of(&spec)["peak_bytes"].as_u64().unwrap()
}

/// Run a specification in a process of its own.
fn account_of(spec: &Value) -> Value {
    let mut child = spawn_self();
    let mut input = child.stdin.take().unwrap();
    input.write_all(spec.to_string().as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{spec}: {:?}", output.status);
    serde_json::from_slice(&output.stdout).unwrap()
}

fn spawn_self() -> Child {
    Command::new(std::env::current_exe().unwrap())
        .arg("drive-one")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A line of /proc/PID/status that is given in kB, in bytes.
fn status_bytes(process: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with(field)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}
