//! Failures and retries apart by kind, script and command: for who asks for them.

use serde::{Deserialize, Serialize};

use super::{ErrorClass, Latency};

/// What became of the transactions of one script.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Failed in a conflict of transactions (SQLSTATE 40001).
    pub serialization: u64,
    /// Failed in a deadlock (SQLSTATE 40P01).
    pub deadlock: u64,
    /// Failed in another error that did not end the client.
    pub other: u64,
    /// Tried more than once.
    pub retried: u64,
    /// Tries beyond the first.
    pub retries: u64,
}

impl Outcomes {
    /// Count an error after which the client goes on.
    pub fn fail(&mut self, class: ErrorClass) {
        match class {
            ErrorClass::Server(state) if &state == b"40001" => self.serialization += 1,
            ErrorClass::Server(state) if &state == b"40P01" => self.deadlock += 1,
            _ => self.other += 1,
        }
    }

    /// Count the tries of a transaction that has ended.
    pub fn tried(&mut self, tries: u32) {
        if tries > 1 {
            self.retried += 1;
            self.retries += u64::from(tries - 1);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.serialization += other.serialization;
        self.deadlock += other.deadlock;
        self.other += other.other;
        self.retried += other.retried;
        self.retries += other.retries;
    }
}

/// How often a command was run, and how long all of that took.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandTime {
    /// Times that it was run.
    pub count: u64,
    /// Nanoseconds of all of them.
    pub sum_ns: u64,
}

/// By script, and by command; with the distribution of starts that were late.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Details {
    /// In the order of the scripts.
    pub scripts: Vec<Outcomes>,
    /// Errors in each command that were tried again, by its flat number.
    pub repeated: Vec<u64>,
    /// Real minus intended starts, under a rate.
    pub lag: Option<Latency>,
    /// Of commands that need no server, by their flat number; all 0 where they are not measured.
    pub times: Vec<CommandTime>,
}

impl Details {
    /// Empty, for so many scripts and commands.
    #[must_use]
    pub fn new(scripts: usize, commands: usize, under_a_rate: bool) -> Self {
        Self {
            scripts: vec![Outcomes::default(); scripts],
            repeated: vec![0; commands],
            lag: under_a_rate.then(Latency::new),
            times: vec![CommandTime::default(); commands],
        }
    }

    /// Count a command that was run.
    pub fn time(&mut self, flat: u32, ns: u64) {
        let time = &mut self.times[flat as usize];
        time.count += 1;
        time.sum_ns += ns;
    }

    pub(crate) fn clear(&mut self) {
        self.scripts.fill(Outcomes::default());
        self.repeated.fill(0);
        self.lag.iter_mut().for_each(Latency::clear);
        self.times.fill(CommandTime::default());
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.repeated.iter_mut().zip(&other.repeated) {
            *mine += theirs;
        }
        if let (Some(mine), Some(theirs)) = (&mut self.lag, &other.lag) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.times.iter_mut().zip(&other.times) {
            mine.count += theirs.count;
            mine.sum_ns += theirs.sum_ns;
        }
    }
}
