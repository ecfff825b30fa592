//! Data sets as files: TSBS's text and others, made by all cores, compressed on the way, written in order.

mod compress;
mod pipeline;
mod rows;
mod sink;
mod tables;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::data::DataSpec;
use crate::error::DriveError;
pub use compress::Compression;
use pipeline::End;

/// More threads than this would only wait for the one that simulates.
const THREADS_MAX: usize = 256;

/// What to generate, and where to.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GenerationSpec {
    /// The rows.
    pub data: DataSpec,
    /// What they become.
    pub format: Format,
    /// Where that goes.
    pub output: OutputSpec,
    /// How it is compressed.
    #[serde(default)]
    pub compress: Compression,
    /// Threads that format and compress; as many as there are cores when absent.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Rows of one file, for plain rows: one file a step. 0: one file, or an open one, for all.
    #[serde(default)]
    pub step_rows: u64,
    /// Whether files of CSV begin with the columns' names, for plain rows; a folder of tables always does.
    #[serde(default)]
    pub header: bool,
}

/// A format of files.
#[derive(Debug, Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// TSBS's pseudo-CSV for `TimescaleDB`.
    Timescaledb,
    /// Influx's line protocol.
    Influx,
    /// Comma-separated values, one file a table.
    Csv,
    /// `PostgreSQL`'s binary COPY, one file a table.
    CopyBinary,
    /// `PostgreSQL`'s text COPY, one file a table.
    CopyText,
}

/// Where the bytes go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// A new file, or a new folder where a format makes one file a table.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// An open file.
    #[serde(default)]
    pub fd: Option<i32>,
    /// Whether a file of this name may be replaced.
    #[serde(default)]
    pub overwrite: bool,
}

/// What has been made so far.
#[derive(Debug, Default)]
struct Counters {
    rows: AtomicU64,
    metrics: AtomicU64,
    /// Before compression.
    plain_bytes: AtomicU64,
    bytes: AtomicU64,
}

/// What was made, when it has ended.
#[derive(Debug, Serialize)]
struct GeneratedRows {
    /// `complete`, `interrupted` or `reader_gone`.
    state: &'static str,
    rows: u64,
    metrics: u64,
    plain_bytes: u64,
    bytes: u64,
    duration_ns: u64,
    threads: usize,
}

#[derive(Serialize)]
struct Progress {
    rows: u64,
    metrics: u64,
    plain_bytes: u64,
    bytes: u64,
    elapsed_ns: u64,
}

type Ending = Result<String, DriveError>;

/// One generation.
pub struct Generation {
    work: Arc<Work>,
    ending: Arc<(Mutex<Option<Ending>>, Condvar)>,
}

/// What the generation's thread shares with its owner.
struct Work {
    spec: GenerationSpec,
    threads: usize,
    stop: AtomicBool,
    counters: Counters,
    begun_ns: AtomicU64,
}

/// What is to be made, with its output open.
enum Job {
    Text(Box<text::Job>),
    Tables(tables::Job),
    Rows(Box<rows::Job>),
}

impl Job {
    fn open(spec: &GenerationSpec) -> Result<Self, DriveError> {
        Ok(match (spec.format, &spec.data) {
            (Format::Timescaledb | Format::Influx, _) => {
                Self::Text(Box::new(text::Job::open(spec)?))
            }
            (_, DataSpec::Rows(data)) => Self::Rows(Box::new(rows::Job::open(spec, data)?)),
            _ => Self::Tables(tables::Job::open(spec)?),
        })
    }

    fn run(
        self,
        threads: usize,
        stop: &AtomicBool,
        counters: &Counters,
    ) -> Result<End, DriveError> {
        match self {
            Self::Text(job) => job.run(threads, stop, counters),
            Self::Tables(job) => job.run(threads, stop, counters),
            Self::Rows(job) => job.run(threads, stop, counters),
        }
    }
}

impl GenerationSpec {
    /// Read and check a document.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`] with what is wrong and the mend.
    pub fn from_json(text: &str) -> Result<Self, DriveError> {
        let spec: Self = serde_json::from_str(text).map_err(|e| {
            let message = format!("the generation's specification does not parse: {e}");
            DriveError::bad_spec(message, "")
        })?;
        spec.data.check()?;
        if spec.output.path.is_some() == spec.output.fd.is_some() {
            let message = "data is written to one place".to_owned();
            return Err(DriveError::bad_spec(
                message,
                "set exactly one of path and fd",
            ));
        }
        let is_rows = matches!(spec.data, DataSpec::Rows(_));
        if !is_rows && (spec.step_rows > 0 || spec.header) {
            return Err(DriveError::bad_spec(
                "step_rows and header are for plain rows".to_owned(),
                "remove them with this data",
            ));
        }
        if spec.threads == Some(0) || spec.threads > Some(THREADS_MAX) {
            let message = format!(
                "{} is not a possible number of threads",
                spec.threads.unwrap_or(0)
            );
            return Err(DriveError::bad_spec(message, "use 1 to 256"));
        }
        Ok(spec)
    }
}

