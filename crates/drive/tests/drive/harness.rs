//! Servers, specifications and checks that all tests share.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use loadstone_drive::null_server::NullServer;
use loadstone_drive::{Drive, DriveError, DriveSpec};
use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far longer than any drive here: what takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(2);

/// Each test runs once on each interface of the kernel; where the kernel refuses one, the test fails.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod io_uring { $( #[test] fn $name() { super::$name("io_uring"); } )+ }
        mod epoll { $( #[test] fn $name() { super::$name("epoll"); } )+ }
    };
}
pub(crate) use on_both;

/// The built-in server in a folder of its own.
pub(crate) struct Server {
    pub(crate) inner: NullServer,
    pub(crate) folder: TempDir,
}

impl Server {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        Self::with_room(behaviour, 100)
    }

    pub(crate) fn with_room(behaviour: Behaviour, clients_max: usize) -> Self {
        let folder = TempDir::new().unwrap();
        let inner = NullServer::start(behaviour, folder.path(), clients_max).unwrap();
        Self { inner, folder }
    }

    pub(crate) fn faulty(faults: Vec<Fault>) -> Self {
        Self::new(Behaviour {
            faults,
            ..Behaviour::default()
        })
    }

    /// A specification that connects to it; `more` adds to it and overrides it.
    pub(crate) fn spec(&self, io: &str, more: Value) -> Value {
        let host = self.folder.path().to_str().unwrap();
        spec(host, self.inner.port(), io, more)
    }
}

