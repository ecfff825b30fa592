//! Gathers the workers' records interval by interval, writes them down, and keeps the totals.

mod finish;

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

pub(crate) use self::finish::{Absence, Finish, Outage, Pauses, merge_outages};
use crate::config::Config;
use crate::error::DriveError;
use crate::messages::Line;
use crate::output::{Output, SeriesLatency, SeriesRow};
use crate::record::{Distribution, Latency, Record, WindowCounts};
use crate::saved::Records;
use crate::timeline::Timeline;
use crate::workload::LoadCount;
use crate::workload::load::{Mark, StepResult};

/// So many intervals are kept for who looks late: more than an hour of seconds.
const RECENT: usize = 4096;

/// What a worker tells the collector.
#[derive(Debug)]
pub(crate) enum Report {
    /// One interval's record.
    Interval {
        worker: usize,
        index: u64,
        /// The interval's end, or the worker's, whichever came first.
        end_ns: u64,
        connected: usize,
        record: Box<Record>,
        /// Marks of a load, of one of several hosts; else the load itself has them.
        sent: Vec<Mark>,
    },
    /// The worker's last word.
    Finished(usize, Finish),
}

/// What can be asked while the drive goes on.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Progress {
    /// Done since the start, warm-up included.
    pub(crate) done: u64,
    /// Failed since the start, warm-up included.
    pub(crate) failed: u64,
    /// Rows and metrics stored since the start; loads only.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) gain: Option<LoadCount>,
    /// Timeline of the drive, once it has begun.
    pub(crate) start_ns: Option<u64>,
    pub(crate) measure_ns: Option<u64>,
    pub(crate) deadline_ns: Option<u64>,
    /// The latest complete interval.
    pub(crate) latest: Option<SeriesRow>,
    /// Those that have ended since the last look, for who shows or adds up each.
    #[serde(skip_serializing_if = "VecDeque::is_empty")]
    pub(crate) recent: VecDeque<SeriesRow>,
    /// Why nothing more is written down: the owner may want to stop.
    pub(crate) output_error: Option<String>,
    /// Lines for the user since the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) messages: Option<Vec<Line>>,
    /// All clients are connected and await the word to begin; one of several hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<bool>,
    /// When the last thread did begin; one of several hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) began_ns: Option<u64>,
    /// Steps that are complete; loads by our own driver only.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) steps: Option<StepProgress>,
}

impl Progress {
    /// The drive has its times.
    pub(crate) fn begin(&mut self, timeline: &Timeline) {
        self.start_ns = Some(timeline.start_ns);
        self.measure_ns = Some(timeline.measure_ns);
        self.deadline_ns = timeline.deadline_ns;
    }

    /// What there is to tell now: each interval is told once.
    pub(crate) fn take(&mut self) -> Self {
        let recent = std::mem::take(&mut self.recent);
        let mut told = self.clone();
        told.recent = recent;
        told
    }
}

/// How far the steps of a load are.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct StepProgress {
    /// Those that are complete.
    pub(crate) steps: Vec<StepResult>,
    /// The next waits for the owner's word.
    pub(crate) holding: bool,
}

/// An interval of which some workers have reported.
struct Gathering {
    record: Box<Record>,
    end_ns: u64,
    connected: usize,
    sent: Vec<Mark>,
}

/// The sum over all workers.
pub(crate) struct Collected {
    /// Counts of both windows; latencies of the measured one.
    pub(crate) totals: Record,
    pub(crate) finishes: Vec<Finish>,
    pub(crate) end_ns: u64,
    pub(crate) output_error: Option<String>,
    /// Still open, for the end.
    pub(crate) records: Option<Records>,
    /// Of the measured window; where details are kept.
    pub(crate) distributions: Option<Distributions>,
}

/// What is known of a whole drive without its files.
#[derive(Debug, Default)]
pub(crate) struct Distributions {
    pub(crate) response: Distribution,
    pub(crate) lag: Distribution,
}

