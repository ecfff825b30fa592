//! A load: rows from a source into tables that are there.
//!
//! One thread takes rows from the source and turns them into finished transactions; clients send them and wait for
//! the answers. What is made and not yet sent is bounded, so memory does not grow with the rows.

mod arrow;
mod batch;
mod encode;
mod intervals;
mod library;
mod long;
mod part;
mod producer;
mod program;
mod queue;
mod ranges;
mod split;
mod steps;
mod stream;
mod tables;
mod tags;
mod tally;
mod transaction;

use std::collections::BTreeMap;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use loadstone_gen::dataset::Dataset;
use serde_json::{Map, Value, json};

pub(crate) use self::batch::{Batch, Content};
use self::encode::is_plain;
pub(crate) use self::intervals::Interval;
use self::library::LibraryLoad;
use self::long::{LANE_LENGTH, LongProducer, Plan};
pub(crate) use self::long::{LongResult, Progress as LongProgress, TxnOutcome};
pub(crate) use self::part::HostPart;
use self::producer::{Place, Producer, ProducerState, Stop, Supply};
use self::program::LoadProgram;
pub(crate) use self::queue::{Found, Queue};
use self::ranges::Ranges;
pub(crate) use self::steps::StepResult;
pub(crate) use self::tables::{Tables, shape_name};
pub(crate) use self::tally::{Mark, Tally};
use self::transaction::TransactionProgram;
use super::blocking::BlockingProgram;
use super::{ClientSeeds, Labels, LoadCount, Program, Readiness, ScriptLabel};
use crate::clock::{CpuTime, now_ns};
use crate::data::DataSpec;
use crate::error::DriveError;
use crate::protocol::{Bulk, Protocol};
use crate::share::Share;
use crate::spec::load::{LoadSpec, LongSpec, Method};
use crate::waker::Waker;

/// Most batches that wait in the lane that all clients share; a few bridge the time that making one takes.
const SHARED_LANE_MAX: usize = 8;
/// What is said where devices are to be hashed to a library's clients.
const NOT_HASHED: &str =
    "rows are not hashed to workers: each worker gets the next batch, whatever devices are in it";
/// How long the end of a load waits for the thread that makes batches.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the clients, the making thread and the account share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) tables: Arc<Tables>,
    pub(crate) queue: Queue,
    pub(crate) making: ProducerState,
    /// How long clients have waited for batches, all together.
    pub(crate) wait_ns: AtomicU64,
    /// Each client has a lane of its own.
    pub(crate) own_lanes: bool,
    tally: Mutex<Tally>,
}

impl Shared {
    pub(crate) fn tally(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client's next batch, or when to ask again; `starved_ns` is since when it waits for rows, zero when it does not.
    pub(crate) fn take(
        &self,
        lane: usize,
        waker: Option<&Arc<Waker>>,
        now_ns: u64,
        starved_ns: &mut u64,
    ) -> Result<Box<Batch>, Readiness> {
        let found = match self.queue.pop(lane, waker, now_ns) {
            Found::Batch(batch) => Ok(batch),
            Found::End => Err(Readiness::Ended),
            Found::Nothing => {
                if *starved_ns == 0 {
                    *starved_ns = now_ns;
                }
                return Err(Readiness::NotYet);
            }
            Found::Held => {
                // Not for want of rows.
                *starved_ns = 0;
                return Err(Readiness::NotYet);
            }
        };
        self.note_wait(now_ns, starved_ns);
        found
    }

    /// A client that may have waited for rows has some.
    fn note_wait(&self, now_ns: u64, starved_ns: &mut u64) {
        let since_ns = std::mem::take(starved_ns);
        if since_ns > 0 {
            let waited_ns = now_ns.saturating_sub(since_ns);
            self.wait_ns.fetch_add(waited_ns, Ordering::Relaxed);
        }
    }

    /// A client has lost its connection for good: where it has a lane of its own, nobody else takes its batches.
    pub(crate) fn client_gone(&self, lane: usize) {
        if self.own_lanes && !self.queue.is_over(lane) {
            let why = format!("client {lane} lost its connection");
            self.tally().give_up(|| why);
            self.abandon();
        }
    }

    /// No more batches are made.
    fn end_making(&self, stopped: Result<(), Stop>) {
        if let Err(Stop::Broken(why)) = stopped {
            self.tally().give_up(|| why);
        }
        self.making.note_cpu();
        self.queue.close();
    }

    /// A batch cannot be stored: no other is begun.
    pub(crate) fn abandon(&self) {
        let left = self.queue.abandon();
        self.tally().throw_away(left);
    }
}

/// The load as the work of a drive.
pub(crate) struct LoadWork {
    shared: Arc<Shared>,
    producer: Mutex<Option<Make>>,
    intervals: Vec<Interval>,
    long: Option<LongSpec>,
    /// What a library adds.
    library: Option<ByLibrary>,
    /// What hosts that have loaded parts of it have left.
    of_hosts: Mutex<Vec<HostPart>>,
}

/// A load through a library.
#[derive(Debug, Default)]
struct ByLibrary {
    hash_workers: bool,
    /// How rows travel.
    mode: OnceLock<String>,
    /// How long the library took to bring them to their resting place.
    finish_ns: AtomicU64,
}

/// In the place of a protocol where a library takes the rows as they are.
struct NoMessages;

impl Bulk for NoMessages {}

/// What the making thread does.
type Make = Box<dyn FnOnce() + Send>;

impl std::fmt::Debug for LoadWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadWork").finish_non_exhaustive()
    }
}

