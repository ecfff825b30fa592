//! A session on its way in takes any bytes without a panic, plain or through TLS, whatever it wants.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use loadstone_wire::postgres::{ChannelBinding, Password, Session, Settings, TlsFiles, TlsMode};

const MODES: [TlsMode; 4] = [
    TlsMode::Disable,
    TlsMode::Allow,
    TlsMode::Prefer,
    TlsMode::Require,
];
const BINDINGS: [ChannelBinding; 3] = [
    ChannelBinding::Disable,
    ChannelBinding::Prefer,
    ChannelBinding::Require,
];

static TLS: LazyLock<Arc<loadstone_wire::postgres::ClientConfig>> = LazyLock::new(|| {
    TlsFiles::default()
        .client_config(TlsMode::Prefer)
        .expect("no files")
});

fuzz_target!(|input: &[u8]| {
    let [choice, step, bytes @ ..] = input else {
        return;
    };
    let settings = Settings {
        user: "u".to_owned(),
        password: (choice & 1 == 0).then(|| Password::new("p")),
        tls: MODES[usize::from(choice >> 1 & 3)],
        channel_binding: BINDINGS[usize::from(choice >> 3) % BINDINGS.len()],
        host: "db.example".to_owned(),
        ..Settings::default()
    };
    let mut session =
        Session::new(Arc::new(settings), Some(Arc::clone(&TLS))).expect("good settings");
    for piece in bytes.chunks(usize::from(*step).max(1)) {
        let _ = session
            .pending()
            .map(<[u8]>::len)
            .map(|sent| session.consumed(sent));
        if session.receive(piece, &mut |_| {}).is_err() {
            break;
        }
    }
    let _ = session.closed();
    let _ = session.retry_settings();
    let _ = session.pending();
});