pub(crate) struct Collector {
    config: Arc<Config>,
    timeline: Timeline,
    output: Option<Output>,
    records: Option<Records>,
    output_error: Option<String>,
    progress: Arc<Mutex<Progress>>,
    record_pool: Vec<SyncSender<Box<Record>>>,
    gathering: BTreeMap<u64, Gathering>,
    /// First interval that each worker has not reported yet; `u64::MAX` when it has ended.
    reported: Vec<u64>,
    next: u64,
    totals: Record,
    seen: WindowCounts,
    end_ns: u64,
    distributions: Option<Distributions>,
}

impl Collector {
    pub(crate) fn new(
        config: &Arc<Config>,
        timeline: Timeline,
        output: Option<Output>,
        progress: Arc<Mutex<Progress>>,
        record_pool: Vec<SyncSender<Box<Record>>>,
    ) -> Self {
        Self {
            config: Arc::clone(config),
            reported: vec![0; record_pool.len()],
            distributions: (config.messages.as_ref().filter(|t| t.spec.counts))
                .map(|_| Distributions::default()),
            totals: config.blank_record(),
            end_ns: timeline.start_ns,
            gathering: BTreeMap::new(),
            output_error: None,
            records: None,
            next: 0,
            seen: WindowCounts::default(),
            timeline,
            output,
            progress,
            record_pool,
        }
    }

    /// Keep the records of each interval, too: this is one of several hosts.
    pub(crate) fn keeping(mut self, records: Option<Records>) -> Self {
        self.records = records;
        let begun = (self.records.as_mut()).map(|records| records.begin(&self.timeline));
        self.note_written(begun.unwrap_or(Ok(())));
        self
    }

    /// Nothing more is written after an error.
    fn note_written(&mut self, written: Result<(), DriveError>) {
        if let Err(error) = written {
            self.output_error = Some(error.to_string());
            (self.output, self.records) = (None, None);
        }
    }

    /// Gather until every worker has ended.
    pub(crate) fn collect(mut self, reports: &Receiver<Report>) -> Collected {
        let mut finishes = Vec::new();
        while let Ok(report) = reports.recv() {
            match report {
                Report::Interval {
                    worker,
                    index,
                    end_ns,
                    connected,
                    record,
                    sent,
                } => {
                    let gathering = Gathering {
                        record,
                        end_ns,
                        connected,
                        sent,
                    };
                    self.gather(worker, index, gathering);
                }
                Report::Finished(worker, finish) => {
                    self.reported[worker] = u64::MAX;
                    finishes.push(finish);
                }
            }
            self.write_complete();
        }
        // A worker that died without a last word leaves intervals that will never be complete.
        self.reported.fill(u64::MAX);
        self.write_complete();
        if finishes.iter().any(|finish| finish.broken) {
            self.totals.abandon(self.end_ns);
        }
        Collected {
            totals: self.totals,
            finishes,
            end_ns: self.end_ns,
            output_error: self.output_error,
            records: self.records,
            distributions: self.distributions,
        }
    }

    fn gather(&mut self, worker: usize, index: u64, more: Gathering) {
        self.reported[worker] = index + 1;
        if let Some(gathering) = self.gathering.get_mut(&index) {
            gathering.record.merge(&more.record);
            gathering.end_ns = gathering.end_ns.max(more.end_ns);
            gathering.connected += more.connected;
            gathering.sent.extend(more.sent);
            self.give_back(worker, more.record);
        } else {
            self.gathering.insert(index, more);
        }
    }

    fn give_back(&self, worker: usize, mut record: Box<Record>) {
        record.clear();
        // A full channel means that the worker has enough; a closed one that it has ended.
        let _ = self.record_pool[worker].try_send(record);
    }

    fn write_complete(&mut self) {
        let complete = self.reported.iter().copied().min().unwrap_or(u64::MAX);
        while self.next < complete {
            let Some(gathering) = self.gathering.remove(&self.next) else {
                if self.gathering.is_empty() {
                    return;
                }
                self.next += 1;
                continue;
            };
            self.close_interval(self.next, gathering);
            self.next += 1;
        }
    }

