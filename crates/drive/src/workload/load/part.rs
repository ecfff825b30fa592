//! What one of several hosts has loaded, as it is left behind and put together with the others'.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::LoadWork;
use super::steps::{Outcome, StepResult};
use super::tally::TallyPart;
use crate::clock::CpuTime;
use crate::workload::LoadCount;

/// One host's part of a load, after its end.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct HostPart {
    pub(super) tally: TallyPart,
    pub(super) steps: Vec<StepResult>,
    pub(super) made: u64,
    pub(super) wait_ns: u64,
    pub(super) cpu: CpuTime,
    pub(super) exhausted: bool,
    /// Nothing more is known of it than its intervals say.
    #[serde(default)]
    pub(super) lost: bool,
}

impl HostPart {
    /// That of a host that has left none.
    pub(crate) fn of_lost() -> Self {
        Self {
            lost: true,
            ..Self::default()
        }
    }

    /// Name the host in what it says of itself.
    pub(crate) fn name_host(&mut self, name: &str) {
        self.tally.name_host(name);
    }

    /// Move all times by so many nanoseconds: to the clock of another host.
    pub(crate) fn shift(&mut self, by_ns: i64) {
        for step in &mut self.steps {
            step.start_ns = step.start_ns.saturating_add_signed(by_ns);
            step.end_ns = step.end_ns.map(|ns| ns.saturating_add_signed(by_ns));
        }
    }

    /// All of its batches are stored.
    fn is_whole(&self) -> bool {
        self.exhausted && !self.lost && self.tally.is_whole()
    }

    /// What has become of a step here; `more`: a later one was begun somewhere, which needs the word of all.
    fn outcome(&self, step: u64, more: bool) -> Outcome {
        let known = self.steps.iter().find(|account| account.step == step);
        match known {
            Some(account) => account.state,
            None if self.is_whole() || more => Outcome::Complete,
            None if self.lost => Outcome::Failed,
            None => Outcome::Interrupted,
        }
    }
}

impl LoadWork {
    /// What this host leaves behind, where it is one of several.
    pub(crate) fn part(&self) -> HostPart {
        let shared = &self.shared;
        let tally = shared.tally().part().clone();
        HostPart {
            steps: shared.queue.steps(tally.has_failed()),
            tally,
            made: shared.making.made.load(Ordering::Relaxed),
            wait_ns: shared.wait_ns.load(Ordering::Relaxed),
            cpu: shared.making.cpu(),
            exhausted: shared.making.exhausted.load(Ordering::Relaxed),
            lost: false,
        }
    }

    /// Take what hosts have left behind, all at once, as this load's own; `batches` and `gain` were counted in their
    /// intervals.
    pub(crate) fn take_parts(&self, parts: Vec<HostPart>, batches: u64, gain: LoadCount) {
        let making = &self.shared.making;
        let mut tally = self.shared.tally();
        let mut cpu = CpuTime::default();
        for part in &parts {
            tally.add(&part.tally);
            making.made.fetch_add(part.made, Ordering::Relaxed);
            self.shared
                .wait_ns
                .fetch_add(part.wait_ns, Ordering::Relaxed);
            cpu = cpu.plus(part.cpu);
        }
        if parts.iter().any(|part| part.lost) {
            tally.at_least(batches, gain);
        }
        making.set_cpu(cpu);
        let exhausted = parts.iter().all(|part| part.exhausted);
        making.exhausted.store(exhausted, Ordering::Relaxed);
        *self.of_hosts.lock().unwrap_or_else(PoisonError::into_inner) = parts;
    }

    /// All steps, of all hosts.
    pub(super) fn steps(&self, failed: bool) -> Vec<StepResult> {
        let parts = self.of_hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.is_empty() {
            return self.shared.queue.steps(failed);
        }
        merge_steps(&parts)
    }
}

/// The steps of all hosts together: each ends when it has ended on all of them. A step of which no batch was stored
/// or begun is not there.
fn merge_steps(parts: &[HostPart]) -> Vec<StepResult> {
    let mut all: Vec<StepResult> = Vec::new();
    for account in parts.iter().flat_map(|part| &part.steps) {
        match all.iter_mut().find(|known| known.step == account.step) {
            Some(known) => add(known, account),
            None => all.push(*account),
        }
    }
    all.sort_unstable_by_key(|account| account.step);
    let last = all.last().map_or(0, |account| account.step);
    for account in &mut all {
        let outcomes = parts.iter();
        let outcomes = outcomes.map(|part| part.outcome(account.step, account.step < last));
        account.state = outcomes
            .max_by_key(|&outcome| gravity(outcome))
            .unwrap_or(account.state);
    }
    all.retain(|account| account.batches > 0 || account.state != Outcome::Complete);
    all
}

fn add(known: &mut StepResult, more: &StepResult) {
    // A host without batches of the step says nothing of its times.
    if known.batches == 0 || (more.batches > 0 && more.start_ns < known.start_ns) {
        known.start_ns = more.start_ns;
    }
    known.rows += more.rows;
    known.batches += more.batches;
    known.end_ns = known.end_ns.max(more.end_ns);
}

fn gravity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Complete => 0,
        Outcome::Interrupted => 1,
        Outcome::Failed => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step: u64, batches: u64, times: (u64, u64), state: Outcome) -> StepResult {
        StepResult {
            step,
            first_row: step * 10,
            rows: batches * 5,
            batches,
            start_ns: times.0,
            end_ns: (batches > 0).then_some(times.1),
            state,
        }
    }

    fn whole(steps: Vec<StepResult>) -> HostPart {
        HostPart {
            steps,
            exhausted: true,
            ..HostPart::default()
        }
    }

    fn merged(parts: &[HostPart]) -> Vec<(u64, u64, u64, Option<u64>, Outcome)> {
        let steps = merge_steps(parts);
        let all = steps.iter();
        all.map(|s| (s.step, s.rows, s.start_ns, s.end_ns, s.state))
            .collect()
    }

    #[test]
    fn a_step_lasts_from_the_first_begin_to_the_last_end() {
        use Outcome::Complete;
        let one = whole(vec![
            step(0, 2, (5, 20), Complete),
            step(1, 0, (0, 0), Complete),
        ]);
        let mut other = whole(vec![
            step(0, 1, (104, 130), Complete),
            step(1, 1, (140, 150), Complete),
            step(2, 1, (160, 170), Complete),
        ]);
        other.shift(-100);
        let expected = [
            (0, 15, 4, Some(30), Complete),
            (1, 5, 40, Some(50), Complete),
            (2, 5, 60, Some(70), Complete),
        ];
        assert_eq!(merged(&[one.clone(), other.clone()]), expected);
        assert_eq!(merged(&[other, one]), expected);
    }

    #[test]
    fn a_step_is_complete_where_all_have_completed_it() {
        use Outcome::{Complete, Failed, Interrupted};
        let done = |steps: u64| {
            (0..steps)
                .map(|s| step(s, 1, (s, s + 1), Complete))
                .collect()
        };
        let states = |parts: &[HostPart]| merged(parts).iter().map(|s| s.4).collect::<Vec<_>>();
        let unended = HostPart {
            steps: done(1),
            ..HostPart::default()
        };
        // One has ended its batches of step 1, another has not begun its own.
        assert_eq!(states(&[whole(done(2)), unended]), [Complete, Interrupted]);
        assert_eq!(
            states(&[whole(done(3)), HostPart::of_lost()]),
            [Complete, Complete, Failed]
        );
        // One had batches of the first step alone.
        assert_eq!(
            states(&[whole(done(2)), whole(done(1))]),
            [Complete, Complete]
        );
    }
}