impl LoadWork {
    /// Open the source, and find a place for each of its tables.
    pub(crate) fn new<B: Bulk + 'static>(
        spec: &LoadSpec,
        clients: usize,
        tries_max: u32,
        share: Share,
    ) -> Result<Self, DriveError> {
        if spec.method == Method::Arrow {
            return Err(DriveError::bad_spec(
                "only a library accepts rows as Arrow".to_owned(),
                "use copy_binary, copy_text or insert",
            ));
        }
        Self::open::<B>(spec, clients, tries_max, (share, None))
    }

    /// The same for clients that reach the database through a library.
    pub(crate) fn for_library(spec: &LoadSpec, clients: usize) -> Result<Self, DriveError> {
        let library = ByLibrary {
            hash_workers: spec.hash_workers,
            ..ByLibrary::default()
        };
        // Each client takes the next batch, whatever devices are in it.
        let spec = LoadSpec {
            hash_workers: false,
            ..spec.clone()
        };
        Self::open::<NoMessages>(&spec, clients, 1, (Share::WHOLE, Some(library)))
    }

    fn open<B: Bulk + 'static>(
        spec: &LoadSpec,
        clients: usize,
        tries_max: u32,
        (share, library): (Share, Option<ByLibrary>),
    ) -> Result<Self, DriveError> {
        spec.check()?;
        let intervals = Interval::parse_all(&spec.insert_intervals)?;
        let (supply, dataset) = open(spec)?;
        if spec.hash_workers && is_plain(&dataset) {
            let message = "hash_workers needs rows of devices".to_owned();
            return Err(DriveError::bad_spec(
                message,
                "remove it: any worker sends any rows",
            ));
        }
        // A library gets a long transaction whole.
        let long = spec.transaction.filter(|_| library.is_none());
        let own_lanes = spec.hash_workers || long.is_some();
        let (lanes, length) = match long {
            Some(_) => (clients, LANE_LENGTH),
            None if own_lanes => (clients, 1),
            None => (1, clients.clamp(2, SHARED_LANE_MAX)),
        };
        let tables = Tables::new::<B>(spec, &dataset)?;
        let streams = B::STREAMS && clients == 1 && tries_max == 1 && is_streamable(spec, &tables);
        let step_plan = spec.step_plan().on(share);
        let shared = Arc::new(Shared {
            tables: Arc::new(tables),
            queue: Queue::new(lanes, length, step_plan),
            making: ProducerState::default(),
            wait_ns: AtomicU64::new(0),
            own_lanes,
            tally: Mutex::default(),
        });
        let producer: Make = if let Some(long) = long {
            let producer = pieces::<B>(spec, long, &shared, clients)?;
            Box::new(|| producer.run())
        } else {
            let producer = Producer::<B> {
                supply,
                shared: Arc::clone(&shared),
                lanes,
                batch_rows: spec.batch_rows,
                rows_left: limit(spec),
                place: Place::new(spec.step_plan().rows),
                skip: Ranges::new(&spec.skip),
                share,
                by_library: library.is_some(),
                streams,
                protocol: PhantomData,
            };
            Box::new(|| producer.run())
        };
        Ok(Self {
            shared,
            producer: Mutex::new(Some(producer)),
            intervals,
            long: spec.transaction,
            library,
            of_hosts: Mutex::default(),
        })
    }

    /// What a client of a library does.
    pub(crate) fn blocking_program(
        &self,
        draw: &ClientSeeds,
    ) -> io::Result<Box<dyn BlockingProgram>> {
        let (shared, interval) = (Arc::clone(&self.shared), self.interval(draw.client));
        let program = LibraryLoad::new(shared, interval, draw.stream, self.long.is_some())?;
        Ok(Box::new(program))
    }

    fn interval(&self, client: usize) -> Option<Interval> {
        let last = self.intervals.len().saturating_sub(1);
        self.intervals.get(client.min(last)).copied()
    }

    /// How a library's clients send rows.
    pub(crate) fn set_mode(&self, mode: String) {
        if let Some(library) = &self.library {
            let _ = library.mode.set(mode);
        }
    }

    /// The library has brought what is loaded to its resting place, or said why not.
    pub(crate) fn finished(&self, took_ns: u64, trouble: Option<String>) {
        if let Some(library) = &self.library {
            library.finish_ns.store(took_ns, Ordering::Relaxed);
        }
        if let Some(said) = trouble {
            let why = format!("the load could not be finished: {said}");
            self.shared.tally().give_up(|| why);
        }
    }

    /// Rows and metrics stored so far.
    pub(crate) fn gain(&self) -> LoadCount {
        self.shared.tally().gain()
    }

    /// Begin to make batches.
    pub(crate) fn begin(&self) -> Result<(), DriveError> {
        let mut producer = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(producer) = producer.take() else {
            return Ok(());
        };
        let shared = Arc::clone(&self.shared);
        let body = move || {
            if catch_unwind(AssertUnwindSafe(producer)).is_err() {
                let why = "the thread that generates rows failed: this is a bug of Loadstone";
                shared.tally().give_up(|| why.to_owned());
                shared.queue.close();
            }
            shared.making.end();
        };
        thread::Builder::new()
            .name("load-rows".to_owned())
            .spawn(body)
            .map(drop)
            .map_err(DriveError::thread)
    }

    /// Nothing is sent any more: let the making thread end.
    pub(crate) fn finish(&self) {
        self.shared.abandon();
        self.shared.making.wait(PATIENCE);
    }

    /// The next step may begin, if it waits for that word.
    pub(crate) fn proceed(&self) {
        self.shared.queue.proceed(now_ns());
    }

    /// A step has ended, and the next waits for the word.
    pub(crate) fn holding(&self) -> bool {
        self.shared.queue.holding()
    }

    /// The steps that are complete.
    pub(crate) fn finished_steps(&self) -> Vec<StepResult> {
        self.shared.queue.finished_steps()
    }

    pub(crate) fn labels(&self) -> Labels {
        if self.library.is_some() {
            return Labels::plain(&["batch".to_owned()]);
        }
        let load = ScriptLabel {
            name: "load".to_owned(),
            weight: 1,
        };
        Labels {
            scripts: vec![load],
            statements: self.shared.tables.labels(),
        }
    }

    pub(crate) fn program<P: Protocol>(&self, draw: &ClientSeeds) -> Box<dyn Program<P> + Send> {
        let number = draw.client;
        let interval = self.interval(number);
        let shared = Arc::clone(&self.shared);
        match &self.long {
            Some(long) => Box::new(TransactionProgram::new(shared, number, long.statement_rows)),
            None => Box::new(LoadProgram::new(shared, number, interval, draw.stream)),
        }
    }

    pub(crate) fn mode(&self) -> String {
        let told = self.library.as_ref().and_then(|library| library.mode.get());
        told.map_or_else(|| self.shared.tables.method.name().to_owned(), Clone::clone)
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.tally().failure().map(str::to_owned)
    }

    /// CPU time of making batches.
    pub(crate) fn cpu(&self) -> CpuTime {
        self.shared.making.cpu()
    }

    /// The marks since they were last taken; `of_hosts` are those that hosts have left of the same interval.
    pub(crate) fn take_marks(&self, of_hosts: Vec<Mark>) -> Vec<Mark> {
        let mut tally = self.shared.tally();
        tally.join_marks(of_hosts);
        tally.take_marks()
    }

    pub(crate) fn take_progress(&self) -> Vec<LongProgress> {
        self.shared.tally().take_progress()
    }

    pub(crate) fn account(&self) -> Map<String, Value> {
        let shared = &self.shared;
        let names = shared.tables.series.iter().map(|t| t.label.as_str());
        let tally = shared.tally();
        let failed = tally.failure().is_some();
        let mut load = tally.account(names);
        drop(tally);
        if self.long.is_some() {
            load["transactions"] = json!(shared.tally().transactions());
        }
        load["steps"] = json!(self.steps(failed));
        let cpu = shared.making.cpu();
        load["made_batches"] = shared.making.made.load(Ordering::Relaxed).into();
        load["source"] = json!({
            "wait_ns": shared.wait_ns.load(Ordering::Relaxed),
            "busy_ns": cpu.user_ns + cpu.system_ns,
            "exhausted": shared.making.exhausted.load(Ordering::Relaxed),
        });
        if let Some(library) = &self.library {
            load["finish_ns"] = library.finish_ns.load(Ordering::Relaxed).into();
            let notes: &[&str] = if library.hash_workers {
                &[NOT_HASHED]
            } else {
                &[]
            };
            load["notes"] = json!(notes);
        }
        Map::from_iter([("load".to_owned(), load)])
    }
}

