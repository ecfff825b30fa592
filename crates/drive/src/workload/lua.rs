//! A script in Lua as a program: its coroutine asks, and this says it in the words of the driver.

mod ahead;
mod answer;
mod copying;
mod fairness;
mod link;
mod unconnected;
mod watch;
mod work;

use std::fmt::Write as _;
use std::sync::Arc;

use loadstone_lua::{Answer, Client, Fault, Request};

use self::ahead::Ahead;
use self::answer::Heard;
use self::copying::{Copying, Way};
use self::link::{Link, SERVER_LOST};
pub(crate) use self::work::LuaWork;
use self::work::Shared;
use super::{End, LoadCount, Part, Place, Program, Readiness, Step};
use crate::clock::ns;
use crate::messages::{Kind, Line};
use crate::protocol::{Failure, Frontend, Message, Protocol, Unencodable};
use crate::record::Operations;

/// How often a client looks whether others are as far as it needs.
const LOOK_NS: u64 = 1_000_000;

/// With what the script goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Nothing,
    Flag(bool),
    /// The answer to a statement.
    Heard,
    /// It waits for the next event, or the last one.
    Event,
    /// It waits for the end of `init()`,
    Init,
    /// for the end of all other clients,
    Others,
    /// or for a new connection,
    Connection,
    /// which could not be made.
    Refused,
}

/// How far a client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// Its script has not been loaded.
    New,
    /// Another event may begin; it is already counted.
    Granted,
    Ready,
    /// No event begins any more.
    Over,
    /// The script has done its last.
    Ended,
}

pub(crate) struct LuaProgram {
    shared: Arc<Shared>,
    lua: Client,
    number: usize,
    next: Next,
    course: Course,
    heard: Heard,
    /// What its statements have done since somebody asked.
    operations: Operations,
    /// The statement counts, and is no ROLLBACK or prepare.
    counts: bool,
    /// It is an event that runs, and nothing before or after all of them.
    in_event: bool,
    copying: Copying,
    ahead: Ahead,
    link: Link,
    /// Name of a prepared statement at the server.
    name: String,
    fault: Option<Fault>,
    /// Why it got no connection, and the server's SQLSTATE for that.
    refusal: (String, String),
}

impl LuaProgram {
    fn new(shared: Arc<Shared>, lua: Client, number: usize, copying: Copying) -> Self {
        Self {
            shared,
            lua,
            number,
            next: Next::Nothing,
            course: Course::New,
            heard: Heard::default(),
            operations: Operations::default(),
            counts: false,
            in_event: false,
            copying,
            ahead: Ahead::default(),
            link: Link::default(),
            name: String::new(),
            fault: None,
            refusal: <(String, String)>::default(),
        }
    }

