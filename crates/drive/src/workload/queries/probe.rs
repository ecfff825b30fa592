//! A client that asks the same question in a fixed rhythm, and writes each answer down with its times.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use crate::answer::whole;
use crate::error::DriveError;
use crate::protocol::value::Form;
use crate::protocol::{Columns as _, Failure, Frontend, Message, Protocol, Row as _, Unencodable};
use crate::spec::DriveSpec;
use crate::spec::queries::ProbeSpec;
use crate::workload::{End, LoadCount, Program, Readiness, Step};

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
                "a probe has no folder for its answers".to_owned(),
                "set out_dir, the folder for probe.jsonl",
            ));
        };
        if spec.sql.trim().is_empty() {
            let hint = "use a query whose first column is the latest state";
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

    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    pub(super) fn write(&self, start_ns: u64, end_ns: u64, value: Option<i64>) {
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

    fn start_over(&mut self) {
        (self.is_sent, self.has_row, self.value) = (false, false, None);
    }

    fn send(&self, frontend: &mut impl Frontend) -> Result<(), Unencodable> {
        if !self.is_prepared {
            frontend.prepare(NAME, self.probe.sql.as_bytes())?;
        }
        frontend.execute_plain(NAME, self.probe.binary)?;
        frontend.sync();
        Ok(())
    }
}

impl<P: Protocol> Program<P> for ProbeProgram {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        if self.probe.failure().is_some() {
            Readiness::Ended
        } else {
            Readiness::Ready
        }
    }

    fn begin(&mut self) -> usize {
        self.start_over();
        0
    }

    fn retry(&mut self) {
        self.start_over();
    }

    fn resume(&mut self, frontend: &mut P::Frontend<'_>, statements: &mut Vec<u32>) -> Step {
        if self.is_sent {
            return Step::Done;
        }
        self.is_sent = true;
        statements.push(0);
        match self.send(frontend) {
            Ok(()) => Step::Exchange { answers: 1 },
            Err(error) => Step::Failed(error.into()),
        }
    }

    fn message(&mut self, message: &Message<'_, P>) {
        match message {
            Message::Prepared => self.is_prepared = true,
            Message::Columns(columns) => {
                self.column = columns.columns().next().map(|c| (c.form, c.is_binary));
            }
            Message::Row(row) if !self.has_row => {
                self.has_row = true;
                let first = row.values().next().flatten();
                self.value = first
                    .zip(self.column)
                    .and_then(|(value, (form, is_binary))| {
                        whole::<P::Row<'_>>(form, is_binary, value)
                    });
            }
            _ => {}
        }
    }

    fn answered(&mut self, _failed: bool) -> Result<(), Failure> {
        Ok(())
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        if let End::Done { sent_ns, acked_ns } = *end {
            self.probe.write(sent_ns, acked_ns, self.value);
        }
        LoadCount::default()
    }

    fn reconnected(&mut self) {
        self.is_prepared = false;
        self.start_over();
    }
}
