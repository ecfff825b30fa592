//! The drive as its owner sees it: start, look at the progress, stop, wait for the account.

mod threads;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use self::threads::{deal, spawn};
use crate::blocking;
use crate::cancel::Canceller;
use crate::client::library::Library;
use crate::client::over;
use crate::clock::now_ns;
use crate::collector::{Collected, Collector, Progress, Report, StepProgress};
use crate::config::Config;
use crate::connector::Connector;
use crate::control::Control;
use crate::drive_result::{self, Ended, Ending};
use crate::error::DriveError;
use crate::journal::{Form, Logbook, Logs};
use crate::limits;
use crate::output::Output;
use crate::pace::Schedule;
use crate::protocol::Protocol;
use crate::record::Record;
use crate::saved::Records;
use crate::spec::DriveSpec;
use crate::timeline::Timeline;
use crate::worker::Assignment;
use crate::worker::client::Client;
use crate::workload::load::LoadWork;

/// Time between the word to start and the first transaction, so that all threads see it.
const START_DELAY_NS: u64 = 2_000_000;
/// Records that circulate between a worker and the collector.
const RECORDS_PER_WORKER: usize = 3;
/// How often a waiting owner looks whether a step is over.
const HOLD_LOOK: Duration = Duration::from_millis(5);

type DriveResult = Result<String, DriveError>;

/// One drive phase.
pub struct Drive {
    spec: DriveSpec,
    config: Arc<Config>,
    control: Arc<Control>,
    progress: Arc<Mutex<Progress>>,
    account: Arc<(Mutex<Option<DriveResult>>, Condvar)>,
    /// What the supervisor does, until it is started.
    supervise: Mutex<Option<Supervise>>,
    supervisor: Mutex<Option<thread::JoinHandle<()>>>,
}

type Supervise = Box<dyn FnOnce(Files) -> DriveResult + Send>;

/// What is written while a drive goes on: its own files, or those of one of several hosts.
#[derive(Default)]
struct Files {
    output: Option<Output>,
    records: Option<Records>,
}

impl Files {
    fn create(spec: &DriveSpec, config: &Config) -> Result<Self, DriveError> {
        let Some(dir) = &spec.out_dir else {
            return Ok(Self::default());
        };
        if spec.host.is_some() {
            let records = Some(Records::create(dir)?);
            return Ok(Self {
                records,
                output: None,
            });
        }
        let output = Output::create(dir, drive_result::tags(config), config.is_load)?;
        Ok(Self {
            output: Some(output),
            records: None,
        })
    }
}

impl Drive {
    /// Check the specification and parse the scripts; nothing is connected yet.
    pub fn new(spec: DriveSpec) -> Result<Self, DriveError> {
        over!(spec.connected()?.protocol, P => Self::over::<P>(spec))
    }

    /// The same over any protocol.
    pub(crate) fn over<P: Protocol>(spec: DriveSpec) -> Result<Self, DriveError> {
        let config = Config::new::<P>(&spec)?;
        let connector = if config.connects_late {
            Connector::<P>::late(spec.connected()?)?
        } else {
            Connector::<P>::new(spec.connected()?)?
        };
        let run = Run {
            config: Arc::new(config),
            connector: Arc::new(connector),
            spec: spec.clone(),
            control: Arc::default(),
            progress: Arc::default(),
        };
        Ok(Self {
            spec,
            config: Arc::clone(&run.config),
            control: Arc::clone(&run.control),
            progress: Arc::clone(&run.progress),
            account: Arc::new((Mutex::new(None), Condvar::new())),
            supervise: Mutex::new(Some(Box::new(move |files| run.supervise(files)))),
            supervisor: Mutex::new(None),
        })
    }

    /// The same for clients that reach the database through a library.
    pub fn through(spec: DriveSpec, library: Arc<dyn Library>) -> Result<Self, DriveError> {
        let run = blocking::Run {
            config: Arc::new(Config::for_library(&spec)?),
            spec: spec.clone(),
            control: Arc::default(),
            progress: Arc::default(),
            library,
        };
        Ok(Self {
            spec,
            config: Arc::clone(&run.config),
            control: Arc::clone(&run.control),
            progress: Arc::clone(&run.progress),
            account: Arc::new((Mutex::new(None), Condvar::new())),
            supervise: Mutex::new(Some(Box::new(move |files: Files| {
                run.supervise(files.output)
            }))),
            supervisor: Mutex::new(None),
        })
    }

