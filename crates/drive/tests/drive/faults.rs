//! Servers that die, refuse, fall silent or talk nonsense.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use loadstone_wire::postgres::{Behaviour, Fault};
use serde_json::{Value, json};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::harness::{
    Answer, Scripted, Server, converse, done_failed, drive, error, errors, finish, message, number,
    on_both, ready, refused, run, script, spec, start,
};

on_both!(
    clients_that_lose_their_connection_are_gone_and_the_run_is_aborted,
    with_reconnect_the_run_goes_on_and_the_outage_has_an_end,
    a_server_that_does_not_come_back_is_an_outage_without_end,
    nonsense_and_half_messages_are_counted_for_what_they_are,
    silence_ends_in_a_timeout,
    requests_to_cancel_that_nobody_takes_hold_nothing_up,
    refused_log_ins_say_how_to_mend_them,
    nobody_listens,
    a_full_queue_of_connections_is_tried_again,
    without_lasting_connections_a_refusal_ends_the_run,
    a_server_that_never_answers_the_log_in,
    the_last_words_of_a_server_are_kept,
    losing_idle_clients_counts_no_transaction,
);

fn clients_that_lose_their_connection_are_gone_and_the_run_is_aborted(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 30 }]);
    for mode in ["simple", "prepared"] {
        let more = json!({"mode": mode, "clients": 4, "duration_s": 20.0});
        let account = run(&server.spec(io, more));
        assert_eq!(account["state"], "aborted", "{mode}");
        assert_eq!(done_failed(&account), (120, 4), "{mode}");
        assert_eq!(errors(&account), [("connection".to_owned(), 4)].into());
        assert_eq!(account["in_doubt"], 4);
        let outages = account["outages"].as_array().unwrap();
        assert_eq!(outages.len(), 1, "{account}");
        assert_eq!(outages[0]["end_ns"], Value::Null);
        assert_eq!(outages[0]["clients"], 4);
    }
    assert_eq!(server.inner.cancels(), [0, 0], "it closed them itself");
}

fn with_reconnect_the_run_goes_on_and_the_outage_has_an_end(io: &str) {
    let server = Server::faulty(vec![Fault::CloseAfter { queries: 200 }]);
    let more = json!({"reconnect": true, "clients": 3, "transactions_per_client": 500});
    let account = run(&server.spec(io, more));
    assert_eq!(account["state"], "complete");
    // Two connections serve 200 each, the third the rest; the two that broke cost one transaction each.
    assert_eq!(done_failed(&account), (3 * 498, 3 * 2));
    assert_eq!(account["connect"]["reconnects"], 6);
    let outages = account["outages"].as_array().unwrap();
    assert!(!outages.is_empty());
    for outage in outages {
        let (start, end) = (number(&outage["start_ns"]), number(&outage["end_ns"]));
        // The first pause is 50 ms.
        assert!(end >= start + 50_000_000, "{outage}");
        assert!(number(&outage["clients"]) <= 3);
    }
}

fn a_server_that_does_not_come_back_is_an_outage_without_end(io: &str) {
    let mut server = Server::new(Behaviour::default());
    let more = json!({"reconnect": true, "clients": 5, "duration_s": 1.0});
    let drive = start(&server.spec(io, more));
    while serde_json::from_str::<Value>(&drive.progress()).unwrap()["start_ns"].is_null() {
        thread::yield_now();
    }
    server.inner.stop();
    let account = finish(&drive);
    assert_eq!(account["state"], "complete", "the time was over: {account}");
    let outages = account["outages"].as_array().unwrap();
    assert_eq!(outages.len(), 1, "{account}");
    assert_eq!(outages[0]["end_ns"], Value::Null);
    assert_eq!(outages[0]["clients"], 5);
    // Each failed attempt to come back is an error of its own.
    assert!(errors(&account)["connection"] >= 10, "{account}");
}

