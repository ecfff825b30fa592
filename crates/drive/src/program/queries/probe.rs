//! A client that asks the same question in a fixed rhythm, and writes each answer down with its times.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadstone_wire::postgres::{Frontend, Message, WireError};
use serde_json::json;

use super::ProbeSpec;
use crate::answer::{Form, whole};
use crate::error::DriveError;
use crate::program::{End, Failure, Gain, Program, Readiness, Step};
use crate::spec::DriveSpec;

#[derive(Debug)]
struct State {
    file: File,
    failure: Option<String>,
}

/// The question, and the file for its answers.
#[derive(Debug)]
pub(super) struct Probe {
    sql: String,
    binary: bool,
    path: PathBuf,
    state: Mutex<State>,
}

impl Probe {
    /// Create the file.
    pub(super) fn new(
        spec: &ProbeSpec,
        binary: bool,
        drive: &DriveSpec,
    ) -> Result<Self, DriveError> {
        let Some(dir) = &drive.out_dir else {
            return Err(DriveError::bad_spec(
                "a probe has nowhere to write its answers".to_owned(),
                "give out_dir, the folder for probe.jsonl",
            ));
        };
        if spec.sql.trim().is_empty() {
            let hint = "give a query whose first column tells the latest state";
            return Err(DriveError::bad_spec(
                "the probe's text is empty".to_owned(),
                hint,
            ));
        }
        let path = dir.join("probe.jsonl");
        let file = File::create(&path);
        let file = file.map_err(|source| {
            let path = path.clone();
            DriveError::Output { path, source }
        })?;
        let failure = None;
        Ok(Self {
            sql: spec.sql.clone(),
            binary,
            path,
            state: Mutex::new(State { file, failure }),
        })
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    fn write(&self, start_ns: u64, end_ns: u64, value: Option<i64>) {
        let line = json!({"start_ns": start_ns, "end_ns": end_ns, "value": value});
        let mut state = self.lock();
        if let Err(error) = state.file.write_all(format!("{line}\n").as_bytes()) {
            let words = format!("cannot write {}: {error}", self.path.display());
            state.failure.get_or_insert(words);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct ProbeProgram {
    probe: Arc<Probe>,
    is_prepared: bool,
    is_sent: bool,
    /// Type and form of the first column.
    column: Option<(Form, bool)>,
    /// A row has come.
    has_row: bool,
    value: Option<i64>,
}

const NAME: &str = "probe";

impl ProbeProgram {
    pub(super) fn new(probe: Arc<Probe>) -> Self {
        Self {
            probe,
            is_prepared: false,
            is_sent: false,
            column: None,
            has_row: false,
            value: None,
        }
    }

    fn send(&self, frontend: &mut Frontend<'_>) -> Result<(), WireError> {
        if !self.is_prepared {
            frontend.parse(NAME, self.probe.sql.as_bytes())?;
        }
        frontend.bind_plain(NAME, self.probe.binary)?;
        frontend.describe_portal();
        frontend.execute();
        frontend.sync();
        Ok(())
    }
}

impl Program for ProbeProgram {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        if self.probe.failure().is_some() {
            Readiness::Ended
        } else {
            Readiness::Ready
        }
    }

    fn begin(&mut self) -> usize {
        self.retry();
        0
    }

    fn retry(&mut self) {
        (self.is_sent, self.has_row, self.value) = (false, false, None);
    }

    fn resume(&mut self, frontend: &mut Frontend<'_>, statements: &mut Vec<u32>) -> Step {
        if self.is_sent {
            return Step::Done;
        }
        self.is_sent = true;
        statements.push(0);
        match self.send(frontend) {
            Ok(()) => Step::Exchange { answers: 1 },
            Err(error) => Step::Failed(Failure::script(error.to_string())),
        }
    }

    fn message(&mut self, message: &Message<'_>) {
        match message {
            Message::ParseComplete => self.is_prepared = true,
            Message::RowDescription(description) => {
                let first = description.columns().next().and_then(Result::ok);
                self.column = first.map(|c| (Form::of(c.type_oid), c.is_binary));
            }
            Message::DataRow(row) if !self.has_row => {
                self.has_row = true;
                let first = row.values().next().and_then(Result::ok).flatten();
                self.value = first
                    .zip(self.column)
                    .and_then(|(value, (form, is_binary))| whole(form, is_binary, value));
            }
            _ => {}
        }
    }

    fn answered(&mut self, _failed: bool) -> Result<(), Failure> {
        Ok(())
    }

    fn ended(&mut self, end: &End<'_>) -> Gain {
        if let End::Done { sent_ns, acked_ns } = *end {
            self.probe.write(sent_ns, acked_ns, self.value);
        }
        Gain::default()
    }

    fn reconnected(&mut self) {
        self.is_prepared = false;
        self.retry();
    }
}
