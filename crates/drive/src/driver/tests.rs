//! A made-up protocol of lines drives the same workloads: nothing above the seam knows which protocol it is.

mod lines;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use self::lines::Lines;
use super::Drive;
use crate::spec::DriveSpec;

/// Serves so many connections; gives the port. Tells each statement that it runs.
fn server(connections: usize, ran: Sender<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().take(connections) {
            let ran = ran.clone();
            thread::spawn(move || serve(&stream.unwrap(), &ran));
        }
    });
    port
}

/// Answers each statement with its last word; the first that ends in `later` with an error that may be tried again.
fn serve(mut stream: &TcpStream, ran: &Sender<String>) {
    let (mut known, mut refused) = (BTreeMap::new(), false);
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let (tag, text) = line.trim_end_matches([';', ' ']).split_at(1);
        let (name, rest) = text.split_once('\t').unwrap_or((text, ""));
        let mut run = |sql: String| {
            if sql.ends_with("later") && !std::mem::replace(&mut refused, true) {
                return "elater\n".to_owned();
            }
            let word = sql.rsplit(' ').next().unwrap().to_owned();
            ran.send(sql).unwrap();
            format!("cv\nr{word}\nd\n")
        };
        let answer = match tag {
            "h" => "l\n".to_owned(),
            "Q" => run(text.to_owned()) + "a\n",
            "P" => {
                known.insert(name.to_owned(), rest.to_owned());
                "p\n".to_owned()
            }
            "E" if rest.is_empty() => run(known[name].clone()),
            "E" => run(format!("{} {rest}", known[name])),
            "S" => "a\n".to_owned(),
            _ => "?\n".to_owned(),
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// drive.json, and every statement that the server ran, in alphabetical order.
fn driven(clients: usize, more: Value) -> (Value, Vec<String>) {
    let (ran, statements) = channel();
    let mut spec = json!({
        "connection": {"host": "127.0.0.1", "port": server(clients, ran), "user": "", "database": ""},
        "clients": clients, "seed": 1,
    });
    let Value::Object(more) = more else {
        panic!("an object")
    };
    spec.as_object_mut().unwrap().extend(more);
    let spec = DriveSpec::from_json(&spec.to_string()).unwrap();
    let drive = Drive::over::<Lines>(spec).unwrap();
    drive.start().unwrap();
    let account = drive.wait(Duration::from_mins(1)).expect("it hangs");
    drop(drive); // and with it all connections: the server's threads end
    let mut statements: Vec<String> = statements.iter().collect();
    statements.sort();
    (serde_json::from_str(&account.unwrap()).unwrap(), statements)
}

#[test]
fn scripts_run_over_another_protocol() {
    for (mode, echo) in [("simple", "ECHO 7"), ("prepared", "ECHO $1 7")] {
        let script = "SELECT 7 \\gset\nECHO :v;\nTRY later;\n";
        let (account, ran) = driven(
            2,
            json!({
                "scripts": [{"name": "s", "text": script}], "mode": mode,
                "transactions_per_client": 3, "tries_max": 2,
            }),
        );
        assert_eq!(account["state"], "complete", "{account:#}");
        assert_eq!(account["counts"]["done"], 6);
        // Each connection refuses once, and its transaction is run again from its start.
        assert_eq!(
            (&account["retried"], &account["retries"]),
            (&json!(2), &json!(2))
        );
        let counts = |text: &str| ran.iter().filter(|sql| *sql == text).count();
        assert_eq!(
            (counts("SELECT 7"), counts(echo), counts("TRY later")),
            (8, 8, 6)
        );
        assert_eq!(account["statements"][2]["failed"], 2);
    }
}

#[test]
fn queries_are_answered_over_another_protocol() {
    let (account, ran) = driven(
        1,
        json!({"queries": {
            "labels": ["q"], "queries": [[0, "SELECT one"], [0, "SELECT two"], [0, "SELECT one"]],
            "answers": "rows",
        }}),
    );
    assert_eq!(account["counts"]["done"], 3, "{account:#}");
    let answers = &account["queries"]["answers"];
    assert_eq!(
        (&answers[0]["rows"], &answers[1]["rows"]),
        (&json!([["one"]]), &json!([["two"]]))
    );
    assert_eq!(ran, ["SELECT one", "SELECT one", "SELECT two"]);
}

#[test]
fn a_load_over_a_protocol_without_one_ends_with_the_reason() {
    let (account, _) = driven(
        1,
        json!({"load": {"data": {
            "kind": "native", "use_case": "devops", "seed": 1, "scale": 1, "start_ns": 0,
            "end_ns": 20_000_000_000_u64, "interval_ns": 10_000_000_000_u64,
        }}}),
    );
    assert_eq!(account["state"], "aborted");
    let reason = account["reason"].as_str().unwrap();
    assert!(reason.contains("not support bulk loads"), "{reason}");
}
