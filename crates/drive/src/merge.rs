//! The records of several hosts, merged into the files and the account of one drive.
//!
//! Each host's records go through the collector as a worker's do: intervals and histograms are added, counting
//! equations asserted, files written by the same code. Times are moved from each host's clock to that of who merges,
//! by the one instant that all have in common: the start.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde::Deserialize;
use serde_json::Value;

use crate::client::over;
use crate::collector::{Collected, Collector, Finish, Report};
use crate::config::Config;
use crate::drive_result::{self, Ended, Ending};
use crate::error::DriveError;
use crate::output::Output;
use crate::record::{ErrorClass, WindowCounts, count_error};
use crate::saved::{Head, Line};
use crate::spec::DriveSpec;
use crate::stall::Stall;
use crate::timeline::Timeline;
use crate::workload::LoadCount;
use crate::workload::load::HostPart;

/// What is to be merged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MergeSpec {
    /// The drive of all hosts; the merged files go to its folder.
    drive: DriveSpec,
    /// The common start, on the clock of who merges.
    start_ns: u64,
    hosts: Vec<HostRecords>,
}

/// What one host has left.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostRecords {
    name: String,
    /// Its records.jsonl; absent when nothing of it could be fetched.
    #[serde(default)]
    records: Option<PathBuf>,
    /// Why nothing more came of it, if so.
    #[serde(default)]
    lost: Option<String>,
}

/// Merge what the hosts of a drive have recorded, and return the account of them together (drive.json).
///
/// A host that was lost, or whose records end too early, makes the drive an aborted one: what it had in flight has
/// failed.
///
/// # Errors
/// [`DriveError::BadSpec`] when the document or a host's file cannot be read; [`DriveError::Output`].
pub fn merge(document: &str) -> Result<String, DriveError> {
    let spec: MergeSpec = serde_json::from_str(document).map_err(|error| {
        DriveError::bad_spec(format!("what is to be merged does not parse: {error}"), "")
    })?;
    spec.drive.check()?;
    let protocol = spec.drive.connected()?.protocol;
    let config = Arc::new(over!(protocol, P => Config::new::<P>(&spec.drive)?));
    let hosts = spec
        .hosts
        .iter()
        .map(|host| Reader::open(host, spec.start_ns))
        .collect::<Result<Vec<_>, _>>()?;
    merge_all(&spec, &config, hosts)
}

fn merge_all(
    spec: &MergeSpec,
    config: &Arc<Config>,
    hosts: Vec<Reader>,
) -> Result<String, DriveError> {
    let drive = &spec.drive;
    let output = (drive.out_dir.as_ref())
        .map(|dir| Output::create(dir, drive_result::tags(config), config.is_load))
        .transpose()?;
    let timeline = Timeline::new(
        spec.start_ns,
        drive.warmup_s,
        drive.duration_s,
        config.interval_ns,
    );
    // Emptied records go nowhere: the next ones are read.
    let record_pool = hosts.iter().map(|_| sync_channel(0).0).collect();
    let (reports, inbox) = sync_channel(hosts.len().max(1));
    let shared = Arc::clone(config);
    let reading = thread::Builder::new()
        .name("merge".to_owned())
        .spawn(move || read_all(hosts, &reports, &shared))
        .map_err(DriveError::thread)?;
    let progress = Arc::new(Mutex::default());
    let collector = Collector::new(config, timeline, output, progress, record_pool);
    let mut collected = collector.collect(&inbox);
    drop(inbox);
    let ended = reading.join().unwrap_or_default();
    for words in config.work.differences() {
        let errors = &mut collected.totals.errors;
        count_error(errors, ErrorClass::Answer, collected.end_ns, || words);
    }
    join_loads(config, &ended, &collected);
    let ending = together(&ended);
    Ok(drive_result::write(
        drive, config, timeline, &ending, &collected,
    ))
}

/// Hand over all records, interval by interval, so that few of them are in memory; returns how the hosts ended.
fn read_all(mut hosts: Vec<Reader>, reports: &SyncSender<Report>, config: &Config) -> Vec<Ended> {
    let mut ended = Vec::new();
    let mut open = vec![true; hosts.len()];
    let mut interval = 0;
    while open.contains(&true) {
        for (worker, host) in hosts.iter_mut().enumerate() {
            while open[worker] && host.index() <= interval {
                match host.take(worker) {
                    Next::Interval(report) => {
                        let _ = reports.send(*report);
                    }
                    Next::Part(part) => config.work.join(part),
                    Next::End(end) => {
                        open[worker] = false;
                        for finish in &end.finishes {
                            let _ = reports.send(Report::Finished(worker, finish.clone()));
                        }
                        ended.push(*end);
                    }
                }
            }
        }
        interval += 1;
    }
    ended
}

