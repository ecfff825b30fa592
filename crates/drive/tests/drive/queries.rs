//! Lists of queries: taken once each, counted by label, their answers digested and compared.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use loadstone_drive::DriveSpec;
use loadstone_wire::postgres::{Behaviour, Fault, Reply};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    Server, done_failed, drive, errors, finish, message, number, on_both, ready, run, spec, start,
};

on_both!(
    each_query_of_the_list_is_run_once_and_counted_under_its_label,
    a_file_gives_the_same_as_a_list,
    a_burn_in_is_run_and_left_out,
    the_list_begins_again_until_the_time_is_over,
    failed_queries_are_counted_and_the_list_goes_on,
    queries_of_a_lost_client_are_run_by_another,
    a_text_is_parsed_once_on_a_connection,
    an_answer_that_changes_is_an_error_of_its_own,
    rows_can_be_kept_instead_of_digests,
    a_probe_writes_down_each_answer,
    an_open_loop_keeps_response_apart_from_service,
);

fn two_rows() -> Behaviour {
    Behaviour {
        reply: Reply::rows(
            &["Name", "note"],
            &[&[Some("a"), Some("x")], &[Some("b"), None]],
        ),
        ..Behaviour::default()
    }
}

/// Ten queries of two labels, three texts.
fn list() -> Value {
    let query = |n: usize| json!([n % 2, format!("select {}", n % 3)]);
    json!((0..10).map(query).collect::<Vec<_>>())
}

fn queries(more: &Value) -> Value {
    let mut queries = json!({"labels": ["even", "odd"], "queries": list()});
    for (key, value) in more.as_object().unwrap() {
        queries[key] = value.clone();
    }
    queries
}

/// A drive of these queries on this server, which ends with the list.
fn asking(server: &Server, io: &str, queries: &Value) -> Value {
    let mut spec = server.spec(io, json!({"duration_s": 1.0}));
    ready_for(&mut spec, queries);
    spec
}

fn ready_for(spec: &mut Value, queries: &Value) {
    let spec = spec.as_object_mut().unwrap();
    for key in ["scripts", "mode", "duration_s", "transactions_per_client"] {
        spec.remove(key);
    }
    spec.insert("queries".to_owned(), queries.clone());
}

fn label(account: &Value, at: usize) -> &Value {
    &account["queries"]["labels"][at]
}

fn each_query_of_the_list_is_run_once_and_counted_under_its_label(io: &str) {
    let server = Server::new(two_rows());
    let account = run(&asking(&server, io, &queries(&json!({}))));
    assert_eq!(account["state"], "complete");
    assert_eq!(done_failed(&account), (10, 0));
    assert_eq!(account["mode"], "prepared");
    for (at, name) in ["even", "odd"].into_iter().enumerate() {
        assert_eq!(label(&account, at)["label"], name);
        assert_eq!(label(&account, at)["counts"]["done"], 5);
        assert_eq!(label(&account, at)["rows"], 10);
        assert_eq!(label(&account, at)["service"]["count"], 5);
        assert_eq!(account["scripts"][at]["name"], name);
        assert_eq!(account["statements"][at]["service"]["count"], 5);
    }
    let answers = account["queries"]["answers"].as_array().unwrap();
    let numbers: Vec<u64> = answers.iter().map(|a| number(&a["query"])).collect();
    assert_eq!(numbers.len(), 3, "one for each text: {answers:?}");
    let digest = &answers[0]["digest"];
    assert_eq!(digest["rows"], 2);
    assert_eq!(digest["columns"][0]["name"], "name");
    assert_eq!(
        digest["columns"][0]["crc"],
        3_904_355_907_u64 + 1_908_338_681
    );
    assert_eq!(digest["columns"][1]["count"], 1);
    assert_eq!(account["queries"]["answers_left_out"], 0);
}

