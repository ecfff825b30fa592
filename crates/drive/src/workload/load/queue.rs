//! Finished batches on their way from the thread that makes them to the clients that send them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::batch::Batch;
use super::steps::{StepResult, Steps};
use super::stream::AHEAD;
use crate::spec::load::StepPlan;
use crate::waker::Waker;

/// What a client finds.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its next batch.
    Batch(Box<Batch>),
    /// Nothing yet: its worker will be woken.
    Nothing,
    /// A batch of a step that may not begin yet: its worker will be woken.
    Held,
    /// There will be none.
    End,
}

/// One lane that all clients share, or one for each.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    room: Condvar,
    lane_length: usize,
}

#[derive(Debug)]
struct State {
    lanes: Vec<VecDeque<Box<Batch>>>,
    steps: Steps,
    closed: bool,
    sleepers: Vec<Arc<Waker>>,
    /// Memory of batches that are done with.
    spare: Vec<Vec<u8>>,
}

impl Queue {
    pub(crate) fn new(lanes: usize, lane_length: usize, step_plan: StepPlan) -> Self {
        Self {
            state: Mutex::new(State {
                lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
                steps: Steps::new(step_plan),
                closed: false,
                sleepers: Vec::new(),
                spare: Vec::new(),
            }),
            room: Condvar::new(),
            lane_length,
        }
    }

    pub(crate) fn lanes(&self) -> usize {
        self.lock().lanes.len()
    }

    /// Wait until one of these lanes has room; of several the emptiest. None when nobody will take more.
    pub(crate) fn roomiest(&self, lanes: &[usize]) -> Option<usize> {
        let mut state = self.lock();
        while !state.closed {
            let lane = lanes
                .iter()
                .copied()
                .min_by_key(|&lane| state.lanes[lane].len());
            if let Some(lane) = lane.filter(|&lane| state.lanes[lane].len() < self.lane_length) {
                return Some(lane);
            }
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Put a batch at the end of a lane; waits while the lane is full. False when nobody will take it.
    pub(crate) fn push(&self, lane: usize, batch: Box<Batch>) -> bool {
        let mut state = self.lock();
        while !state.closed && state.lanes[lane].len() >= self.lane_length {
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return false;
        }
        state.lanes[lane].push_back(batch);
        state.wake();
        true
    }

    /// Take the next batch of a lane, unless it belongs to a step that may not begin yet.
    pub(crate) fn pop(&self, lane: usize, waker: Option<&Arc<Waker>>, now_ns: u64) -> Found {
        let mut state = self.lock();
        let State { lanes, steps, .. } = &mut *state;
        steps.begin(now_ns);
        let admitted = |batch: &mut Box<Batch>| steps.admits(batch.step, now_ns);
        if let Some(batch) = lanes[lane].pop_front_if(admitted) {
            self.room.notify_all();
            return Found::Batch(batch);
        }
        let held = !lanes[lane].is_empty();
        if state.closed && !held {
            return Found::End;
        }
        if let Some(waker) = waker
            && !state.sleepers.iter().any(|known| Arc::ptr_eq(known, waker))
        {
            state.sleepers.push(Arc::clone(waker));
        }
        if held { Found::Held } else { Found::Nothing }
    }

    /// All batches of a step have been put into their lanes.
    pub(crate) fn step_made(&self, step: u64, batches: u64) {
        let mut state = self.lock();
        if state.steps.made(step, batches) {
            state.wake();
        }
    }

    /// A batch has been stored.
    pub(crate) fn stored(&self, rows: u64, acked_ns: u64) {
        let mut state = self.lock();
        if state.steps.stored(rows, acked_ns) {
            state.wake();
        }
    }

    /// The next step may begin, if it waits for that word.
    pub(crate) fn proceed(&self, now_ns: u64) {
        let mut state = self.lock();
        state.steps.proceed(now_ns);
        state.wake();
    }

    /// A step has ended, and there is a next one, or may be, that waits for the word.
    pub(crate) fn holding(&self) -> bool {
        let state = self.lock();
        let over = state.closed && state.lanes.iter().all(VecDeque::is_empty);
        state.steps.holding() && !over
    }

    /// The steps that are complete.
    pub(crate) fn finished_steps(&self) -> Vec<StepResult> {
        self.lock().steps.finished().to_vec()
    }

    /// All steps that were begun.
    pub(crate) fn steps(&self, failed: bool) -> Vec<StepResult> {
        self.lock().steps.account(failed)
    }

    /// No more batches will come; those that are there can still be taken.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.wake();
        self.room.notify_all();
    }

    /// No batch will be taken any more; returns how many are thrown away.
    pub(crate) fn abandon(&self) -> u64 {
        let mut state = self.lock();
        state.closed = true;
        state.wake();
        self.room.notify_all();
        let left = state.lanes.iter_mut().flat_map(|lane| lane.drain(..));
        left.filter(|batch| batch.opens).count() as u64
    }

    /// There is no batch in the lane, and none will come.
    pub(crate) fn is_over(&self, lane: usize) -> bool {
        let state = self.lock();
        state.closed && state.lanes[lane].is_empty()
    }

    /// Nobody takes batches any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Keep a batch's memory for another.
    pub(crate) fn give_back(&self, mut bytes: Vec<u8>) {
        bytes.clear();
        let mut state = self.lock();
        let lanes = state.lanes.len();
        if state.spare.len() <= lanes * self.lane_length + AHEAD {
            state.spare.push(bytes);
        }
    }

    /// Memory for a batch.
    pub(crate) fn memory(&self) -> Vec<u8> {
        self.lock().spare.pop().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        for waker in self.sleepers.drain(..) {
            waker.wake();
        }
    }
}