/// Two clients, ten transactions each, one statement, simple protocol; `more` adds to it and overrides it.
pub(crate) fn spec(host: &str, port: u16, io: &str, more: Value) -> Value {
    let mut spec = json!({
        "connection": {"host": host, "port": port, "user": "tester", "database": "test",
                       "connect_timeout_s": 5.0},
        "scripts": [{"name": "select.pgbench", "text": "SELECT 1;"}],
        "mode": "simple", "clients": 2, "threads": 1, "seed": 7, "io": io, "timeout_s": 5.0,
    });
    merge(&mut spec, more);
    if spec.get("duration_s").is_none() && spec.get("transactions_per_client").is_none() {
        spec["transactions_per_client"] = json!(10);
    }
    spec
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// One script of this text as the value of `scripts`.
pub(crate) fn script(text: &str) -> Value {
    json!([{"name": "test.pgbench", "text": text}])
}

pub(crate) fn drive(spec: &Value) -> Drive {
    Drive::new(DriveSpec::from_json(&spec.to_string()).unwrap()).unwrap()
}

pub(crate) fn start(spec: &Value) -> Drive {
    let drive = drive(spec);
    drive.start().unwrap();
    drive
}

/// Wait for the end, and check what holds for every account.
pub(crate) fn finish(drive: &Drive) -> Value {
    let text = drive.wait(PATIENCE).expect("the drive hangs").unwrap();
    let account: Value = serde_json::from_str(&text).unwrap();
    assert_window(&account["counts"]);
    assert_warmup(&account["warmup_counts"]);
    for script in account["scripts"].as_array().unwrap() {
        assert_window(&script["counts"]);
    }
    account
}

pub(crate) fn run(spec: &Value) -> Value {
    let account = finish(&start(spec));
    assert_eq!(account["io"], spec["io"]);
    account
}

/// Whether all clients are connected, and the drive is under way.
pub(crate) fn has_begun(drive: &Drive) -> bool {
    let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
    !progress["start_ns"].is_null()
}

/// The error that keeps a drive from beginning.
pub(crate) fn refused(spec: &Value) -> DriveError {
    let drive = start(spec);
    drive
        .wait(PATIENCE)
        .expect("the drive hangs")
        .expect_err("the drive should not have begun")
}

pub(crate) fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

/// What was scheduled in the window, or came from the warm-up, has an outcome in it.
pub(crate) fn assert_window(counts: &Value) {
    let begun = number(&counts["scheduled"]) + number(&counts["carried"]);
    assert_eq!(begun, ended(counts), "{counts}");
}

/// What was scheduled in the warm-up has an outcome there, or goes on into the window.
fn assert_warmup(counts: &Value) {
    let left = ended(counts) + number(&counts["carried"]);
    assert_eq!(number(&counts["scheduled"]), left, "{counts}");
}

fn ended(counts: &Value) -> u64 {
    let outcomes = ["done", "failed", "skipped", "dropped"];
    outcomes.iter().map(|kind| number(&counts[kind])).sum()
}

/// Done and failed of the measured window.
pub(crate) fn done_failed(account: &Value) -> (u64, u64) {
    let counts = &account["counts"];
    (number(&counts["done"]), number(&counts["failed"]))
}

/// Counts of errors by class.
pub(crate) fn errors(account: &Value) -> BTreeMap<String, u64> {
    let errors = account["errors"].as_array().unwrap();
    errors
        .iter()
        .map(|e| {
            (
                e["sqlstate"].as_str().unwrap().to_owned(),
                number(&e["count"]),
            )
        })
        .collect()
}

/// What a [`Scripted`] server answers to a query.
pub(crate) enum Answer {
    /// A row with one column.
    Row(&'static str),
    /// These bytes.
    Bytes(Vec<u8>),
    /// These bytes, and the end of the connection.
    Last(Vec<u8>),
}

/// A server for the simple protocol whose answers a test chooses; remembers every query.
pub(crate) struct Scripted {
    pub(crate) port: u16,
    pub(crate) queries: Arc<Mutex<Vec<String>>>,
    listener: TcpListener,
    thread: Option<JoinHandle<()>>,
}

impl Scripted {
    /// `answer` is given the number of the query on its connection, from 0, and its text.
    pub(crate) fn new(answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let queries = Arc::new(Mutex::new(Vec::new()));
        let (accepting, log, answer) = (
            listener.try_clone().unwrap(),
            Arc::clone(&queries),
            Arc::new(answer),
        );
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = accepting.accept() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || {
                    // A connection that breaks is what some tests are about.
                    let _ = converse(stream, &log, answer.as_ref());
                });
            }
        });
        Self {
            port,
            queries,
            listener,
            thread: Some(thread),
        }
    }

    pub(crate) fn spec(&self, io: &str, more: Value) -> Value {
        let mut spec = spec("127.0.0.1", self.port, io, more);
        spec["connection"]["sslmode"] = json!("disable");
        spec
    }

    pub(crate) fn queries(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = socket2::SockRef::from(&self.listener).shutdown(Shutdown::Both);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

pub(crate) fn converse(
    mut stream: impl Read + Write,
    log: &Mutex<Vec<String>>,
    answer: &(dyn Fn(usize, &str) -> Answer + Send + Sync),
) -> std::io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup)?;
    let mut hello = message(b'R', &[0, 0, 0, 0]);
    hello.extend(ready(b'I'));
    stream.write_all(&hello)?;
    for number in 0.. {
        let mut header = [0; 5];
        stream.read_exact(&mut header)?;
        let [tag, a, b, c, d] = header;
        let mut body = vec![0; u32::from_be_bytes([a, b, c, d]) as usize - 4];
        stream.read_exact(&mut body)?;
        if tag != b'Q' {
            return Ok(());
        }
        let sql = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
        log.lock().unwrap().push(sql.clone());
        match answer(number, &sql) {
            Answer::Row(value) => stream.write_all(&row(value))?,
            Answer::Bytes(bytes) => stream.write_all(&bytes)?,
            Answer::Last(bytes) => return stream.write_all(&bytes),
        }
    }
    Ok(())
}

pub(crate) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![tag];
    message.extend((u32::try_from(body.len()).unwrap() + 4).to_be_bytes());
    message.extend(body);
    message
}

pub(crate) fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// One row with one column named `v`.
pub(crate) fn row(value: &str) -> Vec<u8> {
    let mut description = b"\0\x01v\0".to_vec();
    description.extend([0; 4 + 2]);
    description.extend([0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    let mut data = vec![0, 1];
    data.extend(u32::try_from(value.len()).unwrap().to_be_bytes());
    data.extend(value.as_bytes());
    let parts = [
        message(b'T', &description),
        message(b'D', &data),
        message(b'C', b"SELECT 1\0"),
        ready(b'I'),
    ];
    parts.concat()
}

/// An error of this severity.
pub(crate) fn error(severity: &str, sqlstate: &str, words: &str) -> Vec<u8> {
    let body = format!("S{severity}\0V{severity}\0C{sqlstate}\0M{words}\0\0");
    message(b'E', body.as_bytes())
}