/// Rows that are made faster than any server stores them, by one statement: a batch can be sent while it is made.
fn is_streamable(spec: &LoadSpec, tables: &Tables) -> bool {
    let made = matches!(spec.data, DataSpec::Rows(_));
    made && tables.copies().is_some() && tables.series.len() == 1
}

/// Most rows that are requested.
fn limit(spec: &LoadSpec) -> u64 {
    match spec.limit_rows {
        0 => u64::MAX,
        limit => limit,
    }
}

/// What holds the rows, and their tables.
fn open(spec: &LoadSpec) -> Result<(Supply, Arc<Dataset>), DriveError> {
    let DataSpec::Files(files) = &spec.data else {
        let source = spec.data.open()?;
        let dataset = Arc::clone(source.dataset());
        return Ok((Supply::Values(source), dataset));
    };
    let mut named = spec.tables.iter().flat_map(BTreeMap::keys);
    let (Some(table), None) = (named.next(), named.next()) else {
        let message = "rows of files can be loaded only into one table".to_owned();
        return Err(DriveError::bad_spec(
            message,
            "set one table in tables, with its columns",
        ));
    };
    Ok((Supply::Files(files.open()?), Arc::new(files.dataset(table))))
}

/// What makes long transactions: rows that begin anywhere, once for each client.
fn pieces<B: Bulk>(
    spec: &LoadSpec,
    long: LongSpec,
    shared: &Arc<Shared>,
    clients: usize,
) -> Result<LongProducer<B>, DriveError> {
    let rows = match &spec.data {
        DataSpec::Rows(rows) => rows.rows,
        _ => 0,
    };
    Ok(LongProducer {
        shared: Arc::clone(shared),
        sources: (0..clients)
            .map(|_| spec.data.open())
            .collect::<Result<_, _>>()?,
        plan: Plan {
            rows: rows.min(limit(spec)),
            batch_rows: spec.batch_rows as u64,
            step_rows: spec.step_plan().rows,
            long,
        },
        skip: Ranges::new(&spec.skip),
        protocol: PhantomData,
    })
}