fn nonsense_and_half_messages_are_counted_for_what_they_are(io: &str) {
    let faults = [
        (
            Fault::GarbageAfter { queries: 5 },
            "protocol",
            "server announced",
        ),
        (
            Fault::HalfMessageAfter { queries: 5 },
            "connection",
            "middle of a message",
        ),
    ];
    for (fault, class, words) in faults {
        let server = Server::faulty(vec![fault]);
        let account = run(&server.spec(io, json!({"duration_s": 20.0})));
        assert_eq!(account["state"], "aborted");
        assert_eq!(done_failed(&account), (10, 2), "{account}");
        assert_eq!(errors(&account), [(class.to_owned(), 2)].into());
        let message = account["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(words), "{message}");
    }
}

fn silence_ends_in_a_timeout(io: &str) {
    let server = Server::faulty(vec![Fault::SilentAfter { queries: 3 }]);
    let begun = now();
    let account = run(&server.spec(io, json!({"timeout_s": 0.3, "duration_s": 20.0})));
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(done_failed(&account), (6, 2));
    assert_eq!(errors(&account), [("timeout".to_owned(), 2)].into());
    let message = account["errors"][0]["message"].as_str().unwrap();
    assert_eq!(message, "no answer within 0.3 s");
    assert_eq!(server.inner.cancels(), [2, 0], "the server need not go on");
}

fn requests_to_cancel_that_nobody_takes_hold_nothing_up(io: &str) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let cancels = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&cancels);
    let server = thread::spawn(move || {
        // Everybody is let in, and nobody is answered or closed.
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept() {
            let mut length = [0; 4];
            if stream.read_exact(&mut length).is_err() {
                return;
            }
            let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
            stream.read_exact(&mut startup).unwrap();
            if startup[..4] == 80_877_102_u32.to_be_bytes() {
                assert_eq!(startup[4..], *b"\0\0\0\x2asecret");
                seen.fetch_add(1, Ordering::Relaxed);
            } else {
                let hello = [
                    message(b'R', &[0; 4]),
                    message(b'K', b"\0\0\0\x2asecret"),
                    ready(b'I'),
                ];
                stream.write_all(&hello.concat()).unwrap();
            }
            held.push(stream);
        }
    });
    let more = json!({"clients": 20, "timeout_s": 0.2, "connection": {"sslmode": "disable"}});
    let begun = now();
    let account = run(&spec("127.0.0.1", port, io, more));
    let took = begun.elapsed();
    assert_eq!(done_failed(&account), (0, 20));
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!((1..=4).contains(&cancels.load(Ordering::Relaxed)));
    drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)));
    server.join().unwrap();
}

fn refused_log_ins_say_how_to_mend_them(io: &str) {
    let refusals = [
        ("53300", "too many clients already", "max_connections"),
        (
            "3D000",
            "database \"test\" does not exist",
            "create the database",
        ),
        ("28P01", "password authentication failed", "password"),
    ];
    for (sqlstate, message, mend) in refusals {
        let server = Server::faulty(vec![Fault::RefuseStartup {
            sqlstate: sqlstate.as_bytes().try_into().unwrap(),
            message: message.to_owned(),
        }]);
        let error = refused(&server.spec(io, json!({"clients": 20})));
        assert!(error.to_string().contains(message), "{error}");
        assert!(error.hint().contains(mend), "{}", error.hint());
    }
}

fn nobody_listens(io: &str) {
    let folder = tempfile::TempDir::new().unwrap();
    let nowhere = folder.path().to_str().unwrap();
    for host in [nowhere, "127.0.0.1"] {
        let error = refused(&spec(host, 1, io, json!({"reconnect": true})));
        assert!(
            error.to_string().starts_with("cannot connect to"),
            "{error}"
        );
        assert!(error.hint().contains("check that the server is running"));
    }
}

