//! series.jsonl, latency.hlog, sent.jsonl, progress.jsonl: appended to while the drive goes on, each line in one write.
//!
//! drive.json, the one file with texts in it, is written by who owns the drive: secrets are hidden there.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

use crate::error::DriveError;
use crate::record::{Latency, Record};
use crate::timeline::Timeline;
use crate::workload::LoadCount;
use crate::workload::load::{LongProgress as Progress, Mark};

/// One line of series.jsonl.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SeriesRow {
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) warmup: bool,
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
    pub(crate) dropped: u64,
    pub(crate) retries: u64,
    /// Transactions tried more than once; only where lines are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retried: Option<u64>,
    pub(crate) connected: usize,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    /// Loads only.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) gain: Option<LoadCount>,
    pub(crate) loop_lag_max_ns: u64,
    pub(crate) response: Option<SeriesLatency>,
    /// Statements by what they did; only where the workload tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operations: Option<serde_json::Value>,
    /// Mean of real minus intended start; `None` in a closed loop and where nothing ended.
    pub(crate) lag_mean_ns: Option<f64>,
}

/// Latencies of one interval.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SeriesLatency {
    pub(crate) count: u64,
    pub(crate) mean_ns: Option<f64>,
    pub(crate) stddev_ns: Option<f64>,
    pub(crate) p50_ns: u64,
    pub(crate) p95_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
}

impl SeriesLatency {
    pub(crate) fn of(latency: &Latency) -> Option<Self> {
        let stats = latency.moments.stats();
        (stats.count > 0).then(|| Self {
            count: stats.count,
            mean_ns: stats.mean_ns,
            stddev_ns: stats.stddev_ns,
            p50_ns: latency.histogram.value_at_quantile(0.5),
            p95_ns: latency.histogram.value_at_quantile(0.95),
            p99_ns: latency.histogram.value_at_quantile(0.99),
            max_ns: latency.moments.max_ns(),
        })
    }
}

/// The open files of one drive.
pub(crate) struct Output {
    dir: PathBuf,
    series: File,
    histograms: File,
    /// Loads only.
    sent: Option<File>,
    /// Long transactions only.
    progress: Option<File>,
    serializer: V2DeflateSerializer,
    line: String,
    encoded: Vec<u8>,
    /// Tag of each statement, by flat number; empty for what is no statement.
    tags: Vec<String>,
}

impl Output {
    /// Create the files in `dir`, which must exist. `tags` names the statements.
    pub(crate) fn create(dir: &Path, tags: Vec<String>, is_load: bool) -> Result<Self, DriveError> {
        let create = |name: &str| {
            let path = dir.join(name);
            File::create(&path).map_err(|source| DriveError::Output { path, source })
        };
        let mut histograms = create("latency.hlog")?;
        let header = "#[Histogram log format version 1.3]\n#[values: nanoseconds; times: seconds since the start of the drive]\n\
                      \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
        histograms
            .write_all(header.as_bytes())
            .map_err(|source| DriveError::Output {
                path: dir.join("latency.hlog"),
                source,
            })?;
        Ok(Self {
            dir: dir.to_owned(),
            series: create("series.jsonl")?,
            sent: is_load.then(|| create("sent.jsonl")).transpose()?,
            progress: None,
            histograms,
            serializer: V2DeflateSerializer::new(),
            line: String::new(),
            encoded: Vec::new(),
            tags,
        })
    }

    /// Append one interval.
    pub(crate) fn interval(
        &mut self,
        timeline: &Timeline,
        row: &SeriesRow,
        record: &Record,
    ) -> Result<(), DriveError> {
        self.line.clear();
        self.line
            .push_str(&serde_json::to_string(row).unwrap_or_default());
        self.line.push('\n');
        self.series
            .write_all(self.line.as_bytes())
            .map_err(|source| DriveError::Output {
                path: self.dir.join("series.jsonl"),
                source,
            })?;
        self.line.clear();
        self.histogram_line(timeline, row, "response", &record.response);
        if let Some(service) = &record.service {
            self.histogram_line(timeline, row, "service", service);
        }
        for (flat, (latency, _)) in record.statements.iter().enumerate() {
            let tag = std::mem::take(&mut self.tags[flat]);
            self.histogram_line(timeline, row, &tag, latency);
            self.tags[flat] = tag;
        }
        self.histograms
            .write_all(self.line.as_bytes())
            .map_err(|source| DriveError::Output {
                path: self.dir.join("latency.hlog"),
                source,
            })
    }

    /// Append the batches that moved the latest row time.
    pub(crate) fn sent(&mut self, marks: &[Mark]) -> Result<(), DriveError> {
        let Some(file) = &mut self.sent else {
            return Ok(());
        };
        put_lines(marks, &mut self.line);
        file.write_all(self.line.as_bytes())
            .map_err(|source| DriveError::Output {
                path: self.dir.join("sent.jsonl"),
                source,
            })
    }

    /// Append how far long transactions have come; the file is made with its first line.
    pub(crate) fn progress(&mut self, lines: &[Progress]) -> Result<(), DriveError> {
        if lines.is_empty() {
            return Ok(());
        }
        put_lines(lines, &mut self.line);
        let path = self.dir.join("progress.jsonl");
        let mut write = || {
            let file = match &mut self.progress {
                Some(file) => file,
                none => none.insert(File::create(&path)?),
            };
            file.write_all(self.line.as_bytes())
        };
        write().map_err(|source| DriveError::Output { path, source })
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "times of a run, to the microsecond"
    )]
    fn histogram_line(
        &mut self,
        timeline: &Timeline,
        row: &SeriesRow,
        tag: &str,
        latency: &Latency,
    ) {
        if latency.moments.count == 0 || tag.is_empty() {
            return;
        }
        self.encoded.clear();
        if self
            .serializer
            .serialize(&latency.histogram, &mut self.encoded)
            .is_err()
        {
            return; // only a histogram beyond the format's 2 GB fails
        }
        let warmup = if row.warmup { "warmup-" } else { "" };
        let start_s = (row.start_ns - timeline.start_ns) as f64 / 1e9;
        let length_s = row.end_ns.saturating_sub(row.start_ns) as f64 / 1e9;
        let max_ms = latency.moments.max_ns() as f64 / 1e6;
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.line,
            "Tag={warmup}{tag},{start_s:.6},{length_s:.6},{max_ms:.6},{}",
            STANDARD.encode(&self.encoded)
        );
    }
}

/// Each as a line of JSON.
fn put_lines(lines: &[impl Serialize], out: &mut String) {
    out.clear();
    for line in lines {
        out.push_str(&serde_json::to_string(line).unwrap_or_default());
        out.push('\n');
    }
}
