//! Statements by what they did, for workloads that tell such apart.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Errors, Latency, merge_errors};

/// Counts of statements, and of what a program has dealt with by itself.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Operations {
    /// Statements that brought a result, even one without rows.
    pub reads: u64,
    /// Those that changed rows.
    pub writes: u64,
    /// All others that went well.
    pub others: u64,
    /// Connections that the program itself asked to be made anew.
    pub reconnects: u64,
    /// Statements that failed, after which the program has gone on.
    pub ignored: Errors,
}

impl Operations {
    /// Add another part's counts.
    pub fn merge(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.reconnects += other.reconnects;
        merge_errors(&mut self.ignored, &other.ignored);
    }

    /// As series.jsonl and drive.json show them, with a percentile of the response times, if one is wanted.
    pub(crate) fn account(&self, response: &Latency, percentile: Option<f64>) -> Value {
        let ignored = self.ignored.iter().map(|(class, tally)| {
            json!({
                "sqlstate": class.label(),
                "message": tally.message,
                "count": tally.count,
                "first_ns": tally.first_ns,
                "last_ns": tally.last_ns,
            })
        });
        let is_known = response.moments.count > 0;
        let percentile = percentile.filter(|_| is_known);
        json!({
            "reads": self.reads,
            "writes": self.writes,
            "others": self.others,
            "reconnects": self.reconnects,
            "ignored": ignored.collect::<Vec<_>>(),
            "percentile_ns": percentile.map(|p| response.histogram.value_at_quantile(p / 100.0)),
        })
    }
}
