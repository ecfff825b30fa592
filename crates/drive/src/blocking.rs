//! Clients that block in a library's call: one thread each, which takes what is next when it is due, calls, and books.
//!
//! One more thread watches them: it ends the intervals, and the calls that take too long.

mod client;
mod floor;
mod shard;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use self::client::BlockingClient;
use self::floor::{Floor, Slot};
use self::shard::Shard;
use self::watch::Watch;
use crate::client::library::{Library, LibraryClient, LibraryError};
use crate::clock::now_ns;
use crate::collector::{Collected, Collector, Progress, Report};
use crate::config::Config;
use crate::control::Control;
use crate::drive_result::{self, Ending};
use crate::error::DriveError;
use crate::output::Output;
use crate::pace::Schedule;
use crate::record::Record;
use crate::spec::DriveSpec;
use crate::timeline::Timeline;
use crate::workload::blocking::BlockingProgram;

/// Time between the word to start and the first transaction, and for each client's thread to be there.
const START_DELAY_NS: u64 = 2_000_000;
const START_DELAY_OF_ONE_NS: u64 = 20_000;
/// More than one: the thread that holds a shard may lose its core to others, and all who share it wait for it.
const SHARDS_PER_CORE: usize = 8;
/// Records that circulate between a shard and the collector.
const RECORDS_PER_SHARD: usize = 3;
/// What is said of a thread that died.
const BROKEN: &str = "a client's thread failed: this is a bug of Loadstone";

/// What the supervisor's thread works with.
pub(crate) struct Run {
    pub(crate) spec: DriveSpec,
    pub(crate) config: Arc<Config>,
    pub(crate) control: Arc<Control>,
    pub(crate) progress: Arc<Mutex<Progress>>,
    pub(crate) library: Arc<dyn Library>,
}

/// One client before the start.
type Connected = (Box<dyn LibraryClient>, Box<dyn BlockingProgram>);

impl Run {
    /// Connect all clients, let them work, and give the account.
    pub(crate) fn supervise(&self, output: Option<Output>) -> Result<String, DriveError> {
        let begun_ns = now_ns();
        let (clients, schedule) = self.connect()?;
        let connect_wall_ns = now_ns() - begun_ns;
        if let Some(load) = self.config.work.load() {
            load.begin()?;
        }
        let (reports, inbox) = channel();
        let timeline = self.timeline(clients.len());
        let (floor, record_pool) = self.floor(timeline, schedule, &clients, &reports);
        drop(reports); // the inbox ends with the last shard
        let watching = self.start(&floor, clients);
        let collected = watching.map(|watching| {
            let collected = self.collect(timeline, output, record_pool, &inbox);
            let _ = watching.join();
            collected
        });
        if let Some(load) = self.config.work.load() {
            load.finish();
        }
        let ending = Ending {
            stopped: self.control.stop_asked(),
            threads: self.spec.clients,
            connect_wall_ns,
            stall: self.control.stall.longest(timeline.measure_ns),
        };
        Ok(drive_result::write(
            &self.spec,
            &self.config,
            timeline,
            &ending,
            &collected?,
        ))
    }

    /// One after the other: what one cannot have, the others need not try for.
    fn connect(&self) -> Result<(Vec<Connected>, Schedule), DriveError> {
        let (draws, schedule) = Config::draws(&self.spec);
        let mut clients = Vec::with_capacity(draws.len());
        for draw in &draws {
            if self.control.stop_asked() {
                break;
            }
            let client = self.library.connect(draw.client).map_err(unconnected)?;
            let program = self.config.work.blocking_program(draw).map_err(no_waker)?;
            clients.extend(program.map(|program| (client, program)));
        }
        if let (Some(load), Some((client, _))) = (self.config.work.load(), clients.first()) {
            load.set_mode(client.mode());
        }
        Ok((clients, schedule))
    }

    fn timeline(&self, clients: usize) -> Timeline {
        let delay_ns = START_DELAY_NS + START_DELAY_OF_ONE_NS * clients as u64;
        let (warmup_s, duration_s) = (self.spec.warmup_s, self.spec.duration_s);
        let interval_ns = self.config.interval_ns;
        let timeline = Timeline::new(now_ns() + delay_ns, warmup_s, duration_s, interval_ns);
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.begin(&timeline);
        timeline
    }

    fn floor(
        &self,
        timeline: Timeline,
        schedule: Schedule,
        clients: &[Connected],
        reports: &Sender<Report>,
    ) -> (Arc<Floor>, Vec<SyncSender<Box<Record>>>) {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = (SHARDS_PER_CORE * cores).min(clients.len()).max(1);
        let mut record_pool = Vec::with_capacity(count);
        let mut shards = Vec::with_capacity(count);
        for number in 0..count {
            let (give, take) = sync_channel(RECORDS_PER_SHARD);
            record_pool.push(give);
            let connected = (number..clients.len()).step_by(count).len();
            let config = Arc::clone(&self.config);
            let shard = Shard::new(number, config, timeline, connected, reports.clone(), take);
            shards.push(Mutex::new(shard));
        }
        let slots = clients
            .iter()
            .map(|(client, _)| Slot::new(client.interrupter()));
        let floor = Floor::new(
            Arc::clone(&self.config),
            Arc::clone(&self.control),
            timeline,
            schedule,
            shards,
            slots.collect(),
        );
        (Arc::new(floor), record_pool)
    }

    /// Start the clients' threads, and the one that watches them and ends what they have begun.
    fn start(
        &self,
        floor: &Arc<Floor>,
        clients: Vec<Connected>,
    ) -> Result<thread::JoinHandle<()>, DriveError> {
        let mut threads = Vec::with_capacity(clients.len());
        for (place, (client, program)) in clients.into_iter().enumerate() {
            let left = self.spec.transactions_per_client;
            let client = BlockingClient::new(place, Arc::clone(floor), client, program, left);
            let spawned = thread::Builder::new()
                .name(format!("client-{place}"))
                .spawn(move || client.run());
            match spawned {
                Ok(handle) => threads.push(handle),
                Err(source) => {
                    self.control.stop();
                    for handle in threads {
                        let _ = handle.join();
                    }
                    floor.report_all();
                    return Err(DriveError::thread(source));
                }
            }
        }
        let watch = Watch::new(Arc::clone(floor), Arc::clone(&self.library), threads);
        let floor = Arc::clone(floor);
        let body = move || {
            if catch_unwind(AssertUnwindSafe(|| watch.run())).is_err() {
                floor.break_off(BROKEN.to_owned(), true);
                floor.report_all();
            }
        };
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(body)
            .map_err(|source| {
                self.control.stop();
                DriveError::thread(source)
            })
    }

    fn collect(
        &self,
        timeline: Timeline,
        output: Option<Output>,
        record_pool: Vec<SyncSender<Box<Record>>>,
        inbox: &Receiver<Report>,
    ) -> Collected {
        let progress = Arc::clone(&self.progress);
        Collector::new(&self.config, timeline, output, progress, record_pool).collect(inbox)
    }
}

fn unconnected(error: LibraryError) -> DriveError {
    DriveError::Connect {
        address: "the database".to_owned(),
        message: error.message,
        hint: String::new(),
    }
}

fn no_waker(source: std::io::Error) -> DriveError {
    DriveError::System {
        what: "creating a pair of sockets".to_owned(),
        source,
        hint: "raise the limit of open files: ulimit -n".to_owned(),
    }
}
