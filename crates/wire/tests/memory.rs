//! What a session costs: ten thousand of them must fit, and a transaction must not allocate.
#![expect(
    unsafe_code,
    reason = "an allocator that counts can be written in no other way"
)]
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use loadstone_wire::postgres::{
    Action, Behaviour, Password, Reply, Responder, ResponderAuth, Session, Settings, TlsMode,
};

thread_local! {
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: isize) {
    LIVE_BYTES.set(LIVE_BYTES.get() + bytes);
    if bytes > 0 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

// SAFETY: everything is left to the system's allocator; the counters never allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USER: &str = "alice";

fn behaviour(reply: Reply) -> Arc<Behaviour> {
    let auth = ResponderAuth::Scram {
        user: USER.to_owned(),
        password: Password::new("pencil"),
    };
    Arc::new(Behaviour {
        auth,
        reply,
        ..Behaviour::default()
    })
}

fn settings() -> Arc<Settings> {
    Arc::new(Settings {
        user: USER.to_owned(),
        password: Some(Password::new("pencil")),
        tls: TlsMode::Disable,
        ..Settings::default()
    })
}

/// Sends what is pending and takes the answer, in pieces of `step` bytes.
fn turn(session: &mut Session, responder: &mut Responder, answer: &mut Vec<u8>, step: usize) {
    loop {
        let request = session.pending().unwrap();
        if request.is_empty() {
            return;
        }
        answer.clear();
        assert_eq!(responder.respond(request, answer), Ok(Action::Continue));
        let sent = request.len();
        session.consumed(sent);
        for chunk in answer.chunks(step) {
            session.receive(chunk, &mut |_| {}).unwrap();
        }
    }
}

fn transaction(session: &mut Session) {
    let mut frontend = session.frontend();
    frontend
        .bind_text("s", [Some(&b"12345"[..]), None])
        .unwrap();
    frontend.describe_portal();
    frontend.execute();
    frontend.sync();
}

#[test]
fn an_idle_session_is_small_and_a_transaction_allocates_nothing() {
    let settings = settings();
    let mut responder = Responder::new(behaviour(Reply::default()), 1);
    let mut answer = Vec::with_capacity(64 * 1024);
    let before = LIVE_BYTES.get();
    let responder_before = LIVE_BYTES.get();
    let mut session = Session::new(settings, None).unwrap();
    turn(&mut session, &mut responder, &mut answer, usize::MAX);
    assert!(session.is_ready());
    session.frontend().parse("s", b"select $1, $2").unwrap();
    transaction(&mut session);
    turn(&mut session, &mut responder, &mut answer, usize::MAX);
    // The responder's own few bytes are counted in as well.
    assert!(
        LIVE_BYTES.get() - before.min(responder_before) < 2048,
        "{}",
        LIVE_BYTES.get() - before
    );

    let allocations = ALLOCATIONS.get();
    for _ in 0..100 {
        transaction(&mut session);
        turn(&mut session, &mut responder, &mut answer, usize::MAX);
    }
    assert_eq!(ALLOCATIONS.get() - allocations, 0);
}

#[test]
fn a_large_message_leaves_no_large_buffer() {
    let wide = "x".repeat(1 << 20);
    let mut responder = Responder::new(behaviour(Reply::rows(&["c"], &[&[Some(&wide)]])), 1);
    let mut session = Session::new(settings(), None).unwrap();
    let mut answer = Vec::with_capacity(2 << 20);
    turn(&mut session, &mut responder, &mut answer, 4096);
    let before = LIVE_BYTES.get();
    let most = Cell::new(0);
    session.frontend().query(b"select 1").unwrap();
    let request = session.pending().unwrap().to_vec();
    session.consumed(request.len());
    answer.clear();
    responder.respond(&request, &mut answer).unwrap();
    for chunk in answer.chunks(4096) {
        session.receive(chunk, &mut |_| {}).unwrap();
        most.set(most.get().max(LIVE_BYTES.get() - before));
    }
    drop(request);
    assert!(
        most.get() > 1 << 20,
        "the test must have kept a large tail: {}",
        most.get()
    );
    assert!(
        LIVE_BYTES.get() - before < 1024,
        "{}",
        LIVE_BYTES.get() - before
    );
}

#[test]
fn a_claimed_length_reserves_nothing() {
    let mut responder = Responder::new(behaviour(Reply::default()), 1);
    let mut session = Session::new(settings(), None).unwrap();
    turn(&mut session, &mut responder, &mut Vec::new(), usize::MAX);
    let before = LIVE_BYTES.get();
    session
        .receive(b"D\x3f\xff\xff\xff\0\x01", &mut |_| {})
        .unwrap();
    assert!(
        LIVE_BYTES.get() - before < 64,
        "{}",
        LIVE_BYTES.get() - before
    );
}
