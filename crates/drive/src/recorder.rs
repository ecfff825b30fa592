//! The recorder for work that goes through another driver: the same intervals, files and account as a drive's.
//!
//! Threads around that driver hand in times; everything after that is what the driver's own workers use.

mod spec;
mod work;

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Map, Value, json};

use crate::account::{self, Ending};
use crate::clock::now_ns;
use crate::collector::{Collected, Collector, Finish, Progress, Report};
use crate::config::Config;
use crate::error::DriveError;
use crate::output::Output;
use crate::record::{ErrorClass, Record, count_error};
use crate::spec::DriveSpec;
use crate::timeline::Timeline;
use crate::work::{Labels, Work};

pub use spec::RecorderSpec;
pub(crate) use work::{NoProgram, Recorded};

use spec::{check, drive_spec};

/// Records that circulate between the samples and the collector.
const RECORDS: usize = 3;
/// Names of errors that are kept; the rest is counted as one.
const NAMES_MAX: usize = 1024;

/// The times of one sample, nanoseconds of the clock.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// When it should have begun; counts under a rate.
    pub intended_ns: u64,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

struct Running {
    timeline: Timeline,
    record: Box<Record>,
    interval: u64,
    reports: Sender<Report>,
    blanks: Receiver<Box<Record>>,
    collector: thread::JoinHandle<Collected>,
}

enum State {
    /// Nothing is recorded yet; the clock started at this time.
    Waiting {
        start_ns: u64,
        output: Option<Output>,
    },
    Running(Running),
    Finished,
}

/// Takes samples from any number of threads.
pub struct Recorder {
    spec: RecorderSpec,
    drive: DriveSpec,
    config: Arc<Config>,
    progress: Arc<Mutex<Progress>>,
    state: Mutex<(State, u64)>,
}

impl Recorder {
    /// Check the specification and create the files.
    pub fn new(spec: RecorderSpec) -> Result<Self, DriveError> {
        check(&spec)?;
        let drive = drive_spec(&spec)?;
        let work = Work::Recorded(Recorded {
            labels: Labels::plain(&spec.labels),
            is_load: spec.load,
        });
        let config = Arc::new(Config::with_work(&drive, work)?);
        let output = match &spec.out_dir {
            Some(dir) => Some(Output::create(dir, account::tags(&config), false)?),
            None => None,
        };
        let start_ns = now_ns();
        Ok(Self {
            spec,
            drive,
            config,
            progress: Arc::default(),
            state: Mutex::new((State::Waiting { start_ns, output }, 0)),
        })
    }

    /// Start the clock unless a sample has been recorded; returns its start.
    pub fn begin(&self) -> Result<u64, DriveError> {
        let mut guard = self.lock();
        if let State::Waiting { start_ns, .. } = &mut guard.0 {
            *start_ns = now_ns();
        }
        self.running(&mut guard.0)
            .map(|running| running.timeline.start_ns)
    }

    /// A sample has ended well.
    pub fn done(&self, label: usize, times: Times) -> Result<(), DriveError> {
        self.sample(label, times, None)
    }

    /// A sample has failed: `state` is an SQLSTATE or a word for the kind of error.
    pub fn failed(
        &self,
        label: usize,
        times: Times,
        state: &str,
        message: &str,
    ) -> Result<(), DriveError> {
        self.sample(label, times, Some((class(state), message)))
    }

    fn sample(
        &self,
        label: usize,
        times: Times,
        failure: Option<(ErrorClass, &str)>,
    ) -> Result<(), DriveError> {
        let labels = self.spec.labels.len();
        if label >= labels {
            let message = format!("label {label} is not among the {labels} labels");
            return Err(DriveError::bad_spec(message, "labels are numbered from 0"));
        }
        let mut guard = self.lock();
        let (state, samples) = &mut *guard;
        let running = self.running(state)?;
        self.roll(running, times.end_ns);
        let burnt_in = *samples >= self.spec.burn_in;
        *samples += 1;
        self.book(running, label, times, failure, burnt_in);
        Ok(())
    }

