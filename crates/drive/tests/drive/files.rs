//! Loads of rows that are in files: sent as they are, each file's shape checked.

use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use loadstone_drive::{Drive, DriveSpec};
use loadstone_wire::postgres::Behaviour;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Server, number, on_both, run};
use crate::load::{assert_every_batch, assert_ledger, into_sink, into_store};
use crate::store::{Store, Trouble};

on_both!(
    a_row_of_another_shape_fails_the_load_in_order,
    the_sink_takes_every_format,
);

/// Files of so many lines of two fields each.
fn text_files(folder: &Path, lengths: &[usize]) -> Vec<PathBuf> {
    let files = lengths.iter().enumerate();
    let write = |(file, &length): (usize, &usize)| {
        let path = folder.join(format!("rows-{file}.text"));
        let lines: Vec<String> = (0..length)
            .map(|row| format!("{file}\trow {row}\n"))
            .collect();
        std::fs::write(&path, lines.concat()).unwrap();
        path
    };
    files.map(write).collect()
}

/// A load of these files.
fn load(format: &str, paths: &[PathBuf], more: &Value) -> Value {
    let method = if format == "binary" {
        "copy_binary"
    } else {
        "copy_text"
    };
    let mut load = json!({
        "data": {"kind": "files", "format": format, "paths": paths, "columns": 2},
        "method": method, "tables": {"test": {"name": "\"test\"", "columns": ["a", "b"]}},
    });
    for (key, value) in more.as_object().unwrap() {
        if key == "data" {
            for (key, value) in value.as_object().unwrap() {
                load["data"][key] = value.clone();
            }
        } else {
            load[key] = value.clone();
        }
    }
    load
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_row_of_every_file_arrives_once(
        lengths in prop::collection::vec(0_usize..400, 1..4), batch_rows in 1_usize..200, step_rows in 0_usize..500,
        clients in 1_usize..4, unfinished: bool, passed in 0_u64..4,
    ) {
        let folder = TempDir::new().unwrap();
        let files = text_files(folder.path(), &lengths);
        let mut wanted: Vec<Vec<u8>> = Vec::new();
        for path in &files {
            let mut text = std::fs::read(path).unwrap();
            if unfinished {
                text.pop();
                std::fs::write(path, &text).unwrap();
            }
            wanted.extend(text.split_inclusive(|&byte| byte == b'\n').map(Vec::from));
        }
        wanted.sort_unstable();
        let store = Store::new(Trouble::default());
        let more = json!({"batch_rows": batch_rows.max(5), "step_rows": step_rows});
        let account = run(&into_store(&store, "epoll", &load("text", &files, &more), &json!({"clients": clients})));
        prop_assert_eq!(&account["state"], "complete");
        let (tables, ledger) = store.content();
        prop_assert_eq!(tables.get("test").cloned().unwrap_or_default(), wanted.clone());
        prop_assert_eq!(number(&account["load"]["rows"]), wanted.len() as u64);
        prop_assert_eq!(number(&account["load"]["tables"][0]["rows"]), wanted.len() as u64);
        prop_assert_eq!(&account["load"]["tables"][0]["fingerprint"], &Value::Null);
        let bytes: usize = wanted.iter().map(Vec::len).sum();
        prop_assert_eq!(number(&account["load"]["logical_bytes"]), bytes as u64);
        let numbers = assert_every_batch(&account);
        // What was stored before is passed over: batch for batch the rest is the same.
        let other = Store::new(Trouble::default());
        let skip: Vec<Value> = numbers.iter().filter(|n| *n % 4 == passed).map(|n| json!([n, n])).collect();
        let left = numbers.len() - skip.len();
        let more = json!({"batch_rows": batch_rows.max(5), "step_rows": step_rows, "skip": skip});
        let account = run(&into_store(&other, "epoll", &load("text", &files, &more), &json!({"clients": clients})));
        prop_assert_eq!(&account["state"], "complete");
        let (_, rest) = other.content();
        let expected: Vec<_> = ledger.into_iter().filter(|(n, _)| n % 4 != passed).collect();
        prop_assert_eq!(rest, expected);
        prop_assert_eq!(number(&account["load"]["batches"]), left as u64);
    }
}