fn write_lines(folder: &Path, lines: &[String]) -> String {
    let path = folder.join("queries.jsonl");
    fs::write(&path, lines.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn a_file_gives_the_same_as_a_list(io: &str) {
    let server = Server::new(two_rows());
    let folder = TempDir::new().unwrap();
    let list = list();
    let lines: Vec<String> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|q| format!("{q}\n"))
        .collect();
    let path = write_lines(folder.path(), &lines);
    let from_file =
        queries(&json!({"queries": null, "file": path, "loop": true, "max_queries": 25}));
    let account = run(&asking(&server, io, &from_file));
    assert_eq!(done_failed(&account), (25, 0));
    assert_eq!(account["queries"]["total"], 10);
    assert_eq!(label(&account, 0)["counts"]["done"], 13);
    let from_list = run(&asking(&server, io, &queries(&json!({}))));
    let digests = |account: &Value| -> Vec<Value> {
        let answers = account["queries"]["answers"].as_array().unwrap();
        answers.iter().map(|a| a["digest"].clone()).collect()
    };
    assert_eq!(digests(&account), digests(&from_list));
}

#[test]
fn lists_that_cannot_be_run_are_refused_by_place() {
    let folder = TempDir::new().unwrap();
    let good = || "[0, \"select 1\"]\n".to_owned();
    let files = [
        (vec![good(), "[0, select]\n".to_owned()], "line 2"),
        (
            vec![good(), good(), "[2, \"select 1\"]\n".to_owned()],
            "label 2 is not among the 2",
        ),
        (
            vec![good(), "[1, \" \"]".to_owned()],
            "line 2: its text is empty",
        ),
        (vec![good(), "\n".to_owned()], "line 2"),
        (vec![], "contains no query"),
    ];
    let mut cases: Vec<(Value, String)> = Vec::new();
    for (at, (lines, words)) in files.into_iter().enumerate() {
        let place = folder.path().join(at.to_string());
        fs::create_dir(&place).unwrap();
        let path = write_lines(&place, &lines);
        cases.push((json!({"queries": null, "file": path}), words.to_owned()));
    }
    cases.extend([
        (
            json!({"queries": null, "file": "/nowhere/q"}),
            "/nowhere/q".to_owned(),
        ),
        (json!({"queries": [[0, "select '\0'"]]}), "NUL".to_owned()),
        (json!({"file": "x"}), "one source".to_owned()),
        (json!({"queries": []}), "contains no query".to_owned()),
        (json!({"burn_in": 10}), "burn_in is 10".to_owned()),
        (
            json!({"burn_in": 3, "max_queries": 3}),
            "max_queries".to_owned(),
        ),
        (json!({"loop": true}), "never ends".to_owned()),
        (
            json!({"queries": null, "probe": {"sql": "select 1"}}),
            "no folder for its answers".to_owned(),
        ),
    ]);
    for (more, words) in cases {
        let mut document = spec("/nowhere", 1, "auto", json!({}));
        ready_for(&mut document, &queries(&more));
        let parsed = DriveSpec::from_json(&document.to_string()).unwrap();
        let error = loadstone_drive::Drive::new(parsed)
            .err()
            .expect("it should be refused");
        assert!(error.to_string().contains(&words), "{more}: {error}");
    }
}

fn a_burn_in_is_run_and_left_out(io: &str) {
    let server = Server::new(two_rows());
    let account = run(&asking(
        &server,
        io,
        &queries(&json!({"burn_in": 4, "max_queries": 9})),
    ));
    assert_eq!(account["counts"]["done"], 5);
    assert_eq!(account["warmup_counts"]["done"], 4);
    assert_eq!(account["response"]["count"], 5);
    let counted = number(&label(&account, 0)["counts"]["done"])
        + number(&label(&account, 1)["counts"]["done"]);
    assert_eq!(counted, 5);
}

fn the_list_begins_again_until_the_time_is_over(io: &str) {
    let server = Server::new(two_rows());
    let mut spec = asking(&server, io, &queries(&json!({"loop": true})));
    spec["duration_s"] = json!(0.3);
    let account = run(&spec);
    assert_eq!(account["state"], "complete");
    assert!(done_failed(&account).0 > 20, "{account}");
    assert_eq!(account["queries"]["answers"].as_array().unwrap().len(), 3);
}

fn failed_queries_are_counted_and_the_list_goes_on(io: &str) {
    let server = Server::new(Behaviour {
        faults: vec![Fault::ErrorEvery {
            n: 5,
            sqlstate: *b"57014",
            message: "canceling statement due to user request".to_owned(),
        }],
        ..two_rows()
    });
    let mut spec = asking(&server, io, &queries(&json!({})));
    spec["clients"] = json!(1);
    let account = run(&spec);
    assert_eq!(done_failed(&account), (8, 2));
    assert_eq!(errors(&account), [("57014".to_owned(), 2)].into());
    assert_eq!(account["state"], "complete");
    let failed = number(&label(&account, 0)["counts"]["failed"])
        + number(&label(&account, 1)["counts"]["failed"]);
    assert_eq!(failed, 2);
}

fn queries_of_a_lost_client_are_run_by_another(io: &str) {
    let server = Server::new(Behaviour {
        faults: vec![Fault::CloseAfter { queries: 3 }],
        ..two_rows()
    });
    let mut spec = asking(&server, io, &queries(&json!({})));
    spec["reconnect"] = json!(true);
    let account = run(&spec);
    let (done, failed) = done_failed(&account);
    assert_eq!(done + failed, 10, "{account}");
    assert!(failed >= 1 && done >= 6, "{account}");
}

/// A server for the extended protocol: one column of the type's binary or text form, one row a query.
struct Extended {
    port: u16,
    /// Types of messages, in order, over all connections.
    tags: Arc<Mutex<String>>,
}

impl Extended {
    /// `answer` is given the text and how often it was run, and gives the value of an `int8`.
    fn new(answer: impl Fn(&str, usize) -> i64 + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let tags = Arc::new(Mutex::new(String::new()));
        let (log, answer) = (Arc::clone(&tags), Arc::new(answer));
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                // A client that leaves ends it.
                thread::spawn(move || converse(stream, &log, answer.as_ref()).err());
            }
        });
        Self { port, tags }
    }

    fn spec(&self, io: &str, queries: &Value) -> Value {
        let mut spec = spec("127.0.0.1", self.port, io, json!({"clients": 1}));
        spec["connection"]["sslmode"] = json!("disable");
        ready_for(&mut spec, queries);
        spec
    }
}