    /// Connect all clients and begin; returns at once. Errors of connecting come from [`Drive::wait`].
    pub fn start(&self) -> Result<(), DriveError> {
        let mut supervise = self
            .supervise
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if supervise.is_none() {
            return Err(DriveError::bad_spec(
                "the drive is already started".to_owned(),
                "create a new one for every phase",
            ));
        }
        limits::raise_open_files(self.spec.own_clients().len())?;
        let files = Files::create(&self.spec, &self.config)?;
        let Some(supervise) = supervise.take() else {
            return Ok(());
        };
        let account = Arc::clone(&self.account);
        let config = Arc::clone(&self.config);
        let spawned = thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                let result = catch_unwind(AssertUnwindSafe(|| supervise(files)))
                    .unwrap_or_else(|_| Err(broken("the supervisor")));
                config.work.over();
                *account.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                account.1.notify_all();
            });
        let handle = spawned.map_err(DriveError::thread)?;
        let mut supervisor = self
            .supervisor
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *supervisor = Some(handle);
        Ok(())
    }

    /// The intervals that have ended since the last look, the latest one, and the totals so far, as JSON.
    #[must_use]
    pub fn progress(&self) -> String {
        let mut progress = self
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // As it is now: whoever is to let a step begin must not wait for an interval's end.
        if let Some(load) = self.config.work.load() {
            progress.gain = Some(load.gain());
        }
        progress.messages = self
            .config
            .messages
            .as_ref()
            .map(|messages| messages.take());
        progress.steps = self.config.work.load().map(|load| StepProgress {
            steps: load.finished_steps(),
            holding: load.holding(),
        });
        if self.config.awaits_go {
            progress.ready = Some(self.control.is_ready());
            progress.began_ns = self.control.began_ns();
        }
        serde_json::to_string(&progress).unwrap_or_default()
    }

    /// Let one of several hosts begin, at this time of its clock ([`clock::now_ns`]).
    pub fn go(&self, at_ns: u64) {
        self.control.go(at_ns);
    }

    /// Ask for an early end.
    pub fn stop(&self) {
        self.control.stop();
        self.config.work.end_within(Duration::ZERO);
    }

    /// Let the next step of a load begin, if it waits for that word; to the first of several hosts that share a
    /// script: all others have ended.
    pub fn proceed(&self) {
        if let Some(load) = self.config.work.load() {
            load.proceed();
        }
        self.config.work.others_ended();
    }

    /// The account (drive.json) once the drive has ended, given once; `None` when it has not within `timeout`, or
    /// when it waits for the word to [`Drive::proceed`].
    pub fn wait(&self, timeout: Duration) -> Option<DriveResult> {
        let until_ns =
            now_ns().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        let (lock, ended) = &*self.account;
        let mut account = lock.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            if account.is_some() || left.is_zero() || self.is_holding() {
                return account.take();
            }
            let pause = if self.may_hold() { HOLD_LOOK } else { left };
            (account, _) = ended
                .wait_timeout(account, pause.min(left))
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Steps are to wait for a word.
    fn may_hold(&self) -> bool {
        self.spec.load.as_ref().is_some_and(|load| load.hold)
    }

    /// One does.
    fn is_holding(&self) -> bool {
        let load = self.config.work.load().filter(|_| self.may_hold());
        load.is_some_and(LoadWork::holding) && !self.control.stop_asked()
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.stop();
        if let Some(messages) = &self.config.messages {
            messages.close();
        }
        if let Some(handle) = self
            .supervisor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            let _ = handle.join();
        }
    }
}

fn broken(who: &str) -> DriveError {
    DriveError::System {
        what: format!("{who} failed"),
        source: std::io::Error::other("see the message above"),
        hint: "this is a bug of Loadstone: please report it with the plan and the message"
            .to_owned(),
    }
}

/// What the supervisor's thread works with.
struct Run<P: Protocol> {
    spec: DriveSpec,
    config: Arc<Config>,
    connector: Arc<Connector<P>>,
    control: Arc<Control>,
    progress: Arc<Mutex<Progress>>,
}

impl<P: Protocol> Run<P> {
    fn supervise(&self, files: Files) -> DriveResult {
        let begun_ns = now_ns();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = self.spec.threads_or(cores);
        let canceller = Canceller::start(&self.connector)?;
        if let Some(load) = self.config.work.load() {
            load.begin()?;
        }
        let logs = self.logs(threads)?;
        let (reports, inbox) = channel();
        let mut record_pool = Vec::with_capacity(threads);
        let handles = self
            .assignments(threads, &reports, &canceller, &mut record_pool, logs.books)
            .into_iter()
            .filter_map(|assignment| spawn(assignment, self.spec.io))
            .collect::<Vec<_>>();
        drop(reports);
        let met = self.meet(threads);
        let collected = match met {
            Ok(timeline) => {
                let timeline = timeline.unwrap_or_else(|| self.timeline(None));
                Ok((timeline, self.collect(timeline, files, record_pool, &inbox)))
            }
            Err(error) => {
                drop(record_pool);
                Err(error)
            }
        };
        for handle in handles {
            let _ = handle.join();
        }
        canceller.finish();
        if let Some(load) = self.config.work.load() {
            load.finish();
        }
        let unwritten = logs
            .writers
            .into_iter()
            .filter_map(|w| w.finish().err())
            .last();
        let (timeline, mut collected) = collected?;
        collected.output_error = collected.output_error.or(unwritten);
        let connect_wall_ns = timeline.start_ns.saturating_sub(START_DELAY_NS + begun_ns);
        let ending = Ending {
            stopped: self.control.stop_asked(),
            threads,
            connect_wall_ns,
            stall: self.control.stall.longest(timeline.measure_ns),
        };
        if let Some(records) = &mut collected.records
            && let Err(error) = (self.config.work)
                .parts(&mut |part| records.part(&part))
                .and_then(|()| records.end(&Ended::new(&ending, &collected.finishes, &self.config)))
        {
            collected.output_error = Some(error.to_string());
        }
        Ok(self.account(timeline, &ending, &mut collected))
    }