fn a_full_queue_of_connections_is_tried_again(io: &str) {
    let folder = tempfile::TempDir::new().unwrap();
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    let path = folder.path().join(".s.PGSQL.1");
    listener.bind(&SockAddr::unix(path).unwrap()).unwrap();
    listener.listen(0).unwrap();
    let more = json!({"clients": 8, "connection": {"connect_timeout_s": 5.0}});
    let drive = start(&spec(folder.path().to_str().unwrap(), 1, io, more));
    // Long enough for every client but the first to find the queue full, on a busy machine too.
    thread::park_timeout(Duration::from_millis(400));
    let log = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..8 {
        let (stream, _) = listener.accept().unwrap();
        let log = Arc::clone(&log);
        thread::spawn(move || converse(stream, &log, &|_, _| Answer::Row("1")));
    }
    let account = finish(&drive);
    assert_eq!(done_failed(&account), (80, 0));
    assert_eq!(errors(&account), [].into(), "waiting is no error");
    assert!(number(&account["connect"]["latency"]["max_ns"]) >= 90_000_000);
}

fn without_lasting_connections_a_refusal_ends_the_run(io: &str) {
    let server = Server::faulty(vec![Fault::RefuseStartup {
        sqlstate: *b"53300",
        message: "too many clients already".to_owned(),
    }]);
    let more = json!({"connect_per_transaction": true, "clients": 3, "duration_s": 20.0});
    let account = run(&server.spec(io, more));
    assert_eq!(account["state"], "aborted");
    let reason = account["reason"].as_str().unwrap();
    assert!(reason.contains("too many clients already"), "{reason}");
    assert_eq!(done_failed(&account), (0, 3));
    assert_eq!(errors(&account), [("53300".to_owned(), 3)].into());
    assert_eq!(account["in_doubt"], 0);
}

fn a_server_that_never_answers_the_log_in(io: &str) {
    for fault in [Fault::SilentAtStartup, Fault::GarbageAtStartup] {
        let server = Server::faulty(vec![fault.clone()]);
        let begun = now();
        let error = refused(&server.spec(io, json!({"connection": {"connect_timeout_s": 0.3}})));
        assert!(begun.elapsed() < Duration::from_secs(15), "{fault:?}");
        assert!(!error.hint().is_empty(), "{error}");
        if fault == Fault::SilentAtStartup {
            assert!(
                error.to_string().contains("no answer within 0.3 s"),
                "{error}"
            );
        }
    }
}

fn the_last_words_of_a_server_are_kept(io: &str) {
    let words = "terminating connection due to administrator command";
    let fatal = error("FATAL", "57P01", words);
    let done = crate::harness::row("1");
    let after_an_answer = [done, fatal.clone()].concat();
    for (last, in_doubt) in [(fatal, 1), (after_an_answer, 0)] {
        let server = Scripted::new(move |number, _| match number {
            4 => Answer::Last(last.clone()),
            _ => Answer::Row("1"),
        });
        // The last words may find the client waiting, or about to begin its next transaction.
        let more = json!({"clients": 1, "transactions_per_client": 20,
                          "pace": {"kind": "fixed", "rate_per_s": 200.0}});
        let account = run(&server.spec(io, more));
        assert_eq!(account["state"], "aborted");
        assert_eq!(account["in_doubt"], in_doubt, "{account}");
        assert_eq!(errors(&account), [("57P01".to_owned(), 1)].into());
        assert_eq!(account["errors"][0]["message"], words);
        let (done, failed) = done_failed(&account);
        assert_eq!((done, failed), (5 - in_doubt, in_doubt));
    }
}

fn losing_idle_clients_counts_no_transaction(io: &str) {
    let mut server = Server::new(Behaviour::default());
    let more = json!({"clients": 3, "duration_s": 10.0, "scripts": script("SELECT 1;\n"),
                      "pace": {"kind": "fixed", "rate_per_s": 0.01}});
    let drive = drive(&server.spec(io, more));
    drive.start().unwrap();
    while serde_json::from_str::<Value>(&drive.progress()).unwrap()["start_ns"].is_null() {
        thread::yield_now();
    }
    thread::park_timeout(Duration::from_millis(100));
    server.inner.stop();
    let account = finish(&drive);
    assert_eq!(account["state"], "aborted");
    assert_eq!(done_failed(&account), (1, 0), "{account}");
    assert_eq!(errors(&account), [("connection".to_owned(), 3)].into());
    assert_eq!(account["in_doubt"], 0);
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test takes is no figure of a run"
)]
fn now() -> Instant {
    Instant::now()
}
