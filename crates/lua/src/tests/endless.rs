//! Scripts that do not come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::spec;
use crate::random::Stream;
use crate::{Answer, Client, Request, Script};

/// What never comes back: a loop, one that catches errors, and one in a coroutine of the script's own.
const ENDLESS: [&str; 3] = [
    "function event() while true do end end",
    "function event() while true do pcall(function() while true do end end) end end",
    "function event() coroutine.wrap(function() local n = 0 while true do n = n + 1 end end)() end",
];

#[test]
fn loops_without_end_are_interrupted_from_outside_and_other_clients_go_on() {
    for source in ENDLESS {
        let script = Script::new(spec(source, &json!({})), 2, Box::new(|_, _| {})).unwrap();
        let streams = Stream::of_clients(1, 2);
        let mut client = Client::new(&script, 0, streams[0]);
        let mut other = Client::new(&script, 1, streams[1]);
        while other.resume(Answer::Flag(true)) != Request::Next {
            client.resume(Answer::Nothing);
        }
        let request = interrupted(&script, &mut client);
        assert_eq!(request, Request::Interrupted, "{source}");
        // It has no more events, and is done.
        assert_eq!(
            other.resume(Answer::Flag(false)),
            Request::Disconnect,
            "{source}"
        );
    }
}

/// Let a client go on until it fails, or is interrupted by a watcher.
fn interrupted(script: &Arc<Script>, client: &mut Client) -> Request {
    let ended = Arc::new(AtomicBool::new(false));
    let (other, seen) = (Arc::clone(script), Arc::clone(&ended));
    let watcher = std::thread::spawn(move || {
        // Long enough for the loop to be compiled: then only a check inside compiled code ends it.
        while !seen.load(Ordering::Relaxed) {
            let before = other.turns();
            std::thread::park_timeout(std::time::Duration::from_millis(100));
            other.interrupt(&before);
        }
    });
    let mut request = client.resume(Answer::Flag(true));
    while !matches!(request, Request::Interrupted | Request::Failed(_)) {
        request = client.resume(Answer::Flag(true));
    }
    ended.store(true, Ordering::Relaxed);
    watcher.thread().unpark();
    watcher.join().unwrap();
    request
}
