//! The ledger of commits: what a client books, whatever becomes of its server.

use loadstone_drive::{Drive, DriveError, DriveSpec};
use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, finish, on_both, run, script, start};

on_both!(
    every_acknowledged_commit_is_booked,
    a_commit_without_answer_stays_sent,
    a_transaction_that_breaks_before_its_commit_is_refused,
    a_commit_that_fails_is_refused,
    a_commit_that_is_tried_again_is_one,
    an_error_behind_a_commit_in_a_pipeline_leaves_it_open,
    the_next_drive_goes_on,
);

const INSERT: &str =
    "insert into ledger values (:loadstone_client, :loadstone_seq, :loadstone_crc)";

fn with_ledger(folder: &TempDir, more: &Value) -> Value {
    let mut spec = json!({"ledger": {"folder": folder.path(), "run": 5, "insert": INSERT}});
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

/// States of a client's records, and whether each has a time.
fn booked(folder: &TempDir, client: usize) -> Vec<(u8, bool)> {
    let bytes = std::fs::read(folder.path().join(format!("client-{client}.ledger"))).unwrap();
    bytes[64..]
        .chunks_exact(16)
        .map(|record| (record[0], record[8..] != [0; 8]))
        .take_while(|&(state, _)| state != 0)
        .collect()
}

fn every_acknowledged_commit_is_booked(io: &str) {
    let server = Server::new(Behaviour::default());
    for mode in ["simple", "extended", "prepared"] {
        let folder = TempDir::new().unwrap();
        let account = run(&server.spec(io, with_ledger(&folder, &json!({"mode": mode}))));
        assert_eq!(account["state"], "complete", "{account}");
        assert_eq!(booked(&folder, 0), [(3, true); 10], "{mode}");
        assert_eq!(booked(&folder, 1), [(3, true); 10], "{mode}");
    }
}

/// Each transaction is four queries: BEGIN, the script's, the ledger's, COMMIT.
fn against(io: &str, fault: Fault, more: &Value) -> (Value, Vec<(u8, bool)>) {
    let (server, folder) = (Server::faulty(vec![fault]), TempDir::new().unwrap());
    let mut more = with_ledger(&folder, more);
    more["clients"] = json!(1);
    (run(&server.spec(io, more)), booked(&folder, 0))
}

fn a_commit_without_answer_stays_sent(io: &str) {
    let (account, found) = against(io, Fault::CloseAfter { queries: 31 }, &json!({}));
    assert_eq!(account["in_doubt"], 1);
    assert_eq!(found, [vec![(3, true); 7], vec![(2, false)]].concat());
}

fn a_transaction_that_breaks_before_its_commit_is_refused(io: &str) {
    let (account, found) = against(io, Fault::CloseAfter { queries: 30 }, &json!({}));
    assert_eq!(account["in_doubt"], 1, "the driver asks no more than that");
    assert_eq!(found, [vec![(3, true); 7], vec![(4, false)]].concat());
}

fn errors_every(n: u64, sqlstate: [u8; 5]) -> Fault {
    let message = "no".to_owned();
    Fault::ErrorEvery {
        n,
        sqlstate,
        message,
    }
}

fn a_commit_that_fails_is_refused(io: &str) {
    let (_, found) = against(io, errors_every(8, *b"23505"), &json!({}));
    assert_eq!(found, [(3, true), (4, false)].repeat(5));
}

fn a_commit_that_is_tried_again_is_one(io: &str) {
    // Of the second transaction the COMMIT fails, then it takes four queries more.
    let more = json!({"tries_max": 2, "transactions_per_client": 3});
    let (account, found) = against(io, errors_every(8, *b"40001"), &more);
    assert_eq!(account["counts"]["failed"], 0, "{account}");
    assert_eq!(found, [(3, true); 3]);
}

fn an_error_behind_a_commit_in_a_pipeline_leaves_it_open(io: &str) {
    let text = "\\startpipeline\nbegin;\nselect 1;\ncommit;\nselect 2;\n\\endpipeline\n";
    // begin, select, insert, commit, and the fifth fails.
    let more = json!({"scripts": script(text), "mode": "extended", "transactions_per_client": 1});
    let (account, found) = against(io, errors_every(5, *b"22012"), &more);
    assert_eq!(account["counts"]["failed"], 1, "{account}");
    assert_eq!(found, [(2, false)]);
}

fn the_next_drive_goes_on(io: &str) {
    let (server, folder) = (Server::new(Behaviour::default()), TempDir::new().unwrap());
    let spec = server.spec(io, with_ledger(&folder, &json!({})));
    run(&spec);
    run(&spec);
    assert_eq!(booked(&folder, 1), [(3, true); 20]);
}

fn refused_spec(spec: &Value) -> DriveError {
    DriveSpec::from_json(&spec.to_string())
        .and_then(Drive::new)
        .map(drop)
        .unwrap_err()
}

#[test]
fn what_has_no_commits_has_no_ledger() {
    let (server, folder) = (Server::new(Behaviour::default()), TempDir::new().unwrap());
    let more = json!({"messages": {}, "transactions_per_client": 1});
    let error = refused_spec(&server.spec("epoll", with_ledger(&folder, &more)));
    assert!(error.to_string().contains("ledger"), "{error}");
}

#[test]
fn the_ledger_of_another_run_is_refused_before_anything_begins() {
    let (server, folder) = (Server::new(Behaviour::default()), TempDir::new().unwrap());
    let mut spec = server.spec("epoll", with_ledger(&folder, &json!({})));
    finish(&start(&spec));
    spec["ledger"]["run"] = json!(6);
    let error = refused_spec(&spec);
    assert!(error.to_string().contains("another run"), "{error}");
}