fn a_row_of_another_shape_fails_the_load_in_order(io: &str) {
    let folder = TempDir::new().unwrap();
    let files = text_files(folder.path(), &[3000, 10]);
    let mut text = std::fs::read(&files[0]).unwrap();
    text.extend_from_slice(b"one\ttwo\tthree\n");
    std::fs::write(&files[0], &text).unwrap();
    let store = Store::new(Trouble::default());
    let spec = into_store(
        &store,
        io,
        &load("text", &files, &json!({"batch_rows": 500})),
        &json!({}),
    );
    let account = run(&spec);
    assert_eq!(account["state"], "aborted");
    let reason = account["reason"].as_str().unwrap();
    assert!(reason.contains("rows-0.text: row 3001 (byte "), "{reason}");
    assert!(
        reason.contains("it has 3 fields, but 2 are needed"),
        "{reason}"
    );
    // What came before is stored, and nothing after.
    assert_ledger(&store, &account);
    assert_eq!(account["load"]["rows"], 3000);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn the_sink_takes_every_format(io: &str) {
    let server = Server::new(Behaviour::default());
    let folder = TempDir::new().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        vec![path]
    };
    let tuple = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";
    let binary = [
        b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".as_slice(),
        &tuple.repeat(9),
        b"\xff\xff",
    ]
    .concat();
    let csv = b"x,y\r\n\"a,\n\",b\r\nc,\r\n".as_slice();
    for (format, bytes, more, rows) in [
        ("binary", binary.as_slice(), json!({"batch_rows": 4}), 9),
        ("csv", csv, json!({"data": {"header": true}}), 2),
        ("text", b"a\tb\n".as_slice(), json!({}), 1),
    ] {
        let packed = gzip(bytes);
        for bytes in [bytes, &packed] {
            let files = write(format, bytes);
            let account = run(&into_sink(
                &server,
                io,
                &load(format, &files, &more),
                &json!({}),
            ));
            assert_eq!(account["state"], "complete", "{account}");
            assert_eq!(account["load"]["rows"], rows, "{format}");
            assert_eq!(account["load"]["source"]["exhausted"], true);
        }
    }
}

#[test]
fn files_that_cannot_be_loaded_are_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let good = text_files(folder.path(), &[5]);
    let bad = folder.path().join("bad.csv");
    std::fs::write(&bad, "a,b\nc\n").unwrap();
    let missing = folder.path().join("missing");
    let nothing = json!({});
    let cases = [
        (
            load("csv", &[bad], &nothing),
            "bad.csv: row 2 (byte 4): it has 1 fields, but 2 are needed",
        ),
        (
            load("text", &[good[0].clone(), missing], &nothing),
            "missing: No such file",
        ),
        (
            load("binary", &good, &nothing),
            "row 1 (byte 0): the file does not begin like",
        ),
        (load("text", &[], &nothing), "there are no files"),
        (
            load("text", &good, &json!({"method": "copy_binary"})),
            "cannot be loaded by copy_binary",
        ),
        (
            load(
                "text",
                &good,
                &json!({"tables": {"test": {"name": "t", "columns": ["a"]}}}),
            ),
            "1 columns are listed",
        ),
        (
            load("text", &good, &json!({"data": {"columns": 0}})),
            "columns is 0",
        ),
        (
            load("binary", &good, &json!({"data": {"header": true}})),
            "have no header",
        ),
        (
            load("text", &good, &json!({"hash_workers": true})),
            "rows of devices",
        ),
        (
            load("text", &good, &json!({"tables": null})),
            "only into one table",
        ),
    ];
    for (load, words) in cases {
        let spec = crate::load::spec("127.0.0.1", 1, "epoll", &load, &nothing).to_string();
        let error = DriveSpec::from_json(&spec)
            .and_then(Drive::new)
            .err()
            .unwrap();
        let said = format!("{error} / {}", error.hint());
        assert!(said.contains(words), "{load}: {said}");
    }
}
