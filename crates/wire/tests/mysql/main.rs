//! Conversations with a MySQL server that is made of bytes: what they mean, however they are cut.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::sync::Arc;

use loadstone_wire::mysql::{Event, MysqlError, Session, Settings};
use loadstone_wire::postgres::{Password, TlsMode};
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::packets::HandshakePacket;
use mysql_common::proto::MySerialize as _;
use proptest::prelude::*;

mod log_in;

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const OK_IN_TRANSACTION: &[u8] = &[0, 0, 0, 3, 0, 0, 0];
const OK_MORE: &[u8] = &[0, 0, 0, 10, 0, 0, 0];
const END_OF_ROWS: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
const DEADLOCK: &[u8] = b"\xFF\xBD\x04#40001Deadlock found";
const CHALLENGE: &[u8] = b"12345678abcdefghijkl";

/// Some server's key, made for this test; nobody has its other half.
const PUBLIC_KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA1nQ5gCiDCz28g2vpNTlx\n\
4O0tXfBuKqPlCk8NtKBQkrpSLJzVim/KoPxCBc3epHeDoCw83SuDBY0ExjjtdoGF\n\
/IXAUr6nRiLGT37wiHN8lwT9G2Wx5Pa/jtantz+Tiq33l8jKqJq1EFyUiocP4E+M\n\
oLNT/3fhkrmKa/pK/CVsFas8e0azePwmGn4hpFLOURJud89JHmgsvmEwoytXORNU\n\
61Pc/LwnbJAiRYjmh145tT4mGLA1Eqo2mP9KUnH5P/TSZ0WZc1cm1YmB9Ko1Y3DY\n\
n94DcotBgVGoYdx6rykfQiatvy8NlemECysApue1ULKnN+CT4St/6HTht2Uv2Lb5\n\
8wIDAQAB\n\
-----END PUBLIC KEY-----\n";

fn settings() -> Settings {
    Settings {
        user: "u".to_owned(),
        database: "d".to_owned(),
        password: Some(Password::new("secret")),
        tls: TlsMode::Disable,
        ..Settings::default()
    }
}

fn session(settings: Settings) -> Session {
    Session::new(Arc::new(settings), None).unwrap()
}

/// A packet with its header.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(payload.len()).unwrap().to_le_bytes()[..3].to_vec();
    out.push(sequence);
    out.extend_from_slice(payload);
    out
}

/// The packets of one answer, numbered from 1.
fn answer(payloads: &[&[u8]]) -> Vec<u8> {
    let numbered = payloads.iter().zip(1..);
    numbered
        .flat_map(|(payload, n)| packet(n, payload))
        .collect()
}

fn greeting(plugin: &str, missing: CapabilityFlags) -> Vec<u8> {
    let mut tail = CHALLENGE[8..].to_vec();
    tail.push(0);
    let mut first = [0; 8];
    first.copy_from_slice(&CHALLENGE[..8]);
    let greeting = HandshakePacket::new(
        10,
        &b"10.11.6-MariaDB"[..],
        77,
        first,
        Some(tail),
        CapabilityFlags::all() - missing,
        45,
        StatusFlags::SERVER_STATUS_AUTOCOMMIT,
        Some([plugin.as_bytes(), &[0]].concat()),
    );
    let mut payload = Vec::new();
    greeting.serialize(&mut payload);
    packet(0, &payload)
}

/// All that the session wants to send now.
fn sent(session: &mut Session) -> Vec<u8> {
    let bytes = session.pending().unwrap().to_vec();
    session.consumed(bytes.len());
    bytes
}

fn told(session: &mut Session, bytes: &[u8]) -> Vec<String> {
    let mut told = Vec::new();
    let received = session.receive(bytes, &mut |event| told.push(text(&event)));
    if let Err(error) = received {
        told.push(format!("failed: {error}"));
    }
    told
}

