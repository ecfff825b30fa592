//! Steps: rows by so many, each step begun when the one before it is stored whole.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::spec::load::StepPlan;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Every batch is stored.
    Complete,
    /// A batch, or the making of one, has failed.
    Failed,
    /// The drive ended before.
    Interrupted,
}

/// One step in the account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StepResult {
    pub(super) step: u64,
    pub(super) first_row: u64,
    /// Rows that were stored by this drive, and said to be.
    pub(super) rows: u64,
    /// Likewise.
    pub(super) batches: u64,
    /// Its first batch could be begun.
    pub(super) start_ns: u64,
    /// Its latest batch was said to be stored; none when none was.
    pub(super) end_ns: Option<u64>,
    pub(super) state: Outcome,
}

/// Which batches may be begun, and what has become of the steps.
#[derive(Debug)]
pub(crate) struct Steps {
    step_plan: StepPlan,
    finished: Vec<StepResult>,
    open: Option<StepResult>,
    /// Steps whose batches are all made: number and batches.
    made: VecDeque<(u64, u64)>,
    /// Since when the next step may begin.
    free_ns: Option<u64>,
    holding: bool,
}

impl Steps {
    pub(crate) fn new(step_plan: StepPlan) -> Self {
        Self {
            step_plan,
            finished: Vec::new(),
            open: None,
            made: VecDeque::new(),
            free_ns: None,
            holding: false,
        }
    }

    /// Whether a batch of this step may be begun now; opens the step when it is the next.
    pub(crate) fn admits(&mut self, step: u64, now_ns: u64) -> bool {
        let Some(rows) = self.step_plan.rows else {
            return true;
        };
        match &self.open {
            Some(open) => open.step == step,
            None if self.holding => false,
            None => {
                self.open_step(step, rows, now_ns);
                true
            }
        }
    }

    fn open_step(&mut self, step: u64, rows: u64, now_ns: u64) {
        self.open = Some(StepResult {
            step,
            first_row: step * rows,
            rows: 0,
            batches: 0,
            start_ns: self.free_ns.take().unwrap_or(now_ns),
            end_ns: None,
            state: Outcome::Interrupted,
        });
    }