fn int8_column() -> Vec<u8> {
    let mut body = b"\0\x01count\0".to_vec();
    body.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0, 8, 0xff, 0xff, 0xff, 0xff, 0, 1,
    ]);
    message(b'T', &body)
}

fn int8_row(value: i64) -> Vec<u8> {
    let body = [&[0, 1, 0, 0, 0, 8][..], &value.to_be_bytes()].concat();
    message(b'D', &body)
}

fn converse(
    mut stream: TcpStream,
    tags: &Mutex<String>,
    answer: &(dyn Fn(&str, usize) -> i64 + Send + Sync),
) -> std::io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup)?;
    stream.write_all(&[message(b'R', &[0, 0, 0, 0]), ready(b'I')].concat())?;
    let mut statements: BTreeMap<String, String> = BTreeMap::new();
    let mut runs: BTreeMap<String, usize> = BTreeMap::new();
    let mut bound = String::new();
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let [tag, a, b, c, d] = header;
        let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize - 4];
        stream.read_exact(&mut body)?;
        tags.lock().unwrap().push(char::from(tag));
        let texts: Vec<String> = body
            .split(|byte| *byte == 0)
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect();
        let reply = match tag {
            b'P' => {
                statements.insert(texts[0].clone(), texts[1].clone());
                message(b'1', &[])
            }
            b'B' => {
                bound.clone_from(&statements[&texts[1]]);
                message(b'2', &[])
            }
            b'D' => int8_column(),
            b'E' => {
                let run = runs.entry(bound.clone()).or_default();
                *run += 1;
                [int8_row(answer(&bound, *run)), message(b'C', b"SELECT 1\0")].concat()
            }
            b'S' => ready(b'I'),
            _ => Vec::new(),
        };
        stream.write_all(&reply)?;
    }
}

fn a_text_is_parsed_once_on_a_connection(io: &str) {
    let server = Extended::new(|_, _| 7);
    let list = json!([[0, "select a"], [0, "select b"], [0, "select a"]]);
    let account = finish(&start(
        &server.spec(io, &queries(&json!({"queries": list}))),
    ));
    assert_eq!(done_failed(&account), (3, 0));
    assert_eq!(
        server.tags.lock().unwrap().trim_end_matches('X'),
        "PBDESPBDESBDES"
    );

    let server = Extended::new(|_, _| 7);
    let list = json!([[0, "select a"], [0, "select a"]]);
    let unkept = queries(&json!({"queries": list, "statements_max": 0}));
    let account = finish(&start(&server.spec(io, &unkept)));
    assert_eq!(account["mode"], "extended");
    assert_eq!(
        server.tags.lock().unwrap().trim_end_matches('X'),
        "PBDESPBDES"
    );
}

