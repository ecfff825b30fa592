//! The result of a drive: drive.json, as docs/run-folder.md describes it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::CpuTime;
use crate::collector::{Collected, Finish, merge_outages};
use crate::config::Config;
use crate::record::{Errors, Record, WindowCounts, count_error};
use crate::spec::DriveSpec;
use crate::stall::Stall;
use crate::timeline::Timeline;
use crate::workload::load::{HostPart, LoadWork};

/// How the drive ended, apart from what was recorded.
pub(crate) struct Ending {
    pub(crate) stopped: bool,
    pub(crate) threads: usize,
    /// From the first connection attempt to the last client ready.
    pub(crate) connect_wall_ns: u64,
    /// The longest time in which nothing was done.
    pub(crate) stall: Option<Stall>,
}

/// What is not in the records of intervals, of one of several hosts.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) stopped: bool,
    pub(crate) threads: usize,
    pub(crate) connect_wall_ns: u64,
    pub(crate) stall: Option<Stall>,
    pub(crate) finishes: Vec<Finish>,
    /// Of a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<HostPart>,
}

impl Ended {
    pub(crate) fn new(ending: &Ending, finishes: &[Finish], config: &Config) -> Self {
        Self {
            stopped: ending.stopped,
            threads: ending.threads,
            connect_wall_ns: ending.connect_wall_ns,
            stall: ending.stall,
            finishes: finishes.to_vec(),
            load: config.work.load().map(LoadWork::part),
        }
    }

    /// Move all times by so many nanoseconds: to the clock of another host.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        self.stall.iter_mut().for_each(|stall| stall.shift(by_ns));
        self.finishes
            .iter_mut()
            .for_each(|finish| finish.shift(by_ns));
        self.load.iter_mut().for_each(|part| part.shift(by_ns));
    }
}

/// Tag of each statement in latency.hlog, by flat number; empty for commands that are no statements.
pub(crate) fn tags(config: &Config) -> Vec<String> {
    let statements = config.labels.statements.iter();
    statements
        .map(|label| {
            label.as_ref().map_or_else(String::new, |label| {
                format!("statement-{}.{}", label.script, label.index)
            })
        })
        .collect()
}

/// The account as text.
pub(crate) fn write(
    spec: &DriveSpec,
    config: &Config,
    timeline: Timeline,
    ending: &Ending,
    collected: &Collected,
) -> String {
    let totals = &collected.totals;
    let service = totals.service.as_ref().unwrap_or(&totals.response);
    let (state, reason) = state(config, ending, collected);
    let mut account = json!({
        "format": 1,
        "state": state,
        "reason": reason,
        "output_error": collected.output_error,
        "io": collected.finishes.first().map_or("none", |f| &f.io),
        "threads": ending.threads,
        "clients": spec.own_clients().len(),
        "mode": config.work.mode(),
        "seed": spec.seed,
        "pace": spec.pace,
        "start_ns": timeline.start_ns,
        "measure_ns": timeline.measure_ns,
        "deadline_ns": timeline.deadline_ns,
        "end_ns": collected.end_ns,
        "connect": {
            "wall_ns": ending.connect_wall_ns,
            "latency": totals.connect.stats(),
            "reconnects": totals.reconnects,
        },
        "counts": closed(&totals.counts).measured,
        "warmup_counts": totals.counts.warmup,
        "in_doubt": totals.in_doubt,
        "retried": totals.retried,
        "retries": totals.retries,
        "late": totals.late,
        "response": totals.response.moments.stats(),
        "service": service.moments.stats(),
        "lag": config.under_a_rate.then(|| totals.lag.stats()),
        "errors": listed(&totals.errors),
        "outages": merge_outages(collected.finishes.iter().flat_map(|f| f.outages.clone()).collect()),
        "lost_clients": lost_clients(collected),
        "stall": ending.stall,
        "scripts": scripts(config, collected),
        "statements": statements(config, collected),
        "bytes_sent": totals.bytes_sent,
        "bytes_received": totals.bytes_received,
        "client_cpu": client_cpu(config, collected),
        "loop": {
            "iterations": collected.finishes.iter().map(|f| f.iterations).sum::<u64>(),
            "events": totals.loop_events,
            "lag": totals.loop_lag.moments.stats(),
            "lag_p99_ns": totals.loop_lag.histogram.value_at_quantile(0.99),
            // A pause of the process stops all threads: those of the thread that lost most.
            "pauses": collected.finishes.iter().map(|f| f.pauses).max_by_key(|p| p.total_ns),
        },
    });
    if let Value::Object(account) = &mut account {
        if config.by_library {
            // Who else spends time in this process cannot be told apart, nor is there an event loop.
            account.insert("client_cpu".to_owned(), Value::Null);
            account.insert("loop".to_owned(), Value::Null);
        }
        account.extend(config.work.account(totals));
        account.extend(asked_for(config, collected));
    }
    let mut text = serde_json::to_string_pretty(&account).unwrap_or_default();
    text.push('\n');
    text
}

