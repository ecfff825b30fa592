//! The responder takes any bytes of a client without a panic, and its answers decode.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use loadstone_wire::postgres::{Behaviour, Password, Responder, ResponderAuth, decode};

/// A start-up message of user "u".
const STARTUP: &[u8] = b"\0\0\0\x10\0\x03\0\0user\0u\0\0";

static BEHAVIOURS: LazyLock<[Arc<Behaviour>; 3]> = LazyLock::new(|| {
    let (user, password) = ("u".to_owned(), Password::new("p"));
    let md5 = ResponderAuth::Md5 {
        user: user.clone(),
        password: password.clone(),
    };
    let cleartext = ResponderAuth::Cleartext { user, password };
    [ResponderAuth::Trust, md5, cleartext].map(|auth| {
        Arc::new(Behaviour {
            auth,
            ..Behaviour::default()
        })
    })
});

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else {
        return;
    };
    let mut responder = Responder::new(Arc::clone(&BEHAVIOURS[usize::from(choice >> 1) % 3]), 1);
    let mut answer = Vec::new();
    if choice & 1 == 0 {
        responder
            .respond(STARTUP, &mut answer)
            .expect("a right start-up");
    }
    let ready = responder.is_ready();
    answer.clear();
    for piece in bytes.chunks(usize::from(*step).max(1)) {
        if responder.respond(piece, &mut answer).is_err() {
            break;
        }
    }
    // After the log-in every answer is a whole message of the server.
    let mut rest = if ready { &answer[..] } else { &[] };
    while !rest.is_empty() {
        let (_, used) = decode(rest)
            .expect("our own message")
            .expect("a whole message");
        rest = &rest[used..];
    }
});