    fn close_interval(&mut self, index: u64, gathering: Gathering) {
        let Gathering {
            mut record,
            end_ns,
            connected,
            sent,
        } = gathering;
        let warmup = self.timeline.is_warmup(index);
        let row = self.row(index, end_ns, connected, &record);
        let (marks, progress) = self
            .config
            .work
            .load()
            .map_or_else(Default::default, |load| {
                (load.take_marks(sent), load.take_progress())
            });
        self.end_ns = self.end_ns.max(end_ns);
        if let Some(output) = &mut self.output {
            let written = output
                .interval(&self.timeline, &row, &record)
                .and_then(|()| output.sent(&marks))
                .and_then(|()| output.progress(&progress));
            self.note_written(written);
        }
        if let Some(records) = &mut self.records {
            let written = records.interval(index, (end_ns, connected), &record, &marks);
            self.note_written(written);
        }
        if warmup {
            // Counted, but its latencies are in no figure.
            record.response.clear();
            record.service.iter_mut().for_each(Latency::clear);
            record
                .statements
                .iter_mut()
                .for_each(|(latency, _)| latency.clear());
            for script in &mut record.scripts {
                script.service = crate::record::Moments::default();
                script.response = crate::record::Moments::default();
            }
            record.loop_lag.clear();
            record.lag = crate::record::Moments::default();
            if self.config.connect_per_transaction {
                record.connect = crate::record::Moments::default();
            }
            record.clear_details();
        }
        if let Some(distributions) = &mut self.distributions {
            distributions.response.add(&record.response);
            let lag = record.details.as_ref().and_then(|d| d.lag.as_ref());
            if let Some(lag) = lag {
                distributions.lag.add(lag);
            }
        }
        self.totals.merge(&record);
        self.seen.merge(&record.counts);
        let _ = self.seen.under_way(); // asserts the counting equations
        self.publish(row, &record.counts);
        self.give_back(
            usize::try_from(index).unwrap_or(0) % self.record_pool.len(),
            record,
        );
    }

    fn row(&self, index: u64, end_ns: u64, connected: usize, record: &Record) -> SeriesRow {
        let warmup = self.timeline.is_warmup(index);
        // A burn-in within the measured window is in no figure.
        let counts = if warmup {
            &record.counts.warmup
        } else {
            &record.counts.measured
        };
        SeriesRow {
            start_ns: self.timeline.begin_ns(index),
            end_ns,
            warmup,
            done: counts.done,
            failed: counts.failed,
            skipped: counts.skipped,
            dropped: counts.dropped,
            retries: record.retries,
            retried: self.config.messages.as_ref().map(|_| record.retried),
            connected,
            bytes_sent: record.bytes_sent,
            bytes_received: record.bytes_received,
            gain: self.config.is_load.then_some(LoadCount {
                rows: record.rows,
                metrics: record.metrics,
            }),
            loop_lag_max_ns: record.loop_lag.moments.max_ns(),
            response: SeriesLatency::of(&record.response),
            operations: (record.operations.as_ref())
                .map(|operations| operations.account(&record.response, self.config.percentile)),
            lag_mean_ns: record.lag.stats().mean_ns,
        }
    }

    fn publish(&self, row: SeriesRow, counts: &WindowCounts) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.done += counts.warmup.done + counts.measured.done;
        progress.failed += counts.warmup.failed + counts.measured.failed;
        if let Some(gain) = row.gain {
            let total = progress.gain.get_or_insert_default();
            total.rows += gain.rows;
            total.metrics += gain.metrics;
        }
        progress.recent.push_back(row.clone());
        if progress.recent.len() > RECENT {
            progress.recent.pop_front();
        }
        progress.latest = Some(row);
        progress.output_error.clone_from(&self.output_error);
    }
}
