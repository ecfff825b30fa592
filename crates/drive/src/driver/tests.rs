//! A made-up protocol of lines drives the same workloads: nothing above the seam knows which protocol it is.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::Drive;
use crate::error::DriveError;
use crate::protocol::value::{Cell, Form};
use crate::protocol::{
    Bulk, Column, Columns, Completed, Failure, Frontend, Message, Protocol, Row, ServerError,
    Session, SqlState, Unencodable,
};
use crate::record::ErrorClass;
use crate::spec::{Connection, DriveSpec};

/// Every message is a line whose first byte says what it is.
#[derive(Debug)]
struct Lines;

struct Link {
    tail: Vec<u8>,
    out: Vec<u8>,
}

struct Writer<'a>(&'a mut Vec<u8>);

/// The name of the only column, or its value.
struct Field<'a>(&'a [u8]);

impl Bulk for Lines {}

impl Protocol for Lines {
    type Session = Link;
    type Frontend<'a> = Writer<'a>;
    type Columns<'a> = Field<'a>;
    type Row<'a> = Field<'a>;
    type CancelKey = ();

    fn new(_connection: &Connection, _is_unix: bool) -> Result<Self, DriveError> {
        Ok(Self)
    }

    fn unix_socket(folder: &str, port: u16) -> String {
        format!("{folder}/{port}")
    }

    fn session(&self) -> Result<Link, Failure> {
        let (tail, out) = (Vec::new(), b"hello\n".to_vec());
        Ok(Link { tail, out })
    }

    fn is_retriable(state: SqlState) -> bool {
        &state == b"AGAIN"
    }
}

impl Session<Lines> for Link {
    fn receive(
        &mut self,
        bytes: &[u8],
        on_message: &mut impl FnMut(Message<'_, Lines>),
    ) -> Result<(), Failure> {
        self.tail.extend_from_slice(bytes);
        while let Some(end) = self.tail.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.tail.drain(..=end).collect();
            let text = &line[1..end];
            on_message(match line[0] {
                b'l' => Message::LoggedIn,
                b'p' => Message::Prepared,
                b'c' => Message::Columns(Field(text)),
                b'r' => Message::Row(Field(text)),
                b'd' => Message::Done(Completed::Words(text)),
                b'a' => Message::Answered {
                    in_transaction: false,
                },
                b'e' => Message::Error(ServerError {
                    report: crate::protocol::report::Report::default(),
                    state: *text.first_chunk().unwrap(),
                    number: 0,
                    message: text,
                    is_fatal: false,
                }),
                _ => return Err(Failure::new(ErrorClass::Protocol, "no such line")),
            });
        }
        Ok(())
    }

    fn closed(&mut self) -> Failure {
        Failure::new(ErrorClass::Connection, "the server has gone")
    }

    fn frontend(&mut self) -> Writer<'_> {
        Writer(&mut self.out)
    }

    fn pending(&mut self) -> Result<&[u8], Failure> {
        Ok(&self.out)
    }

    fn consumed(&mut self, count: usize) {
        self.out.drain(..count);
    }
}

impl Writer<'_> {
    fn line(&mut self, tag: &str, parts: &[&[u8]]) {
        self.0.extend_from_slice(tag.as_bytes());
        self.0.extend_from_slice(&parts.join(&b'\t'));
        self.0.push(b'\n');
    }
}

impl Frontend for Writer<'_> {
    fn query(&mut self, sql: &[u8]) -> Result<(), Unencodable> {
        self.line("Q", &[sql]);
        Ok(())
    }

    fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), Unencodable> {
        self.line("P", &[name.as_bytes(), sql]);
        Ok(())
    }

    fn execute<'p>(
        &mut self,
        name: &str,
        parameters: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), Unencodable> {
        let mut parts = vec![name.as_bytes()];
        for text in parameters.flatten() {
            parts.push(text);
        }
        self.line("E", &parts);
        Ok(())
    }

    fn execute_plain(&mut self, name: &str, _binary: bool) -> Result<(), Unencodable> {
        self.line("E", &[name.as_bytes()]);
        Ok(())
    }

    fn close_statement(&mut self, _name: &str) -> Result<(), Unencodable> {
        Ok(())
    }

    fn sync(&mut self) {
        self.line("S", &[]);
    }

    fn terminate(&mut self) {}

    fn encoded(&mut self, messages: &[u8]) {
        self.0.extend_from_slice(messages);
    }
}

impl Columns for Field<'_> {
    fn columns(&self) -> impl Iterator<Item = Column<'_>> {
        std::iter::once(Column {
            name: self.0,
            form: Form::Text,
            type_oid: 0,
            is_binary: false,
        })
    }
}

impl Row for Field<'_> {
    fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        std::iter::once(Some(self.0))
    }

    fn cell<'v>(_: Form, _: bool, value: &'v [u8], _: &'v mut Vec<u8>) -> Option<Cell<'v>> {
        Some(Cell::Text(value))
    }
}

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
                return "eAGAIN\n".to_owned();
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