    /// The log of each worker, if one is wanted.
    fn logs(&self, threads: usize) -> Result<Logs, DriveError> {
        let Some(log) = &self.spec.log else {
            return Ok(Logs::none(threads));
        };
        let form = Form {
            interval_s: log.interval_s,
            detailed: log.detailed,
            under_a_rate: self.config.under_a_rate,
            may_skip: self.config.latency_limit_ns.is_some(),
            may_retry: self.config.tries_max != 1,
            after_warmup: self.spec.warmup_s > 0.0,
        };
        Logs::open(log, form, threads, self.spec.seed)
    }

    fn timeline(&self, go_at_ns: Option<u64>) -> Timeline {
        let start_ns = go_at_ns.unwrap_or_else(|| now_ns() + START_DELAY_NS);
        let (warmup_s, duration_s) = (self.spec.warmup_s, self.spec.duration_s);
        let timeline = Timeline::new(start_ns, warmup_s, duration_s, self.config.interval_ns);
        self.progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .begin(&timeline);
        self.watch_end(&timeline);
        timeline
    }

    /// Wait for all workers, and let them begin.
    fn meet(&self, workers: usize) -> Result<Option<Timeline>, DriveError> {
        self.watch_start();
        let awaits_go = self.config.awaits_go;
        let met = (self.control).start_together(workers, awaits_go, |at| self.timeline(at));
        if let Some(lua) = self.config.work.lua() {
            lua.started(met.is_err());
        }
        met
    }

    /// Scripts have to get ready in time.
    fn watch_start(&self) {
        // Of several hosts each awaits the others.
        if let (Some(lua), false) = (self.config.work.lua(), self.config.awaits_go) {
            let control = Arc::clone(&self.control);
            lua.watch_start(move |why| control.give_up(DriveError::bad_spec(why, "")));
        }
    }

    /// A script that holds up its thread is interrupted when what is in flight has to end.
    fn watch_end(&self, timeline: &Timeline) {
        if let (Some(deadline_ns), Some(_)) = (timeline.deadline_ns, self.spec.drain_s) {
            let end_ns = deadline_ns.saturating_add(self.config.drain_ns);
            let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
            self.config.work.end_within(left);
        }
    }

    fn assignments(
        &self,
        threads: usize,
        reports: &Sender<Report>,
        canceller: &Canceller<P>,
        record_pool: &mut Vec<std::sync::mpsc::SyncSender<Box<Record>>>,
        logs: Vec<Option<Logbook>>,
    ) -> Vec<Assignment<P>> {
        let (clients, schedules) = self.make_clients(threads);
        deal(clients, threads)
            .into_iter()
            .zip(schedules)
            .zip(logs)
            .enumerate()
            .map(|(number, ((clients, schedule), log))| {
                let (give, take) = sync_channel(RECORDS_PER_WORKER);
                record_pool.push(give);
                Assignment {
                    number,
                    clients,
                    schedule,
                    config: Arc::clone(&self.config),
                    connector: Arc::clone(&self.connector),
                    control: Arc::clone(&self.control),
                    reports: reports.clone(),
                    cancels: canceller.sender(),
                    record_pool: take,
                    log,
                }
            })
            .collect()
    }

    /// All clients with their programs, in client order, and the schedules of the workers.
    ///
    /// Random streams belong to clients, not to threads: the same seed gives every client the same choices however
    /// many threads share the work.
    fn make_clients(&self, threads: usize) -> (Vec<Client<P>>, Vec<Schedule>) {
        let spec = &self.spec;
        let (draws, mut seeds) = Config::draw(spec);
        let clients = draws
            .iter()
            .map(|draw| {
                Client::new(
                    draw.client,
                    self.config.work.program(spec, draw),
                    spec.transactions_per_client,
                )
            })
            .collect();
        let pace = spec.pace_with_warmup();
        let schedules = (0..threads as u64)
            .map(|worker| {
                let prng = seeds.next_prng();
                Schedule::shared(pace.clone(), worker, threads as u64, spec.share(), prng)
            })
            .collect();
        (clients, schedules)
    }

    fn collect(
        &self,
        timeline: Timeline,
        files: Files,
        record_pool: Vec<std::sync::mpsc::SyncSender<Box<Record>>>,
        inbox: &Receiver<Report>,
    ) -> Collected {
        let progress = Arc::clone(&self.progress);
        Collector::new(&self.config, timeline, files.output, progress, record_pool)
            .keeping(files.records)
            .collect(inbox)
    }

    fn account(&self, timeline: Timeline, ending: &Ending, collected: &mut Collected) -> String {
        drive_result::write(&self.spec, &self.config, timeline, ending, collected)
    }
}

#[cfg(test)]
mod tests;