    /// Rows of a load, stored now.
    pub fn rows(&self, rows: u64, metrics: u64) -> Result<(), DriveError> {
        let mut guard = self.lock();
        let running = self.running(&mut guard.0)?;
        running.record.rows += rows;
        running.record.metrics += metrics;
        Ok(())
    }

    /// The latest interval and the totals so far, as JSON.
    #[must_use]
    pub fn progress(&self) -> String {
        if let State::Running(running) = &mut self.lock().0 {
            self.roll(running, now_ns());
        }
        let progress = self
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        serde_json::to_string(&progress).unwrap_or_default()
    }

    /// Close the files and give the account (what drive.json holds), once. `more` is added to it.
    pub fn finish(
        &self,
        state: &str,
        reason: Option<&str>,
        more: Map<String, Value>,
    ) -> Result<String, DriveError> {
        if !matches!(state, "complete" | "interrupted" | "aborted") {
            return Err(DriveError::bad_spec(
                format!("unknown state {state:?}"),
                "use complete, interrupted or aborted",
            ));
        }
        let mut guard = self.lock();
        self.running(&mut guard.0)?;
        let State::Running(mut running) = std::mem::replace(&mut guard.0, State::Finished) else {
            return Err(finished());
        };
        drop(guard);
        let now = now_ns();
        self.roll(&mut running, now);
        self.hand_over(&mut running, now);
        let Running {
            timeline,
            reports,
            collector,
            ..
        } = running;
        let last = Finish {
            io: "driver",
            ..Finish::default()
        };
        let _ = reports.send(Report::Finished(0, last));
        drop(reports);
        let collected = collector.join().map_err(|_| broken())?;
        self.account(timeline, &collected, (state, reason), more)
    }

    fn account(
        &self,
        timeline: Timeline,
        collected: &Collected,
        (state, reason): (&str, Option<&str>),
        more: Map<String, Value>,
    ) -> Result<String, DriveError> {
        let ending = Ending {
            stopped: false,
            threads: self.spec.clients,
            connect_wall_ns: 0,
            stall: None,
        };
        let text = account::write(&self.drive, &self.config, timeline, &ending, collected);
        let mut account: Map<String, Value> = serde_json::from_str(&text).map_err(|_| broken())?;
        account.insert("state".to_owned(), json!(state));
        account.insert("reason".to_owned(), json!(reason));
        // Who else spends time in this process cannot be told apart, nor is there an event loop.
        for unknown in ["client_cpu", "loop", "lost_clients"] {
            account.insert(unknown.to_owned(), Value::Null);
        }
        for (key, value) in more {
            match (account.get_mut(&key), value) {
                (Some(Value::Object(mine)), Value::Object(more)) => mine.extend(more),
                (_, value) => {
                    account.insert(key, value);
                }
            }
        }
        let mut text = serde_json::to_string_pretty(&account).unwrap_or_default();
        text.push('\n');
        Ok(text)
    }

