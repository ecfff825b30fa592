//! A script in Lua as the work of a drive: what all its clients share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loadstone_lua::random::Stream;
use loadstone_lua::{Client, Part, Script, ScriptSpec, Told, describe};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::LuaProgram;
use super::copying::{Copying, Dialect};
use super::fairness::Fairness;
use super::watch::Watch;
use crate::error::DriveError;
use crate::messages::{Kind, Line, Messages};
use crate::protocol::Protocol;
use crate::spec::DriveSpec;
use crate::workload::{Labels, Program, ScriptLabel};

/// What the programs share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    messages: Arc<Messages>,
    /// The command is done by all clients, not by the first alone.
    is_parallel: bool,
    is_run: bool,
    /// Clients that could begin their first event.
    ready: AtomicUsize,
    /// Some were not able to in time.
    is_late: AtomicBool,
    pub(super) fairness: Fairness,
    /// Why the first client failed that did.
    failure: Mutex<Option<String>>,
}

impl Shared {
    /// This client may begin an event, or the command; the event is counted.
    pub(super) fn may_begin(&self, number: usize) -> bool {
        if self.is_run {
            return self.script.take_event();
        }
        self.is_parallel || number == 0
    }

    /// One more client can begin.
    pub(super) fn note_ready(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// What is done is measured.
    pub(super) fn is_run(&self) -> bool {
        self.is_run
    }

    pub(super) fn fail(&self, why: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| why.to_owned());
    }
}

/// What one of several hosts tells the others' collector.
#[derive(Debug, Serialize, Deserialize)]
struct LuaPart {
    /// Number, events and busy nanoseconds of each.
    clients: Vec<(usize, u64, u64)>,
    copied: u64,
    failure: Option<String>,
}

/// The part of this host: of the clients, and of the events that all of them may begin.
fn part_of(lua: &ScriptSpec, spec: &DriveSpec) -> Part {
    let (share, own) = (spec.share(), spec.own_clients());
    let whole = Part::whole(lua, own.len());
    let number = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Part {
        host: number(share.number),
        hosts: number(share.of),
        events: whole.events.map(|events| own_events(events, spec)),
        ..whole
    }
}

/// How many of so many events are this host's: every n-th under a rate, as its starts are; else as many for each client.
fn own_events(events: u64, spec: &DriveSpec) -> u64 {
    let (share, own) = (spec.share(), spec.own_clients());
    if spec.pace.rate_per_s().is_some() {
        return events / share.of + u64::from(share.number < events % share.of);
    }
    let before = |client: usize| u128::from(events) * client as u128 / spec.clients as u128;
    u64::try_from(before(own.end) - before(own.start)).unwrap_or(events)
}

/// The work of a drive.
#[derive(Debug)]
pub(crate) struct LuaWork {
    shared: Arc<Shared>,
    clients: usize,
    streams: Vec<Stream>,
    /// Rows of bulk inserts that went as data.
    copied: Arc<AtomicU64>,
    watch: Arc<Watch>,
}