fn text(event: &Event<'_>) -> String {
    match event {
        Event::Row(row) => {
            let values = row.values().map(|value| {
                value.map_or("NULL".to_owned(), |v| {
                    String::from_utf8_lossy(v).into_owned()
                })
            });
            format!("row {}", values.collect::<Vec<_>>().join(","))
        }
        Event::Columns(columns) => {
            let names = columns
                .columns()
                .map(|c| String::from_utf8_lossy(c.name).into_owned());
            format!("columns {}", names.collect::<Vec<_>>().join(","))
        }
        Event::Error(error) => format!("error {}", error.to_owned()),
        Event::Answered { in_transaction } => format!("answered {in_transaction}"),
        other => format!("{other:?}").to_lowercase(),
    }
}

/// A session that is logged in, at a server that knows all but `missing`.
fn ready(missing: CapabilityFlags) -> Session {
    let mut session = session(settings());
    assert!(told(&mut session, &greeting("mysql_native_password", missing)).is_empty());
    assert!(!sent(&mut session).is_empty());
    assert_eq!(told(&mut session, &packet(2, OK)), ["ready"]);
    assert_eq!(session.connection_id(), 77);
    session
}

fn definition(name: &str, kind: u8, flags: u16) -> Vec<u8> {
    let mut out = b"\x03def\0\0\0".to_vec();
    out.push(u8::try_from(name.len()).unwrap());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\0\x0c\x2d\0\x0b\0\0\0");
    out.push(kind);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0, 0, 0]);
    out
}

fn none() -> CapabilityFlags {
    CapabilityFlags::empty()
}

#[test]
fn a_query_has_results_and_one_answer() {
    let mut session = ready(none());
    session.frontend().query(b"BEGIN; SELECT 1, NULL").unwrap();
    assert_eq!(sent(&mut session), packet(0, b"\x03BEGIN; SELECT 1, NULL"));
    let (a, b) = (definition("a", 3, 0), definition("b", 253, 0));
    let bytes = answer(&[OK_MORE, &[2], &a, &b, b"\x011\xFB", b"\0\xFB", END_OF_ROWS]);
    let expected = [
        "done { affected: 0 }",
        "columns a,b",
        "row 1,NULL",
        "row ,NULL",
        "done { affected: 0 }",
        "answered false",
    ];
    assert_eq!(told(&mut session, &bytes), expected);
    // The same from a server that still ends columns and rows by EOF.
    let mut old = ready(CapabilityFlags::CLIENT_DEPRECATE_EOF);
    old.frontend().query(b"SELECT").unwrap();
    let eof = [0xFE, 0, 0, 3, 0];
    let bytes = answer(&[&[1], &a, &eof, b"\x011", &eof]);
    assert_eq!(
        told(&mut old, &bytes),
        [
            "columns a",
            "row 1",
            "done { affected: 0 }",
            "answered true"
        ]
    );
}

#[test]
fn a_statement_is_prepared_and_run_in_one_go() {
    let mut session = ready(none());
    let mut frontend = session.frontend();
    frontend.prepare("s", b"SELECT $2, $1").unwrap();
    frontend
        .execute("s", false, [Some(&b"7"[..]), None].into_iter())
        .unwrap();
    frontend.sync();
    assert_eq!(sent(&mut session), packet(0, b"\x16SELECT ?, ?"));
    let (a, b) = (definition("a", 8, 0), definition("b", 12, 0));
    let prepared = answer(&[&[0, 9, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0], &a, &b, &a, &b]);
    assert_eq!(told(&mut session, &prepared), ["prepared"]);
    // NULL first, then the number.
    let execute = b"\x17\x09\0\0\0\0\x01\0\0\0\x01\x01\x06\0\x08\0\x07\0\0\0\0\0\0\0";
    assert_eq!(sent(&mut session), packet(0, execute));
    let row = b"\0\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x07\xE0\x07\x01\x02\x03\x04\x05";
    let rows = answer(&[&[2], &a, &b, row, b"\0\x0C", END_OF_ROWS]);
    let expected = [
        "columns a,b",
        "row -2,2016-01-02 03:04:05",
        "row NULL,NULL",
        "done { affected: 0 }",
        "answered false",
    ];
    assert_eq!(told(&mut session, &rows), expected);
    // Once more, without preparing.
    session
        .frontend()
        .execute("s", true, [Some(&b"x"[..]), Some(b"")].into_iter())
        .unwrap();
    let execute = b"\x17\x09\0\0\0\0\x01\0\0\0\0\x01\xFD\0\xFD\0\0\x01x";
    assert_eq!(sent(&mut session), packet(0, execute));
    session.frontend().close_statement("s").unwrap();
    assert!(sent(&mut session).is_empty());
    assert_eq!(told(&mut session, &answer(&[OK])), ["done { affected: 0 }"]);
    assert_eq!(sent(&mut session), packet(0, b"\x19\x09\0\0\0"));
}