fn an_answer_that_changes_is_an_error_of_its_own(io: &str) {
    let grows = |sql: &str, run: usize| {
        if sql == "grows" {
            i64::try_from(run).unwrap()
        } else {
            1
        }
    };
    let list = json!([[0, "rests"], [1, "grows"]]);
    let twice = |more: Value| {
        let mut all = json!({"queries": list, "loop": true, "max_queries": 6});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        finish(&start(&Extended::new(grows).spec(io, &queries(&all))))
    };
    let account = twice(json!({}));
    assert_eq!(done_failed(&account), (4, 2));
    assert_eq!(errors(&account), [("answer".to_owned(), 2)].into());
    let words = account["errors"][0]["message"].as_str().unwrap();
    assert!(
        words
            .contains("query 1 returned another answer than before: column 1 (count): sums differ"),
        "{words}"
    );
    assert_eq!(
        account["queries"]["answers"][1]["digest"]["columns"][0]["sum"],
        1.0
    );
    // Where rows come in meanwhile, answers may grow.
    assert_eq!(done_failed(&twice(json!({"check_repeats": false}))), (6, 0));
    assert_eq!(done_failed(&twice(json!({"answers": "none"}))), (6, 0));
}

fn rows_can_be_kept_instead_of_digests(io: &str) {
    let server = Server::new(two_rows());
    let kept = queries(&json!({"answers": "rows", "rows_max": 1, "answers_max": 2}));
    let account = run(&asking(&server, io, &kept));
    let answers = account["queries"]["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["columns"], json!(["Name", "note"]));
    assert_eq!(answers[0]["rows"], json!([["a", "x"]]));
    assert_eq!(answers[0]["row_count"], 2);
    assert!(number(&account["queries"]["answers_left_out"]) >= 1);
}

fn a_probe_writes_down_each_answer(io: &str) {
    let server = Extended::new(|_, run| 1_451_606_400_000_000 + i64::try_from(run).unwrap());
    let folder = TempDir::new().unwrap();
    let mut spec = server.spec(io, &json!({"probe": {"sql": "select max(time)"}}));
    spec["out_dir"] = json!(folder.path());
    spec["duration_s"] = json!(0.5);
    spec["pace"] = json!({"kind": "fixed", "rate_per_s": 40.0});
    let account = finish(&start(&spec));
    let text = fs::read_to_string(folder.path().join("probe.jsonl")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len() as u64, done_failed(&account).0);
    assert!(lines.len() >= 10, "{text}");
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(number(&line["value"]), 1_451_606_400_000_001 + at as u64);
        assert!(number(&line["start_ns"]) < number(&line["end_ns"]));
    }
    // Once: the rest is Bind, Describe, Execute, Sync.
    assert_eq!(server.tags.lock().unwrap().matches('P').count(), 1);
}

fn an_open_loop_keeps_response_apart_from_service(io: &str) {
    let server = Server::new(two_rows());
    let mut spec = asking(&server, io, &queries(&json!({"loop": true})));
    spec["duration_s"] = json!(0.4);
    spec["pace"] = json!({"kind": "fixed", "rate_per_s": 100.0});
    let account = finish(&drive_of(&spec));
    let (done, _) = done_failed(&account);
    assert!((30..=40).contains(&done), "{account}");
    assert_eq!(
        number(&label(&account, 0)["response"]["count"])
            + number(&label(&account, 1)["response"]["count"]),
        done
    );
    let mean = |kind: &str| label(&account, 0)[kind]["mean_ns"].as_f64().unwrap();
    assert!(mean("response") >= mean("service"));
    assert!(account["lag"]["count"].as_u64() > Some(0));
}

fn drive_of(spec: &Value) -> loadstone_drive::Drive {
    let drive = drive(spec);
    drive.start().unwrap();
    drive
}