impl LuaWork {
    pub(crate) fn new(lua: &ScriptSpec, spec: &DriveSpec) -> Result<Self, DriveError> {
        let refuse = |message: String| DriveError::bad_spec(message, "");
        let is_run = lua.command == "run";
        let is_parallel = is_run || (!lua.command.is_empty() && Self::is_parallel(lua)?);
        let messages = Arc::new(Messages::new(spec.messages.unwrap_or_default()));
        let paper = Arc::clone(&messages);
        let output = move |told, text: &str| {
            let kind = match told {
                Told::Printed => Kind::Output,
                Told::Fatal => Kind::Error,
                Told::Alert => Kind::Note,
            };
            paper.push(Line::new(kind, text));
        };
        let script = Script::part_of(lua.clone(), part_of(lua, spec), Box::new(output))
            .map_err(|fault| refuse(fault.message))?;
        let shared = Shared {
            script,
            messages,
            is_parallel,
            is_run,
            ready: AtomicUsize::default(),
            is_late: AtomicBool::default(),
            fairness: Fairness::new(spec.own_clients()),
            failure: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            clients: spec.own_clients().len(),
            streams: Stream::of_clients(lua.seed, spec.clients),
            copied: Arc::default(),
            watch: Arc::default(),
        })
    }

    /// Whether a command other than `run` is for all clients.
    fn is_parallel(lua: &ScriptSpec) -> Result<bool, DriveError> {
        let described = describe(lua.clone()).map_err(|fault| {
            let place = match fault.line {
                0 => fault.file.clone(),
                line => format!("{}:{line}", fault.file),
            };
            DriveError::bad_spec(format!("{place}: {}", fault.message), "")
        })?;
        let command = &described["commands"][&lua.command];
        if command.is_null() {
            let message = format!("the script has no command {:?}", lua.command);
            return Err(DriveError::bad_spec(message, ""));
        }
        Ok(command["parallel"] == true)
    }

    pub(crate) fn labels(&self) -> Labels {
        let name = self.shared.script.spec().script.clone();
        Labels {
            scripts: vec![ScriptLabel { name, weight: 1 }],
            statements: Vec::new(),
        }
    }

    pub(crate) fn program<P: Protocol>(&self, client: usize) -> Box<dyn Program<P> + Send> {
        let lua = Client::new(&self.shared.script, client, self.streams[client]);
        let dialect = self.takes_data().then(Dialect::of::<P>);
        let copying = Copying::new(dialect, Arc::clone(&self.copied));
        let shared = Arc::clone(&self.shared);
        Box::new(LuaProgram::new(shared, lua, client, copying))
    }

    /// Bulk inserts may go as data: in a run they are what is measured.
    fn takes_data(&self) -> bool {
        self.shared.script.spec().bulk_copy && !self.shared.is_run
    }

    /// What drive.json says besides.
    pub(crate) fn account(&self) -> Map<String, Value> {
        Map::from_iter([
            ("fairness".to_owned(), self.shared.fairness.account()),
            (
                "copied_rows".to_owned(),
                self.copied.load(Ordering::Relaxed).into(),
            ),
        ])
    }

    /// What one of several hosts has learnt beside its records.
    pub(crate) fn part(&self) -> Value {
        json!(LuaPart {
            clients: self.shared.fairness.clients(),
            copied: self.copied.load(Ordering::Relaxed),
            failure: self.failure(),
        })
    }

    /// Take in what another host has learnt.
    pub(crate) fn join(&self, part: Value) {
        let Ok(part) = serde_json::from_value::<LuaPart>(part) else {
            return;
        };
        self.shared.fairness.join(&part.clients);
        self.copied.fetch_add(part.copied, Ordering::Relaxed);
        if let Some(failure) = &part.failure {
            self.shared.fail(failure);
        }
    }

    /// All other hosts have done their part.
    pub(crate) fn others_ended(&self) {
        self.shared.script.hosts_ended();
    }

    pub(crate) fn messages(&self) -> Arc<Messages> {
        Arc::clone(&self.shared.messages)
    }

    pub(crate) fn mode(&self) -> String {
        format!("lua-{}", self.shared.script.spec().ps_mode)
    }

    pub(crate) fn failure(&self) -> Option<String> {
        let failure = &self.shared.failure;
        failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Clients must be ready soon after `init()`, if a limit is set: `give_up` gets the reason if they are not.
    pub(crate) fn watch_start(&self, give_up: impl FnOnce(String) + Send + 'static) {
        let (shared, script) = (Arc::clone(&self.shared), &self.shared.script);
        if let (true, Some(limit_s)) = (shared.is_run, script.spec().init_s) {
            let limit = Duration::from_secs_f64(limit_s);
            (self.watch).start_within(script, limit, move || {
                let why = format!("Worker threads failed to initialize within {limit_s} seconds!");
                shared.is_late.store(true, Ordering::Relaxed);
                shared.messages.push(Line::new(Kind::Error, why.clone()));
                give_up(why);
            });
        }
    }

    /// After a client that cannot begin, others still get ready or not: the time for that is limited, and `init()`
    /// is over, for which they wait.
    pub(crate) fn all_get_ready(&self) -> bool {
        let script = &self.shared.script;
        self.shared.is_run && script.spec().init_s.is_some() && script.is_initialized()
    }

    /// The clients are ready, or it is known that they will not be (`has_failed`).
    pub(crate) fn started(&self, has_failed: bool) {
        self.watch.started();
        if has_failed && self.shared.is_run && self.shared.script.is_initialized() {
            self.tell_unready();
        }
    }

    /// How many clients could not begin.
    fn tell_unready(&self) {
        let messages = &self.shared.messages;
        let is_late = self.shared.is_late.load(Ordering::Relaxed);
        if self.failure().is_some() && !is_late {
            messages.push(Line::new(Kind::Error, "Thread initialization failed!"));
        }
        let unready = (self.clients).saturating_sub(self.shared.ready.load(Ordering::Relaxed));
        if self.clients > 1 && unready > 0 {
            messages.push(Line::new(
                Kind::Summary,
                unready_text(unready, self.clients),
            ));
        }
    }

    /// The run is to end after this time: so is what the script does not come back from soon after.
    pub(crate) fn end_within(&self, time: Duration) {
        self.watch.end_within(&self.shared.script, time);
    }

    /// The run is over.
    pub(crate) fn over(&self) {
        self.watch.over();
    }
}

/// The count, and its share to a tenth of a per cent.
fn unready_text(unready: usize, clients: usize) -> String {
    let tenths = (1000 * unready + clients / 2) / clients;
    let share = match (tenths / 10, tenths % 10) {
        (0, 0) => "less than 0.1".to_owned(),
        (whole, 0) => whole.to_string(),
        (whole, tenth) => format!("{whole}.{tenth}"),
    };
    format!("{unready} of {clients} threads ({share} %) never started")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(clients: usize, rate: bool, number: u64, of: u64) -> DriveSpec {
        let pace = if rate {
            json!({"kind": "poisson", "rate_per_s": 5.0})
        } else {
            json!({"kind": "closed"})
        };
        serde_json::from_value(json!({
            "clients": clients, "seed": 1, "pace": pace, "host": {"number": number, "of": of},
        }))
        .unwrap()
    }

    #[test]
    fn the_share_of_threads_that_never_start_has_one_decimal() {
        for (unready, clients, text) in [
            (1, 3, "1 of 3 threads (33.3 %) never started"),
            (2, 3, "2 of 3 threads (66.7 %) never started"),
            (4, 4, "4 of 4 threads (100 %) never started"),
            (1, 9000, "1 of 9000 threads (less than 0.1 %) never started"),
        ] {
            assert_eq!(unready_text(unready, clients), text);
        }
    }

    proptest! {
        #[test]
        fn hosts_share_all_events_and_none_is_had_twice(
            events in 1_u64..10_000, clients in 1_usize..100, of in 1_u64..20, rate: bool,
        ) {
            let clients = clients.max(usize::try_from(of).unwrap());
            let own: Vec<u64> = (0..of)
                .map(|number| own_events(events, &spec(clients, rate, number, of)))
                .collect();
            prop_assert_eq!(own.iter().sum::<u64>(), events);
            let (least, most) = (own.iter().min().unwrap(), own.iter().max().unwrap());
            let each = events / clients as u64 + 2;
            prop_assert!(most - least <= if rate { 1 } else { each }, "{own:?}");
        }
    }
}