#[test]
fn after_an_error_the_rest_is_dropped_up_to_the_sync() {
    let mut session = ready(none());
    session.frontend().query(b"BEGIN").unwrap();
    assert_eq!(
        told(&mut session, &answer(&[OK_IN_TRANSACTION])),
        ["done { affected: 0 }", "answered true"]
    );
    sent(&mut session);
    let mut frontend = session.frontend();
    frontend.prepare("s", b"UPDATE t").unwrap();
    frontend.execute("s", false, std::iter::empty()).unwrap();
    frontend.sync();
    frontend.query(b"ROLLBACK").unwrap();
    sent(&mut session);
    let told_of = told(&mut session, &answer(&[DEADLOCK]));
    let error = "error Deadlock found (error 1213, SQLSTATE 40001)";
    assert_eq!(told_of, [error, "answered true"]);
    assert_eq!(sent(&mut session), packet(0, b"\x03ROLLBACK"));
    assert_eq!(
        told(&mut session, &answer(&[OK])),
        ["done { affected: 0 }", "answered false"]
    );
    // A sync alone is answered too: by a ping.
    session.frontend().sync();
    assert_eq!(sent(&mut session), packet(0, &[0x0E]));
    assert_eq!(told(&mut session, &answer(&[OK])), ["answered false"]);
}