/// Put together what the hosts of a load have loaded.
fn join_loads(config: &Config, ended: &[Ended], collected: &Collected) {
    let Some(load) = config.work.load() else {
        return;
    };
    let parts = ended.iter().map(|host| host.load.clone());
    let parts = parts.map(|part| part.unwrap_or_else(HostPart::of_lost));
    let WindowCounts { warmup, measured } = collected.totals.counts;
    let gain = LoadCount {
        rows: collected.totals.rows,
        metrics: collected.totals.metrics,
    };
    load.take_parts(parts.collect(), warmup.done + measured.done, gain);
}

/// How a drive on several hosts ended.
fn together(hosts: &[Ended]) -> Ending {
    Ending {
        stopped: hosts.iter().any(|host| host.stopped),
        threads: hosts.iter().map(|host| host.threads).sum(),
        connect_wall_ns: (hosts.iter().map(|host| host.connect_wall_ns).max()).unwrap_or(0),
        stall: Stall::of_all(hosts.iter().map(|host| host.stall)),
    }
}

enum Next {
    Interval(Box<Report>),
    Part(Value),
    End(Box<Ended>),
}

/// One host's records, in order.
struct Reader {
    host: HostRecords,
    lines: Option<BufReader<File>>,
    /// Nanoseconds from its clock to ours.
    shift_ns: i64,
    next: Option<Line<Ended>>,
}

impl Reader {
    fn open(host: &HostRecords, start_ns: u64) -> Result<Self, DriveError> {
        let unreadable = |why: String| {
            let message = format!("the records of {} cannot be read: {why}", host.name);
            DriveError::bad_spec(message, "")
        };
        let mut reader = Self {
            host: host.clone(),
            lines: None,
            shift_ns: 0,
            next: None,
        };
        if let Some(path) = &host.records {
            let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
            reader.lines = Some(BufReader::new(file));
            reader.next = reader.line();
            match reader.next.take() {
                Some(Line::Begin(head)) => reader.align(head, start_ns),
                // It never began: no interval, no end.
                _ => reader.lines = None,
            }
            reader.next = reader.line();
        }
        Ok(reader)
    }

    fn align(&mut self, head: Head, start_ns: u64) {
        self.shift_ns = start_ns
            .cast_signed()
            .wrapping_sub(head.start_ns.cast_signed());
    }

    /// The next whole line; nothing after the last one, which may have been cut off.
    fn line(&mut self) -> Option<Line<Ended>> {
        let mut text = String::new();
        let lines = self.lines.as_mut()?;
        let read = lines.read_line(&mut text).ok()?;
        let whole = read > 0 && text.ends_with('\n');
        whole.then(|| serde_json::from_str(&text).ok()).flatten()
    }

    /// The interval that comes next; 0 when none does.
    fn index(&self) -> u64 {
        match &self.next {
            Some(Line::Interval { index, .. }) => *index,
            _ => 0,
        }
    }

    fn take(&mut self, worker: usize) -> Next {
        let by_ns = self.shift_ns;
        match self.next.take() {
            Some(Line::Interval {
                index,
                end_ns,
                connected,
                mut record,
                mut sent,
            }) => {
                self.next = self.line();
                record.shift(by_ns);
                for mark in &mut sent {
                    mark.shift(by_ns);
                }
                let end_ns = end_ns.saturating_add_signed(by_ns);
                Next::Interval(Box::new(Report::Interval {
                    worker,
                    index,
                    end_ns,
                    connected,
                    record,
                    sent,
                }))
            }
            Some(Line::Part(part)) => {
                self.next = self.line();
                Next::Part(part)
            }
            Some(Line::End(mut ended)) => {
                ended.shift(by_ns);
                if let Some(load) = &mut ended.load {
                    load.name_host(&self.host.name);
                }
                Next::End(Box::new(ended))
            }
            Some(Line::Begin(_)) | None => Next::End(Box::new(self.lost())),
        }
    }

    /// The end of a host that says none.
    fn lost(&self) -> Ended {
        let why = self.host.lost.as_deref().unwrap_or("its records end");
        let finish = Finish {
            error: Some(format!("load host {} was lost: {why}", self.host.name)),
            broken: true,
            ..Finish::default()
        };
        Ended {
            finishes: vec![finish],
            ..Ended::default()
        }
    }
}

#[cfg(test)]
mod tests;