    fn book(
        &self,
        running: &mut Running,
        label: usize,
        times: Times,
        failure: Option<(ErrorClass, &str)>,
        burnt_in: bool,
    ) {
        let record = &mut *running.record;
        // In a closed loop nothing waits between intention and start.
        let intended_ns = if self.config.under_a_rate {
            times.intended_ns
        } else {
            times.start_ns
        };
        let measured = intended_ns >= running.timeline.measure_ns && burnt_in;
        // Throughput belongs to the end; what the warm-up had not ended is carried over.
        let measuring = burnt_in && !running.timeline.is_warmup(running.interval);
        let script = &mut record.scripts[label];
        for counts in [&mut record.counts, &mut script.counts] {
            counts.of(measured).scheduled += 1;
            if measuring && !measured {
                counts.carry(1);
            }
        }
        let (all, own) = (record.counts.of(measuring), script.counts.of(measuring));
        if let Some((class, message)) = failure {
            all.failed += 1;
            own.failed += 1;
            record.statements[label].1 += 1;
            return count_error(&mut record.errors, class, times.end_ns, || {
                message.to_owned()
            });
        }
        all.done += 1;
        own.done += 1;
        // As with the driver's own workers: what straddles the end of the warm-up is in no figure.
        if !measured || !measuring {
            return;
        }
        let service_ns = times.end_ns.saturating_sub(times.start_ns);
        let response_ns = times.end_ns.saturating_sub(intended_ns);
        let limit_ns = self.config.latency_limit_ns.unwrap_or(u64::MAX);
        record.late += u64::from(response_ns > limit_ns);
        script.service.record(service_ns);
        script.response.record(response_ns);
        record.response.record(response_ns);
        record.statements[label].0.record(service_ns);
        if let Some(service) = &mut record.service {
            service.record(service_ns);
            record
                .lag
                .record(times.start_ns.saturating_sub(intended_ns));
        }
    }

    /// Hand over the records of the intervals that have ended.
    fn roll(&self, running: &mut Running, now: u64) {
        while now >= running.timeline.end_ns(running.interval) {
            let end_ns = running.timeline.end_ns(running.interval);
            self.hand_over(running, end_ns);
            running.interval += 1;
        }
    }

    fn hand_over(&self, running: &mut Running, end_ns: u64) {
        let blank = running.blanks.try_recv();
        let blank = blank.unwrap_or_else(|_| Box::new(self.config.blank_record()));
        let record = std::mem::replace(&mut running.record, blank);
        let _ = running.reports.send(Report::Interval {
            worker: 0,
            index: running.interval,
            end_ns,
            connected: self.spec.clients,
            record,
        });
    }

    /// The running part, set going if it is not.
    fn running<'s>(&self, state: &'s mut State) -> Result<&'s mut Running, DriveError> {
        if let State::Waiting { start_ns, output } = state {
            let running = self.start(*start_ns, output.take())?;
            *state = State::Running(running);
        }
        match state {
            State::Running(running) => Ok(running),
            _ => Err(finished()),
        }
    }

    fn start(&self, start_ns: u64, output: Option<Output>) -> Result<Running, DriveError> {
        let (warmup_s, duration_s) = (self.spec.warmup_s, self.spec.duration_s);
        let timeline = Timeline::new(start_ns, warmup_s, duration_s, self.config.interval_ns);
        self.progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin(&timeline);
        let (reports, inbox) = channel();
        let (give, blanks) = sync_channel(RECORDS);
        let (config, progress) = (Arc::clone(&self.config), Arc::clone(&self.progress));
        let body =
            move || Collector::new(&config, timeline, output, progress, vec![give]).collect(&inbox);
        let collector = thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(body);
        let collector = collector.map_err(DriveError::thread)?;
        Ok(Running {
            timeline,
            record: Box::new(self.config.blank_record()),
            interval: 0,
            reports,
            blanks,
            collector,
        })
    }

    fn lock(&self) -> MutexGuard<'_, (State, u64)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class of an error that another driver names.
fn class(state: &str) -> ErrorClass {
    match state {
        "timeout" => ErrorClass::Timeout,
        "connection" => ErrorClass::Connection,
        "answer" => ErrorClass::Answer,
        "internal" => ErrorClass::Internal,
        _ => ErrorClass::Named(named(state)),
    }
}

/// Names of errors live as long as the program, each once: they are few, being names of exceptions.
fn named(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    if names.len() >= NAMES_MAX {
        return "other";
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}

fn finished() -> DriveError {
    DriveError::bad_spec(
        "the recorder has been finished".to_owned(),
        "make a new one for every phase",
    )
}

fn broken() -> DriveError {
    DriveError::System {
        what: "the recorder met a broken invariant".to_owned(),
        source: std::io::Error::other("see the message above"),
        hint: "this is a bug of Loadstone: please report it with the plan and the message"
            .to_owned(),
    }
}
