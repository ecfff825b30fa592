//! Finished batches on their way from the thread that makes them to the clients that send them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::batch::Batch;
use crate::waker::Waker;

/// What a client finds.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its next batch.
    Batch(Box<Batch>),
    /// Nothing yet: its worker will be woken.
    Nothing,
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
    closed: bool,
    sleepers: Vec<Arc<Waker>>,
    /// Memory of batches that are done with.
    spare: Vec<Vec<u8>>,
}

impl Queue {
    pub(crate) fn new(lanes: usize, lane_length: usize) -> Self {
        Self {
            state: Mutex::new(State {
                lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
                closed: false,
                sleepers: Vec::new(),
                spare: Vec::new(),
            }),
            room: Condvar::new(),
            lane_length,
        }
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

    /// Take the next batch of a lane.
    pub(crate) fn pop(&self, lane: usize, waker: Option<&Arc<Waker>>) -> Found {
        let mut state = self.lock();
        if let Some(batch) = state.lanes[lane].pop_front() {
            self.room.notify_all();
            return Found::Batch(batch);
        }
        if state.closed {
            return Found::End;
        }
        if let Some(waker) = waker
            && !state.sleepers.iter().any(|known| Arc::ptr_eq(known, waker))
        {
            state.sleepers.push(Arc::clone(waker));
        }
        Found::Nothing
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
        let left = state.lanes.iter_mut().map(|lane| lane.drain(..).count());
        left.sum::<usize>() as u64
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
        if state.spare.len() <= lanes * self.lane_length {
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