impl Generation {
    /// Nothing is made or opened yet.
    #[must_use]
    pub fn new(spec: GenerationSpec) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = spec.threads.unwrap_or(cores).min(THREADS_MAX);
        Self {
            work: Arc::new(Work {
                spec,
                threads,
                stop: AtomicBool::new(false),
                counters: Counters::default(),
                begun_ns: AtomicU64::new(0),
            }),
            ending: Arc::default(),
        }
    }

    /// Open the output and begin; returns at once. What goes wrong later comes from [`Generation::wait`].
    ///
    /// # Errors
    /// [`DriveError`] when the data cannot be made or the output not be opened.
    pub fn start(&self) -> Result<(), DriveError> {
        let begun = self.work.begun_ns.swap(now_ns(), Ordering::Relaxed);
        if begun != 0 {
            return Err(DriveError::bad_spec(
                "the generation is already started".to_owned(),
                "make a new one",
            ));
        }
        let job = Job::open(&self.work.spec)?;
        let (work, ending) = (Arc::clone(&self.work), Arc::clone(&self.ending));
        let spawned = thread::Builder::new()
            .name("generation".to_owned())
            .spawn(move || {
                let ended = catch_unwind(AssertUnwindSafe(|| work.run(job)));
                let ended = ended.unwrap_or_else(|_| Err(broken()));
                *ending.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
                ending.1.notify_all();
            });
        spawned.map(drop).map_err(DriveError::thread)
    }

    /// What has been made so far, as JSON.
    #[must_use]
    pub fn progress(&self) -> String {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.work.counters;
        let begun_ns = read(&self.work.begun_ns);
        let progress = Progress {
            rows: read(&counters.rows),
            metrics: read(&counters.metrics),
            plain_bytes: read(&counters.plain_bytes),
            bytes: read(&counters.bytes),
            elapsed_ns: if begun_ns == 0 {
                0
            } else {
                now_ns().saturating_sub(begun_ns)
            },
        };
        serde_json::to_string(&progress).unwrap_or_default()
    }

    /// Ask for an early end: what is incomplete is removed.
    pub fn stop(&self) {
        self.work.stop.store(true, Ordering::Relaxed);
    }

    /// The account once the generation has ended; `None` when it has not within `timeout`. Given once.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Option<Ending> {
        let (lock, ended) = &*self.ending;
        let ending = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(ending, timeout, |ending| ending.is_none());
        let (mut ending, _) = waited.unwrap_or_else(PoisonError::into_inner);
        ending.take()
    }
}

impl Work {
    fn run(&self, job: Job) -> Ending {
        let state = match job.run(self.threads, &self.stop, &self.counters) {
            Ok(End::Complete) => "complete",
            Ok(End::Stopped) => "interrupted",
            Ok(End::Broken) => return Err(broken()),
            Err(error) if is_reader_gone(&error) => "reader_gone",
            Err(error) => return Err(error),
        };
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let account = GeneratedRows {
            state,
            rows: read(&self.counters.rows),
            metrics: read(&self.counters.metrics),
            plain_bytes: read(&self.counters.plain_bytes),
            bytes: read(&self.counters.bytes),
            duration_ns: now_ns().saturating_sub(read(&self.begun_ns)),
            threads: self.threads,
        };
        Ok(serde_json::to_string(&account).unwrap_or_default())
    }
}

impl Counters {
    fn add(&self, rows: u64, metrics: u64, plain_bytes: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.metrics.fetch_add(metrics, Ordering::Relaxed);
        self.plain_bytes.fetch_add(plain_bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Whoever read our output has had enough.
fn is_reader_gone(error: &DriveError) -> bool {
    matches!(error, DriveError::System { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
}

fn broken() -> DriveError {
    DriveError::System {
        what: "a thread that generates data failed".to_owned(),
        source: std::io::Error::other("this is a bug of Loadstone"),
        hint: "please report it with the trace above".to_owned(),
    }
}
