//! A MySQL session takes any bytes without a panic, on its way in and after, and any split of them alike.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use loadstone_wire::mysql::{Event, Session, Settings};
use loadstone_wire::postgres::{Password, TlsMode};

/// A greeting and an end to the log-in.
const LOGGED_IN: &[u8] =
    b"\x49\0\0\0\x0a5.5.5\0\x01\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\0\0\0\0\
ijklmnopqrst\0mysql_native_password\0\x07\0\0\x02\0\0\0\x02\0\0\0";

/// What the bytes mean, taken in pieces of `step`.
fn events(choice: u8, bytes: &[u8], step: usize) -> (Vec<String>, bool) {
    let settings = Settings {
        user: "u".to_owned(),
        password: Some(Password::new("p")),
        tls: TlsMode::Disable,
        ..Settings::default()
    };
    let mut session = Session::new(Arc::new(settings), None).expect("plain settings");
    if choice & 1 == 0 {
        session.receive(LOGGED_IN, &mut |_| {}).expect("a log-in");
    }
    let mut frontend = session.frontend();
    if choice & 2 == 0 {
        frontend.query(b"SELECT 1").expect("short");
    }
    frontend.prepare("s", b"SELECT $1").expect("short");
    let binary = choice & 4 == 0;
    let value = std::iter::once(Some(&b"1"[..]));
    frontend.execute("s", binary, value).expect("short");
    frontend.sync();
    let mut events = Vec::new();
    for piece in bytes.chunks(step) {
        let outcome = session.receive(piece, &mut |event| {
            if let Event::Row(row) = &event {
                events.push(format!("{:?}", row.values().collect::<Vec<_>>()));
            }
            events.push(format!("{event:?}"));
        });
        if outcome.is_err() {
            return (events, false);
        }
    }
    (events, true)
}

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else {
        return;
    };
    let whole = events(*choice, bytes, usize::MAX);
    assert_eq!(events(*choice, bytes, usize::from(*step).max(1)), whole);
});
