//! How workers end.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::clock::CpuTime;
use crate::protocol::Failure;
use crate::record::ErrorClass;

/// How a worker ended.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Finish {
    pub(crate) io: Cow<'static, str>,
    /// CPU time of the measured window.
    pub(crate) cpu: CpuTime,
    pub(crate) iterations: u64,
    pub(crate) outages: Vec<Outage>,
    /// Clients that were lost, or gave up, and were not replaced.
    pub(crate) absences: Vec<Absence>,
    /// The same, with those that ended after the window.
    pub(crate) ends: Vec<Absence>,
    pub(crate) pauses: Pauses,
    /// Every client left before the end.
    pub(crate) all_gone: bool,
    pub(crate) error: Option<String>,
    /// It died: what was in flight will never end.
    pub(crate) broken: bool,
}

impl Finish {
    /// Move its times by so many nanoseconds.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        let moved = |ns: &mut u64| *ns = ns.saturating_add_signed(by_ns);
        for outage in &mut self.outages {
            moved(&mut outage.start_ns);
            outage.end_ns.iter_mut().for_each(moved);
        }
        for absence in self.absences.iter_mut().chain(&mut self.ends) {
            moved(&mut absence.since_ns);
        }
        self.pauses.longest_start_ns.iter_mut().for_each(moved);
    }
}

/// Why a client takes no part in the drive any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Absence {
    pub(crate) since_ns: u64,
    pub(crate) class: ErrorClass,
    pub(crate) message: String,
}

impl Absence {
    pub(crate) fn new(since_ns: u64, failure: &Failure) -> Self {
        Self {
            since_ns,
            class: failure.class,
            message: failure.message.clone(),
        }
    }
}

/// Times in which a worker's thread did nothing of what it should have done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pauses {
    pub(crate) count: u64,
    pub(crate) total_ns: u64,
    pub(crate) longest_ns: u64,
    /// When the longest began.
    pub(crate) longest_start_ns: Option<u64>,
}

impl Pauses {
    pub(crate) fn note(&mut self, start_ns: u64, length_ns: u64) {
        self.count += 1;
        self.total_ns += length_ns;
        if length_ns > self.longest_ns {
            (self.longest_ns, self.longest_start_ns) = (length_ns, Some(start_ns));
        }
    }
}

/// A time in which connections were lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outage {
    pub(crate) start_ns: u64,
    /// All clients were connected again; `None` when they never were.
    pub(crate) end_ns: Option<u64>,
    /// Most clients without a connection at once.
    pub(crate) clients: usize,
}

/// Outages of several workers, as the server's user saw them: overlapping ones are one.
pub(crate) fn merge_outages(mut outages: Vec<Outage>) -> Vec<Outage> {
    outages.sort_by_key(|outage| outage.start_ns);
    let mut merged: Vec<Outage> = Vec::new();
    for outage in outages {
        match merged.last_mut() {
            Some(last) if last.end_ns.is_none_or(|end| end >= outage.start_ns) => {
                last.end_ns = last.end_ns.zip(outage.end_ns).map(|(a, b)| a.max(b));
                last.clients += outage.clients;
            }
            _ => merged.push(outage),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(start_ns: u64, end_ns: Option<u64>) -> Outage {
        Outage {
            start_ns,
            end_ns,
            clients: 1,
        }
    }

    #[test]
    fn overlapping_outages_are_one() {
        let merged = merge_outages(vec![
            outage(50, Some(60)),
            outage(10, Some(20)),
            outage(15, Some(30)),
        ]);
        assert_eq!(
            merged,
            vec![
                Outage {
                    start_ns: 10,
                    end_ns: Some(30),
                    clients: 2
                },
                outage(50, Some(60))
            ]
        );
    }

    #[test]
    fn an_outage_without_end_swallows_what_follows() {
        let merged = merge_outages(vec![outage(10, None), outage(20, Some(30))]);
        assert_eq!(
            merged,
            vec![Outage {
                start_ns: 10,
                end_ns: None,
                clients: 2
            }]
        );
    }
}
