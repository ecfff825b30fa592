//! A load: rows from a source into tables that are there.
//!
//! One thread takes rows from the source and turns them into finished transactions; clients send them and wait for
//! the answers. What is made and not yet sent is bounded, so memory does not grow with the rows.

mod batch;
mod encode;
mod intervals;
mod producer;
mod queue;
mod ranges;
mod spec;
mod split;
mod steps;
mod tables;
mod tags;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use loadstone_gen::dataset::Source;
use serde_json::{Map, Value, json};

pub(crate) use self::batch::Batch;
pub(crate) use self::intervals::Interval;
use self::producer::{Making, Place, Producer};
pub(crate) use self::queue::{Found, Queue};
use self::ranges::Ranges;
pub(crate) use self::spec::LoadSpec;
pub(crate) use self::steps::StepAccount;
pub(crate) use self::tables::{Tables, shape_name};
pub(crate) use self::tally::{Mark, Tally};
use crate::clock::{CpuTime, now_ns};
use crate::error::DriveError;
use crate::program::Program;
use crate::program::load::LoadProgram;
use crate::work::{Draw, Labels, ScriptLabel};

/// Most batches that wait in the lane that all clients share; a few bridge the time that making one takes.
const SHARED_LANE_MAX: usize = 8;
/// How long the end of a load waits for the thread that makes batches.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the clients, the making thread and the account share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) tables: Arc<Tables>,
    pub(crate) queue: Queue,
    pub(crate) making: Making,
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

    /// A batch cannot be stored: no other is begun.
    pub(crate) fn abandon(&self) {
        let left = self.queue.abandon();
        self.tally().throw_away(left);
    }
}

/// The load as the work of a drive.
pub(crate) struct LoadWork {
    shared: Arc<Shared>,
    producer: Mutex<Option<Producer>>,
    intervals: Vec<Interval>,
}

impl std::fmt::Debug for LoadWork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadWork").finish_non_exhaustive()
    }
}

impl LoadWork {
    /// Open the source, and find a place for each of its tables.
    pub(crate) fn new(spec: &LoadSpec, clients: usize) -> Result<Self, DriveError> {
        spec.check()?;
        let intervals = Interval::parse_all(&spec.insert_intervals)?;
        let source: Box<dyn Source> = spec.data.open()?;
        let tables = Arc::new(Tables::new(spec, source.dataset())?);
        let (lanes, length) = if spec.hash_workers {
            (clients, 1)
        } else {
            (1, clients.clamp(2, SHARED_LANE_MAX))
        };
        let shared = Arc::new(Shared {
            tables,
            queue: Queue::new(lanes, length, spec.rhythm()),
            making: Making::default(),
            wait_ns: AtomicU64::new(0),
            own_lanes: spec.hash_workers,
            tally: Mutex::default(),
        });
        let producer = Producer {
            source,
            shared: Arc::clone(&shared),
            lanes,
            batch_rows: spec.batch_rows,
            rows_left: match spec.limit_rows {
                0 => u64::MAX,
                limit => limit,
            },
            place: Place::new(spec.rhythm().rows),
            skip: Ranges::new(&spec.skip),
        };
        Ok(Self {
            shared,
            producer: Mutex::new(Some(producer)),
            intervals,
        })
    }

    /// Begin to make batches.
    pub(crate) fn begin(&self) -> Result<(), DriveError> {
        let mut producer = self.producer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(producer) = producer.take() else {
            return Ok(());
        };
        let shared = Arc::clone(&self.shared);
        let body = move || {
            if catch_unwind(AssertUnwindSafe(|| producer.run())).is_err() {
                let why =
                    "the thread that makes rows met a broken invariant: this is a bug of Loadstone";
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
    pub(crate) fn finished_steps(&self) -> Vec<StepAccount> {
        self.shared.queue.finished_steps()
    }

    pub(crate) fn labels(&self) -> Labels {
        let load = ScriptLabel {
            name: "load".to_owned(),
            weight: 1,
        };
        Labels {
            scripts: vec![load],
            statements: self.shared.tables.labels(),
        }
    }

    pub(crate) fn program(&self, draw: &Draw) -> Box<dyn Program + Send> {
        let number = draw.client;
        let last = self.intervals.len().saturating_sub(1);
        let interval = self.intervals.get(number.min(last)).copied();
        let shared = Arc::clone(&self.shared);
        Box::new(LoadProgram::new(shared, number, interval, draw.stream))
    }

    pub(crate) fn mode(&self) -> String {
        self.shared.tables.method.name().to_owned()
    }

    pub(crate) fn failure(&self) -> Option<String> {
        self.shared.tally().failure().map(str::to_owned)
    }

    /// CPU time of making batches.
    pub(crate) fn cpu(&self) -> CpuTime {
        self.shared.making.cpu()
    }

    pub(crate) fn take_marks(&self) -> Vec<Mark> {
        self.shared.tally().take_marks()
    }

    pub(crate) fn account(&self) -> Map<String, Value> {
        let shared = &self.shared;
        let names = shared.tables.series.iter().map(|t| t.label.as_str());
        let tally = shared.tally();
        let failed = tally.failure().is_some();
        let mut load = tally.account(names);
        drop(tally);
        load["steps"] = json!(shared.queue.steps(failed));
        let cpu = shared.making.cpu();
        load["made_batches"] = shared.making.made.load(Ordering::Relaxed).into();
        load["source"] = json!({
            "wait_ns": shared.wait_ns.load(Ordering::Relaxed),
            "busy_ns": cpu.user_ns + cpu.system_ns,
            "exhausted": shared.making.exhausted.load(Ordering::Relaxed),
        });
        Map::from_iter([("load".to_owned(), load)])
    }
}