/// What is there for some drives alone.
fn asked_for(config: &Config, collected: &Collected) -> Vec<(String, Value)> {
    let operations = operations(config, &collected.totals);
    details(collected).into_iter().chain(operations).collect()
}

/// Statements by what they did, where the workload tells.
fn operations(config: &Config, totals: &Record) -> Option<(String, Value)> {
    let operations = totals.operations.as_ref()?;
    let account = operations.account(&totals.response, config.percentile);
    Some(("operations".to_owned(), account))
}

/// Failures and retries apart, and the ends of clients, where that was requested.
fn details(collected: &Collected) -> Option<(String, Value)> {
    let known = collected.totals.details.as_ref()?;
    // Not the lag: it is a histogram, of which percentiles are shown.
    let mut details =
        json!({"scripts": known.scripts, "repeated": known.repeated, "times": known.times});
    let mut ends: Vec<_> = collected.finishes.iter().flat_map(|f| &f.ends).collect();
    ends.sort_by_key(|end| end.since_ns);
    let mut reasons = Errors::new();
    for end in ends {
        count_error(&mut reasons, end.class, end.since_ns, || {
            end.message.clone()
        });
    }
    details["ended"] = json!(listed(&reasons));
    if let Some(distributions) = &collected.distributions {
        details["response_ns"] = distributions.response.percentiles().into();
        details["lag_ns"] = distributions.lag.percentiles().into();
    }
    Some(("details".to_owned(), details))
}

/// CPU time of the driver's threads, and of the thread that makes the rows of a load.
fn client_cpu(config: &Config, collected: &Collected) -> CpuTime {
    let making = config.work.load().map(LoadWork::cpu).unwrap_or_default();
    let workers = collected.finishes.iter();
    workers.fold(making, |sum, finish| sum.plus(finish.cpu))
}

fn state(
    config: &Config,
    ending: &Ending,
    collected: &Collected,
) -> (&'static str, Option<String>) {
    if let Some(error) = collected.finishes.iter().find_map(|f| f.error.clone()) {
        return ("aborted", Some(error));
    }
    if let Some(failure) = config.work.failure() {
        return ("aborted", Some(failure));
    }
    if !collected.finishes.is_empty() && collected.finishes.iter().all(|f| f.all_gone) {
        let mut reason = "every client lost its connection or gave up after an error".to_owned();
        if let Some(tally) = collected
            .totals
            .errors
            .values()
            .max_by_key(|tally| tally.count)
        {
            reason = format!("{reason}: {}", tally.message);
        }
        return ("aborted", Some(reason));
    }
    if ending.stopped {
        return ("interrupted", Some("stopped before it finished".to_owned()));
    }
    ("complete", None)
}

/// Counts of a drive that has ended: nothing is running any more.
fn closed(counts: &WindowCounts) -> &WindowCounts {
    assert_eq!(
        counts.under_way(),
        0,
        "scheduled + carried = done + failed + skipped + dropped: {counts:?}"
    );
    counts
}

/// How many clients took no part any more, and since when and why the first of them.
fn lost_clients(collected: &Collected) -> Value {
    let absences = collected.finishes.iter().flat_map(|f| &f.absences);
    let first = absences.clone().min_by_key(|absence| absence.since_ns);
    json!({
        "count": absences.count(),
        "first_ns": first.map(|first| first.since_ns),
        "sqlstate": first.map(|first| first.class.label()),
        "message": first.map(|first| &first.message),
    })
}

fn listed(errors: &Errors) -> Vec<Value> {
    errors
        .iter()
        .map(|(class, tally)| {
            json!({
                "sqlstate": class.label(),
                "message": tally.message,
                "count": tally.count,
                "first_ns": tally.first_ns,
                "last_ns": tally.last_ns,
            })
        })
        .collect()
}

fn scripts(config: &Config, collected: &Collected) -> Vec<Value> {
    let labels = config.labels.scripts.iter();
    labels
        .zip(&collected.totals.scripts)
        .map(|(label, script)| {
            json!({
                "name": label.name,
                "weight": label.weight,
                "counts": closed(&script.counts).measured,
                "service": script.service.stats(),
                "response": script.response.stats(),
            })
        })
        .collect()
}

fn statements(config: &Config, collected: &Collected) -> Vec<Value> {
    let labels = config.labels.statements.iter();
    labels
        .zip(&collected.totals.statements)
        .filter_map(|(label, (latency, failed))| {
            let label = label.as_ref()?;
            Some(json!({
                "script": label.script,
                "index": label.index,
                "line": label.line,
                "text": label.text,
                "failed": failed,
                "service": latency.moments.stats(),
            }))
        })
        .collect()
}