#[test]
fn what_cannot_be_prepared_is_run_as_text() {
    let mut session = ready(none());
    let mut frontend = session.frontend();
    frontend.prepare("s", b"LOCK TABLES t READ").unwrap();
    frontend.execute("s", false, std::iter::empty()).unwrap();
    frontend.sync();
    sent(&mut session);
    let refusal = b"\xFF\x0F\x05#HY000This command is not supported";
    assert_eq!(told(&mut session, &answer(&[refusal])), ["prepared"]);
    assert_eq!(sent(&mut session), packet(0, b"\x03LOCK TABLES t READ"));
    assert_eq!(
        told(&mut session, &answer(&[OK])),
        ["done { affected: 0 }", "answered false"]
    );
    let mut frontend = session.frontend();
    frontend.prepare("s", b"SELECT ?").unwrap();
    frontend.sync();
    let prepared = answer(&[
        &[0, 9, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
        &definition("?", 8, 0),
    ]);
    assert!(told(&mut session, &prepared)[0].contains("number of parameters"));
}

#[test]
fn data_goes_only_to_a_statement_that_asked_for_ours() {
    let mut messages = Vec::new();
    loadstone_wire::mysql::frames::query(b"LOAD", &mut messages).unwrap();
    loadstone_wire::mysql::frames::data::<MysqlError>(&mut messages, |out| {
        out.extend_from_slice(b"1\t2\n");
        Ok(())
    })
    .unwrap();
    loadstone_wire::mysql::frames::data_end(&mut messages);
    loadstone_wire::mysql::frames::query(b"COMMIT", &mut messages).unwrap();
    for cut in 0..messages.len() {
        let mut session = ready(none());
        session.frontend().encoded(&messages[..cut]);
        session.frontend().encoded(&messages[cut..]);
        assert_eq!(sent(&mut session), packet(0, b"\x03LOAD"));
        let asked = packet(1, b"\xFB/etc/passwd");
        assert_eq!(told(&mut session, &asked), ["datawanted"]);
        let data = [packet(2, b"1\t2\n"), packet(3, b"")].concat();
        assert_eq!(sent(&mut session), data);
        assert_eq!(
            told(&mut session, &packet(4, OK)),
            ["done { affected: 0 }", "answered false"]
        );
        assert_eq!(sent(&mut session), packet(0, b"\x03COMMIT"));
    }
    // Refused: the rows go nowhere.
    let mut session = ready(none());
    session.frontend().encoded(&messages);
    sent(&mut session);
    let told_of = told(&mut session, &answer(&[DEADLOCK]));
    assert_eq!(told_of[1], "answered false");
    assert_eq!(sent(&mut session), packet(0, b"\x03COMMIT"));
    // Asked where there is none: nothing is read, nothing sent but the end.
    let mut session = ready(none());
    session.frontend().query(b"SELECT 1").unwrap();
    sent(&mut session);
    told(&mut session, &packet(1, b"\xFB/etc/passwd"));
    assert!(sent(&mut session).is_empty());
    session.frontend().refuse_data();
    assert_eq!(sent(&mut session), packet(2, b""));
}

#[test]
fn a_value_may_be_longer_than_a_packet() {
    let mut session = ready(none());
    session.frontend().query(b"SELECT").unwrap();
    let length = 0xFF_FFFF + 10_usize;
    let mut row = vec![0xFE];
    row.extend_from_slice(&(length as u64).to_le_bytes());
    row.resize(row.len() + length, b'x');
    let (first, second) = row.split_at(0xFF_FFFF);
    let mut bytes = answer(&[&[1], &definition("a", 252, 0)]);
    bytes.extend(packet(3, first));
    bytes.extend(packet(4, second));
    bytes.extend(packet(5, END_OF_ROWS));
    let mut lengths = Vec::new();
    for piece in bytes.chunks(1 << 20) {
        session
            .receive(piece, &mut |event| {
                if let Event::Row(row) = event {
                    lengths.extend(row.values().map(|value| value.unwrap().len()));
                }
            })
            .unwrap();
    }
    assert_eq!(lengths, [length]);
    session.frontend().query(&vec![b' '; 0xFF_FFFE]).unwrap();
    let bytes = sent(&mut session);
    assert_eq!(&bytes[bytes.len() - 4..], [0, 0, 0, 1]);
}

/// A busy conversation: two results, a prepared statement, an error.
fn conversation() -> (Session, Vec<u8>) {
    let mut session = ready(none());
    let mut frontend = session.frontend();
    frontend.query(b"SELECT; SELECT").unwrap();
    frontend.prepare("s", b"SELECT $1").unwrap();
    frontend
        .execute("s", false, std::iter::once(Some(&b"1"[..])))
        .unwrap();
    frontend.sync();
    frontend.query(b"broken").unwrap();
    let a = definition("a", 3, 0);
    let more = [0xFE, 0, 0, 10, 0, 0, 0];
    let bytes = [
        answer(&[&[1], &a, b"\x0212", more.as_slice(), &[1], &a, END_OF_ROWS]),
        answer(&[&[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0], &a]),
        answer(&[&[1], &a, b"\0\0\x2A\0\0\0", END_OF_ROWS]),
        answer(&[DEADLOCK]),
    ];
    (session, bytes.concat())
}

proptest! {
    #[test]
    fn any_split_tells_the_same(cuts in proptest::collection::vec(0..400_usize, 0..12)) {
        let (mut whole, bytes) = conversation();
        let expected = told(&mut whole, &bytes);
        prop_assert_eq!(expected.len(), 13);
        let (mut session, _) = conversation();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).collect();
        cuts.sort_unstable();
        let (mut from, mut all) = (0, Vec::new());
        for cut in cuts.into_iter().chain([bytes.len()]) {
            all.extend(told(&mut session, &bytes[from..cut]));
            from = cut;
        }
        prop_assert_eq!(all, expected);
    }

    #[test]
    fn damage_is_no_panic(at in 0..400_usize, byte: u8, step in 1..50_usize, early: bool) {
        let (mut session, mut bytes) = if early {
            let mut bytes = greeting("caching_sha2_password", none());
            bytes.extend(packet(2, &[1, 4]));
            bytes.extend(packet(4, &[&[1], PUBLIC_KEY.as_bytes()].concat()));
            (session(settings()), bytes)
        } else {
            conversation()
        };
        let at = at % bytes.len();
        bytes[at] = byte;
        for piece in bytes.chunks(step) {
            let failed = told(&mut session, piece).iter().any(|told| told.starts_with("failed"));
            if failed {
                prop_assert_eq!(told(&mut session, b"x"), ["failed: the session has already failed"]);
                break;
            }
        }
    }
}