    /// Let the script go on with what it waits for; `None` where that has not come.
    fn go_on(&mut self) -> Option<Request> {
        let answer = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Nothing => Answer::Nothing,
            Next::Flag(flag) => Answer::Flag(flag),
            Next::Event => Answer::Flag(self.course != Course::Over),
            Next::Refused => Answer::Refused(&self.refusal.0, &self.refusal.1),
            Next::Init if !self.shared.script.is_initialized() => {
                self.next = Next::Init;
                return None;
            }
            Next::Others if !self.shared.script.others_ended() => {
                self.next = Next::Others;
                return None;
            }
            Next::Connection | Next::Init | Next::Others => Answer::Flag(true),
            Next::Heard if self.copying.goes_on(&self.heard, &self.lua.result) => {
                return Some(Request::BulkInsert { has_more: false });
            }
            Next::Heard if self.ahead.is_ahead() => return Some(self.catch_up()),
            Next::Heard => return Some(self.lua.resume(self.heard.answer(&self.shared.script))),
        };
        Some(self.lua.resume(answer))
    }

    /// Run until something must be awaited.
    fn run(&mut self, mut frontend: Option<&mut impl Frontend>) -> Step {
        loop {
            let Some(request) = self.go_on() else {
                return Step::Sleep { ns: LOOK_NS };
            };
            let step = match frontend.as_deref_mut() {
                Some(frontend) => self.connected(request, frontend),
                None => self.unconnected(request),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// What a script asks for that has a connection.
    fn connected(&mut self, request: Request, frontend: &mut impl Frontend) -> Option<Step> {
        let is_insert = matches!(request, Request::BulkInsert { .. });
        if !is_insert {
            self.copying.forget();
        }
        let sent = match request {
            Request::BulkInsert { has_more } => {
                self.ahead.allow(has_more && !self.shared.is_run());
                self.insert(frontend)
            }
            Request::Query | Request::Rollback => {
                self.counts = request == Request::Query;
                frontend.query(self.lua.sql())
            }
            Request::Prepare(number) => {
                self.counts = false;
                self.call(number);
                (frontend.prepare(&self.name, self.lua.sql())).map(|()| frontend.sync())
            }
            Request::Execute(number) => {
                self.counts = true;
                self.call(number);
                let values = self.lua.parameters().values();
                (frontend.execute(&self.name, values)).map(|()| frontend.sync())
            }
            Request::Close(number) => {
                self.counts = false;
                self.call(number);
                frontend
                    .close_statement(&self.name)
                    .map(|()| frontend.sync())
            }
            Request::Connect => {
                self.next = Next::Flag(false);
                return None;
            }
            Request::Switch(to) => return Some(self.switch(to)),
            Request::Disconnect => return Some(Step::Disconnect),
            Request::Reconnect => {
                self.connect_again(Next::Flag(true));
                return Some(Step::Disconnect);
            }
            other => return self.anyway(other),
        };
        Some(self.exchange(sent))
    }

    /// Send a bulk insert: as data, if it can be.
    fn insert(&mut self, frontend: &mut impl Frontend) -> Result<(), Unencodable> {
        let sql = self.ahead.sent().unwrap_or_else(|| self.lua.sql());
        let way = self.copying.way(sql, self.heard.in_transaction())?;
        self.counts = way != Way::Ask;
        match way {
            Way::Insert => return frontend.query(sql),
            Way::Ask | Way::Copy => frontend.encoded(self.copying.messages()),
        }
        Ok(())
    }

    /// Let the script make more rows while the server stores those that were sent.
    fn go_ahead(&mut self) {
        self.lua.replace_sql(self.ahead.begin());
        let answer = Answer::Done { affected: 0 };
        self.ahead.end(self.lua.resume(answer));
    }

    /// What the script has asked for meanwhile; where the rows were refused, it hears of that instead.
    fn catch_up(&mut self) -> Request {
        let asked = self.ahead.take();
        let has_ended = matches!(asked, Request::Failed(_) | Request::Interrupted);
        if has_ended || !self.heard.has_failed() {
            return asked;
        }
        match asked {
            Request::Query
            | Request::BulkInsert { .. }
            | Request::Rollback
            | Request::Prepare(_)
            | Request::Execute(_) => self.lua.resume(self.heard.answer(&self.shared.script)),
            _ => Request::Failed(Fault::plain(format!(
                "bulk insert failed: {}",
                self.heard.words()
            ))),
        }
    }

    fn exchange(&mut self, sent: Result<(), Unencodable>) -> Step {
        if let Err(error) = sent {
            return self.fail(Fault::plain(error.0));
        }
        self.heard.clear();
        self.lua.result.clear();
        self.next = Next::Heard;
        Step::Exchange { answers: 1 }
    }

    /// The name of a statement at the server.
    fn call(&mut self, number: u32) {
        self.name.clear();
        // Writing to a String cannot fail.
        let _ = write!(self.name, "s{number}");
    }

    /// What needs no connection.
    fn anyway(&mut self, request: Request) -> Option<Step> {
        match request {
            Request::Next => {
                self.next = Next::Event;
                if self.course == Course::New {
                    self.course = Course::Ready;
                    self.shared.note_ready();
                }
                Some(Step::Done)
            }
            Request::Leave => {
                self.in_event = false;
                self.course = Course::Over;
                Some(Step::Leave)
            }
            Request::Last => {
                self.course = Course::Over;
                Some(Step::Done)
            }
            Request::Ended => {
                self.end();
                Some(Step::Done)
            }
            Request::Sleep(seconds) => Some(Step::Sleep { ns: ns(seconds) }),
            Request::AwaitInit => {
                self.next = Next::Init;
                None
            }
            Request::AwaitDone => {
                self.next = Next::Others;
                None
            }
            Request::Failed(fault) => Some(self.fail(fault)),
            Request::Interrupted => {
                self.end();
                Some(Step::CutOff)
            }
            _ => None,
        }
    }

    fn fail(&mut self, fault: Fault) -> Step {
        self.end();
        let failure = Failure::script(self.words_of(&fault));
        self.shared.fail(&failure.message);
        self.fault = Some(fault);
        Step::Failed(failure)
    }

    fn words_of(&self, fault: &Fault) -> String {
        let number = self.number;
        match fault.function.as_str() {
            "" => format!("client {number}: {}", fault.message),
            name => format!(
                "client {number}: `{name}' function failed: {}",
                fault.message
            ),
        }
    }

    /// The script has done its last.
    fn end(&mut self) {
        if self.course != Course::Ended && self.number != 0 {
            self.shared.script.client_ended();
        }
        self.course = Course::Ended;
    }

    /// Lines for the user about the end of this client.
    fn last_words(&self, failure: &Failure) -> Vec<Line> {
        let mut lines = vec![Line::new(Kind::Error, failure.message.clone())];
        let traceback = self.fault.as_ref().map(|fault| fault.traceback.trim());
        if let Some(traceback) = traceback.filter(|traceback| !traceback.is_empty()) {
            lines.push(Line::new(Kind::Detail, traceback));
        }
        lines
    }
}

impl<P: Protocol> Program<P> for LuaProgram {
    fn begin_part(&mut self, part: Part) -> bool {
        match part {
            Part::Prologue => true,
            Part::Epilogue => {
                let has_more = self.course != Course::Ended;
                if has_more {
                    self.course = Course::Over;
                }
                has_more
            }
        }
    }

    fn minds_itself(&self) -> bool {
        true
    }

    fn lost(&mut self, failure: &Failure) -> bool {
        let is_minded = self.minds_loss(failure);
        if is_minded {
            self.link.lose();
            if self.next == Next::Heard {
                self.lose_statement(SERVER_LOST);
            }
        }
        is_minded
    }

    fn refused(&mut self, failure: &Failure) -> bool {
        if self.link.returns() {
            return true;
        }
        let waits = self.next == Next::Connection;
        if waits {
            self.refusal = (failure.message.clone(), failure.class.label());
            self.next = Next::Refused;
        }
        waits
    }

    fn ready(&mut self, _now_ns: u64) -> Readiness {
        match self.course {
            Course::Granted => Readiness::Ready,
            Course::Ready if self.shared.may_begin(self.number) => {
                self.course = Course::Granted;
                Readiness::Ready
            }
            _ => Readiness::Ended,
        }
    }

    fn begin(&mut self) -> usize {
        self.course = Course::Ready;
        self.in_event = true;
        0
    }

    fn retry(&mut self) {}

    fn resume(&mut self, frontend: &mut P::Frontend<'_>, _statements: &mut Vec<u32>) -> Step {
        self.run(Some(frontend))
    }

    fn resume_unconnected(&mut self) -> Step {
        if self.link.returns() {
            return Step::Reconnect;
        }
        if self.next == Next::Connection {
            return Step::Connect;
        }
        self.run(None::<&mut P::Frontend<'_>>)
    }

    fn more(&mut self, _frontend: &mut P::Frontend<'_>) {
        if self.next == Next::Heard && self.ahead.may_begin() && !self.copying.is_asking() {
            self.go_ahead();
        }
    }

    fn message(&mut self, message: &Message<'_, P>) {
        self.heard.message(message, &mut self.lua.result);
        if let (Message::Error(error), false) = (message, self.counts) {
            self.heard.report = error.report.text(self.lua.sql());
        }
    }

    fn answered(&mut self, _failed: bool) -> Result<(), Failure> {
        // An insert that cannot be sent as data is sent once more, and counts then.
        if self.counts && !(self.copying.is_sent() && self.heard.has_failed()) {
            self.heard.count(&self.lua.result, &mut self.operations);
        }
        Ok(())
    }

    fn sent(&self) -> &[u8] {
        self.ahead.sent().unwrap_or_else(|| self.lua.sql())
    }

    fn take_operations(&mut self, into: &mut Operations) {
        into.merge(&self.operations);
        self.operations = Operations::default();
        answer::count_by_script(self.lua.take_counted(), into);
    }

    fn words(&mut self, failure: &Failure, _place: Option<&Place>, ends: bool) -> Vec<Line> {
        if !ends {
            return Vec::new();
        }
        if self.fault.is_none() {
            self.shared.fail(&failure.message);
        }
        self.last_words(failure)
    }

    fn sends_data(&self) -> bool {
        self.copying.is_sent()
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        let was_event = std::mem::take(&mut self.in_event);
        if let (true, End::Done { sent_ns, acked_ns }) = (was_event, end) {
            let begun_ns = if *sent_ns == 0 { *acked_ns } else { *sent_ns };
            let busy_ns = acked_ns.saturating_sub(begun_ns);
            self.shared.fairness.book(self.number, busy_ns);
        }
        LoadCount::default()
    }

    fn gone(&mut self) {
        self.end();
    }

    fn reconnected(&mut self) {
        self.copying.forget();
        self.link.forget();
    }
}
