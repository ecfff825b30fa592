//! A script in Lua as the work of a drive: what all its clients share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use loadstone_lua::random::Stream;
use loadstone_lua::{Client, Script, ScriptSpec, Told, describe};
use serde_json::{Map, Value};

use super::LuaProgram;
use super::copying::{Copying, Dialect};
use super::fairness::Fairness;
use crate::error::DriveError;
use crate::messages::{Kind, Line, Messages};
use crate::protocol::Protocol;
use crate::spec::DriveSpec;
use crate::workload::{Labels, Program, ScriptLabel};

/// How long a script may compute after the run was asked to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the programs share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) script: Arc<Script>,
    messages: Arc<Messages>,
    /// The command is done by all clients, not by the first alone.
    is_parallel: bool,
    is_run: bool,
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

    /// What is done is measured.
    pub(super) fn is_run(&self) -> bool {
        self.is_run
    }

    pub(super) fn fail(&self, why: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| why.to_owned());
    }
}

/// The work of a drive.
#[derive(Debug)]
pub(crate) struct LuaWork {
    shared: Arc<Shared>,
    streams: Vec<Stream>,
    /// Rows of bulk inserts that went as data.
    copied: Arc<AtomicU64>,
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
        let script = Script::new(lua.clone(), spec.clients, Box::new(output))
            .map_err(|fault| refuse(fault.message))?;
        let shared = Shared {
            script,
            messages,
            is_parallel,
            is_run,
            fairness: Fairness::new(spec.clients),
            failure: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            streams: Stream::of_clients(lua.seed, spec.clients),
            copied: Arc::default(),
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

    #[expect(
        clippy::disallowed_methods,
        reason = "a thread of its own, which has nothing else to do"
    )]
    /// The run is to end: so is what the script does not come back from within a short time.
    pub(crate) fn end_soon(&self) {
        let script = Arc::clone(&self.shared.script);
        let watch = move || {
            let before = script.turns();
            thread::sleep(PATIENCE);
            script.interrupt(&before);
        };
        // Without a thread for it, the script goes on until it comes back.
        let _ = thread::Builder::new()
            .name("lua-end".to_owned())
            .spawn(watch);
    }
}
