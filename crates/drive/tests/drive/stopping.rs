//! Requests to stop: whatever the clients do, the run ends within its grace and the account is whole.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadstone_drive::Drive;
use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Server, done_failed, errors, finish, has_begun, number, on_both, run, script, start,
};

on_both!(
    while_it_works,
    while_it_connects,
    while_a_statement_takes_long,
    while_it_sleeps,
    while_it_waits_for_its_rate,
    while_it_comes_back,
    a_second_start_is_refused,
    a_long_sleep_does_not_outlive_the_run,
    while_a_shell_command_runs,
    a_shell_command_does_not_outlive_the_run,
    a_shell_command_holds_up_no_other_client,
    while_a_script_runs_commands_without_a_server,
);

/// How long an end may take at most, on a busy machine too; what it must not wait for takes a minute.
const SOON: Duration = Duration::from_secs(20);

/// Stop a drive a moment after it began; the account and how long the end took.
fn stop_soon(spec: &Value) -> (Value, Duration) {
    let drive = start(spec);
    while !has_begun(&drive) {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    stop_in_a_moment(&drive)
}

fn stop_in_a_moment(drive: &Drive) -> (Value, Duration) {
    std::thread::park_timeout(Duration::from_millis(200));
    let asked = now();
    drive.stop();
    let account = finish(drive);
    (account, asked.elapsed())
}

fn while_it_works(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"clients": 8, "threads": 2, "duration_s": 60.0});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < SOON, "{took:?}");
    let (done, failed) = done_failed(&account);
    assert!(done > 0 && failed == 0, "{account}");
    let lasted_ns = number(&account["end_ns"]) - number(&account["start_ns"]);
    assert!(u128::from(lasted_ns) < SOON.as_nanos());
}

fn while_it_connects(io: &str) {
    let server = Server::faulty(vec![Fault::SilentAtStartup]);
    let more = json!({"connection": {"connect_timeout_s": 60.0}, "threads": 2});
    let (account, took) = stop_in_a_moment(&start(&server.spec(io, more)));
    assert_eq!(account["state"], "interrupted");
    assert!(took < SOON, "{took:?}");
    assert_eq!(account["counts"]["scheduled"], 0);
}

fn while_a_statement_takes_long(io: &str) {
    let server = Server::faulty(vec![Fault::SilentAfter { queries: 1 }]);
    let more = json!({"timeout_s": 60.0, "duration_s": 60.0, "reconnect": true});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < SOON, "{took:?}");
    assert_eq!(done_failed(&account), (2, 2));
    assert_eq!(errors(&account), [("timeout".to_owned(), 2)].into());
    assert!(
        account["errors"][0]["message"]
            .as_str()
            .unwrap()
            .starts_with("interrupted")
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
    assert!(took < SOON, "{took:?}");
    assert_eq!(done_failed(&account), (0, 2));
    assert_eq!(account["in_doubt"], 0);
}

fn while_it_waits_for_its_rate(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"duration_s": 60.0, "pace": {"kind": "fixed", "rate_per_s": 0.1}});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < SOON, "{took:?}");
    assert_eq!(done_failed(&account), (1, 0));
}

fn while_it_comes_back(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 0 }]);
    let more = json!({"duration_s": 60.0, "reconnect": true});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < SOON, "{took:?}");
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
            .contains("already started")
    );
    finish(&drive);
}

fn a_long_sleep_does_not_outlive_the_run(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"duration_s": 0.2, "timeout_s": 0.4,
                      "scripts": script("\\sleep 60 s\nSELECT 1;\n")});
    let begun = now();
    let account = run(&server.spec(io, more));
    assert!(begun.elapsed() < SOON);
    assert_eq!(account["state"], "complete");
    assert_eq!(done_failed(&account), (0, 2));
    assert_eq!(errors(&account), [("timeout".to_owned(), 2)].into());
}

/// A script whose shell commands write their process ids into a file, and never end.
fn endless_shell(folder: &TempDir) -> (Value, PathBuf) {
    let pids = folder.path().join("pids");
    let line = format!(
        "sh -c 'echo $$ >> {}; sleep 307; sleep 307'",
        pids.display()
    );
    (script(&format!("SELECT 1;\n\\shell {line}\n")), pids)
}

/// Of all processes that wrote their ids, none runs any more.
fn assert_none_left(pids: &Path) {
    let text = std::fs::read_to_string(pids).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    for pid in text.lines() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
}

fn while_a_shell_command_runs(io: &str) {
    let (server, folder) = (Server::new(Behaviour::default()), TempDir::new().unwrap());
    let (scripts, pids) = endless_shell(&folder);
    let more = json!({"duration_s": 60.0, "timeout_s": 60.0, "scripts": scripts});
    let drive = start(&server.spec(io, more));
    while std::fs::read_to_string(&pids)
        .unwrap_or_default()
        .lines()
        .count()
        < 2
    {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    drive.stop();
    let account = finish(&drive);
    assert_eq!(account["state"], "interrupted");
    assert_eq!(done_failed(&account), (0, 2));
    assert_none_left(&pids);
}

fn a_shell_command_does_not_outlive_the_run(io: &str) {
    let (server, folder) = (Server::new(Behaviour::default()), TempDir::new().unwrap());
    let (scripts, pids) = endless_shell(&folder);
    let more = json!({"duration_s": 0.1, "timeout_s": 3.0, "scripts": scripts});
    let account = run(&server.spec(io, more));
    assert_eq!(account["state"], "complete");
    assert_eq!(done_failed(&account), (0, 2));
    assert_eq!(errors(&account), [("timeout".to_owned(), 2)].into());
    assert_none_left(&pids);
}

fn a_shell_command_holds_up_no_other_client(io: &str) {
    let server = Server::new(Behaviour::default());
    let text = "\\if :client_id = 0\n\\shell sleep 1\n\\else\nSELECT 1;\n\\endif\n";
    let more = json!({"duration_s": 0.5, "scripts": script(text)});
    let account = run(&server.spec(io, more));
    let (done, failed) = done_failed(&account);
    assert!(done > 5 && failed == 0, "{account}");
}

fn while_a_script_runs_commands_without_a_server(io: &str) {
    let server = Server::new(Behaviour::default());
    let nested = 20_000;
    let text = format!(
        "{}\\set a 1\n{}",
        "\\if 1\n".repeat(nested),
        "\\endif\n".repeat(nested)
    );
    let more = json!({"duration_s": 60.0, "clients": 8, "scripts": script(&text)});
    let (account, took) = stop_soon(&server.spec(io, more));
    assert_eq!(account["state"], "interrupted");
    assert!(took < SOON, "{took:?}");
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test takes is no figure of a run"
)]
fn now() -> Instant {
    Instant::now()
}