    /// A client asks for its first batch: from here on the first step may begin.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if self.open.is_none() && !self.holding {
            self.free_ns.get_or_insert(now_ns);
        }
    }

    /// All batches of a step are made; true when that finishes it.
    pub(crate) fn made(&mut self, step: u64, batches: u64) -> bool {
        let StepPlan { rows, in_parts, .. } = self.step_plan;
        if rows.is_none() || (batches == 0 && !in_parts) {
            return false;
        }
        self.made.push_back((step, batches));
        self.finish()
    }

    /// A batch of the open step is stored; true when it was the last.
    pub(crate) fn stored(&mut self, rows: u64, acked_ns: u64) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        open.rows += rows;
        open.batches += 1;
        open.end_ns = open.end_ns.max(Some(acked_ns));
        self.finish()
    }

    /// Close each step whose batches are all made and stored; true when there was one.
    fn finish(&mut self) -> bool {
        let before = self.finished.len();
        while self.finish_one() {}
        self.finished.len() > before
    }

    /// Close the open step once all its batches are made and stored.
    fn finish_one(&mut self) -> bool {
        let known = self.made.front().copied();
        if let (Some((step, 0)), Some(rows), None, false) =
            (known, self.step_plan.rows, self.open, self.holding)
        {
            // None of its batches are here.
            self.open_step(step, rows, 0);
        }
        let Some(mut step) = self
            .open
            .take_if(|open| known == Some((open.step, open.batches)))
        else {
            return false;
        };
        self.made.pop_front();
        step.state = Outcome::Complete;
        self.holding = self.step_plan.hold;
        self.free_ns = step.end_ns.filter(|_| !self.holding);
        self.finished.push(step);
        true
    }

    /// The next step may begin, if it waits for that word.
    pub(crate) fn proceed(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.holding) {
            self.free_ns = Some(now_ns);
            self.finish();
        }
    }

    /// A step has ended, and the next waits for the word.
    pub(crate) fn holding(&self) -> bool {
        self.holding
    }

    /// The steps that are complete, in order.
    pub(crate) fn finished(&self) -> &[StepResult] {
        &self.finished
    }

    /// All steps that were begun; the open one has failed, or was interrupted.
    pub(crate) fn account(&self, failed: bool) -> Vec<StepResult> {
        let open = self.open.map(|mut open| {
            if failed {
                open.state = Outcome::Failed;
            }
            open
        });
        self.finished.iter().copied().chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(hold: bool) -> Steps {
        let rows = Some(100);
        let in_parts = false;
        Steps::new(StepPlan {
            rows,
            hold,
            in_parts,
        })
    }

    #[test]
    fn a_step_without_batches_here_is_waited_for_like_any_other() {
        let mut steps = Steps::new(StepPlan {
            rows: Some(100),
            hold: true,
            in_parts: true,
        });
        steps.begin(1);
        assert!(steps.made(0, 0));
        assert!(steps.holding());
        // Step 1 is another host's alone, too; what is here belongs to step 2.
        assert!(!steps.made(1, 0) && !steps.admits(2, 3));
        steps.proceed(5);
        assert!(steps.holding() && !steps.admits(2, 6));
        steps.proceed(7);
        assert!(!steps.holding() && steps.admits(2, 8));
        assert!(!steps.made(2, 1) && steps.stored(100, 9));
        let found: Vec<_> = steps
            .finished()
            .iter()
            .map(|s| (s.step, s.batches))
            .collect();
        assert_eq!(found, [(0, 0), (1, 0), (2, 1)]);
    }

    #[test]
    fn a_step_begins_when_the_one_before_is_stored_whole() {
        let mut steps = steps(false);
        steps.begin(5);
        assert!(steps.admits(0, 9) && steps.admits(0, 10) && !steps.admits(1, 11));
        assert!(!steps.stored(60, 20));
        assert!(!steps.made(0, 2));
        assert!(!steps.admits(1, 21));
        assert!(steps.stored(40, 30));
        assert!(steps.admits(1, 31));
        let account = serde_json::to_value(steps.account(true)).unwrap();
        assert_eq!(
            account[0],
            serde_json::json!({"step": 0, "first_row": 0, "rows": 100, "batches": 2, "start_ns": 5, "end_ns": 30,
                               "state": "complete"})
        );
        assert_eq!(
            account[1],
            serde_json::json!({"step": 1, "first_row": 100, "rows": 0, "batches": 0, "start_ns": 30, "end_ns": null,
                               "state": "failed"})
        );
        assert_eq!(steps.finished().len(), 1);
    }

    #[test]
    fn a_held_step_waits_for_the_word_and_steps_that_were_skipped_are_not_there() {
        let mut steps = steps(true);
        steps.begin(1);
        assert!(!steps.made(0, 0));
        assert!(!steps.made(7, 1));
        assert!(steps.admits(7, 2));
        assert!(steps.stored(100, 10));
        assert!(steps.holding() && !steps.admits(8, 11));
        steps.begin(12);
        steps.proceed(20);
        assert!(steps.admits(8, 30));
        steps.proceed(31);
        let starts: Vec<u64> = steps.account(false).iter().map(|s| s.start_ns).collect();
        assert_eq!(starts, [1, 20]);
        assert_eq!(steps.account(false)[1].state, Outcome::Interrupted);
    }

    #[test]
    fn a_step_whose_batches_are_stored_before_all_are_known_to_be_made_ends_then() {
        let mut steps = steps(false);
        assert!(steps.admits(0, 2));
        assert!(!steps.stored(100, 10));
        assert!(steps.made(0, 1));
        assert_eq!(steps.finished()[0].end_ns, Some(10));
    }

    #[test]
    fn without_steps_every_batch_is_admitted() {
        let mut steps = Steps::new(StepPlan {
            rows: None,
            hold: false,
            in_parts: false,
        });
        assert!(steps.admits(0, 1) && !steps.stored(5, 2) && !steps.made(0, 1));
        assert!(steps.account(true).is_empty());
    }
}
