//! A session that is logged in takes any bytes without a panic, and any split of them alike.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use loadstone_wire::postgres::{Event, Message, Session, Settings, TlsMode};

/// An end to the log-in: accepted, and ready for a query.
const LOGGED_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

static SETTINGS: LazyLock<Arc<Settings>> = LazyLock::new(|| {
    Arc::new(Settings {
        user: "u".to_owned(),
        tls: TlsMode::Disable,
        ..Settings::default()
    })
});

/// What the bytes mean, taken in pieces of `step`.
fn events(bytes: &[u8], step: usize) -> (Vec<String>, bool) {
    let mut session = Session::new(Arc::clone(&SETTINGS), None).expect("plain settings");
    session.receive(LOGGED_IN, &mut |_| {}).expect("a log-in");
    let mut events = Vec::new();
    for piece in bytes.chunks(step) {
        let outcome = session.receive(piece, &mut |event| {
            look(&event);
            events.push(format!("{event:?}"));
        });
        if outcome.is_err() {
            return (events, false);
        }
    }
    (events, true)
}

fn look(event: &Event<'_>) {
    match event {
        Event::Message(Message::DataRow(row)) => {
            assert!(row.values().count() <= row.len());
        }
        Event::Message(Message::RowDescription(columns)) => {
            assert!(columns.names().count() <= columns.len());
        }
        Event::Message(Message::Error(error) | Message::Notice(error)) => drop(error.to_owned()),
        _ => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((step, bytes)) = input.split_first() else {
        return;
    };
    let whole = events(bytes, usize::MAX);
    assert_eq!(events(bytes, usize::from(*step).max(1)), whole);
});
