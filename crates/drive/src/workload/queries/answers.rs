//! The answers that were given, once for each distinct query.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::statements::Key;
use crate::answer::Digest;
use crate::spec::queries::{AnswerMode, QueriesSpec};

/// What a client is to do with the rows that come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Digest,
    Rows,
    /// Only how many.
    #[default]
    Count,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Digest(#[serde(with = "crate::answer::saved")] Digest),
    Rows(Value),
}

#[derive(Debug, Default)]
struct State {
    /// Place in `given` of each text.
    known: BTreeMap<Key, usize>,
    /// Number of the query, and its answer.
    given: Vec<(u64, Answer)>,
    left_out: u64,
}

/// Shared by all clients.
#[derive(Debug)]
pub(super) struct Answers {
    mode: AnswerMode,
    max: usize,
    pub(super) rows_max: usize,
    check_repeats: bool,
    /// Most queries only look whether their answer is known; they must not wait for each other.
    state: RwLock<State>,
}

impl Answers {
    pub(super) fn new(spec: &QueriesSpec) -> Self {
        Self {
            mode: spec.answers,
            max: spec.answers_max,
            rows_max: spec.rows_max,
            check_repeats: spec.check_repeats,
            state: RwLock::default(),
        }
    }

    /// What to do with the answer to this text.
    pub(super) fn want(&self, key: Key) -> Want {
        if self.mode == AnswerMode::None {
            return Want::Count;
        }
        let state = self.read();
        let is_known = state.known.contains_key(&key);
        let has_room = state.given.len() < self.max;
        match self.mode {
            AnswerMode::Digest if is_known && !self.check_repeats => Want::Count,
            AnswerMode::Digest if is_known || has_room => Want::Digest,
            AnswerMode::Rows if !is_known && has_room => Want::Rows,
            _ => Want::Count,
        }
    }

    /// Keep the digest, or compare it with the one that is kept: what differs, in words.
    pub(super) fn digest(&self, key: Key, number: u64, digest: Digest) -> Option<String> {
        if let Some(found) = self.read().find(key) {
            return self.difference(found, &digest);
        }
        let mut state = self.write();
        // Another client may have kept its own meanwhile.
        if let Some(found) = state.find(key) {
            return self.difference(found, &digest);
        }
        state.keep(key, number, Answer::Digest(digest), self.max);
        None
    }

    /// Keep the rows of the first answer.
    pub(super) fn rows(&self, key: Key, number: u64, rows: Value) {
        let mut state = self.write();
        if !state.known.contains_key(&key) {
            state.keep(key, number, Answer::Rows(rows), self.max);
        }
    }

    /// An answer came that is not kept for want of room.
    pub(super) fn counted(&self, key: Key) {
        if self.mode != AnswerMode::None && !self.read().known.contains_key(&key) {
            let mut state = self.write();
            state.left_out += u64::from(!state.known.contains_key(&key));
        }
    }

    /// Hand over all answers with the numbers of their queries, and how many were not kept.
    pub(super) fn each<E>(
        &self,
        mut take: impl FnMut(u64, &Answer) -> Result<(), E>,
    ) -> Result<u64, E> {
        let state = self.read();
        for (number, answer) in &state.given {
            take(*number, answer)?;
        }
        Ok(state.left_out)
    }

    /// Take in the answer that another host has had to the query of this number: what differs, in words.
    pub(super) fn join(&self, key: Key, number: u64, answer: Answer) -> Option<String> {
        let mut state = self.write();
        let Some(&at) = state.known.get(&key) else {
            state.keep(key, number, answer, self.max);
            return None;
        };
        let differs = match &answer {
            Answer::Digest(digest) => self.difference(&state.given[at], digest),
            Answer::Rows(_) => None,
        };
        if number < state.given[at].0 {
            state.given[at] = (number, answer);
        }
        differs
    }

    /// So many more were not kept.
    pub(super) fn left_out(&self, count: u64) {
        self.write().left_out += count;
    }

    /// The answers by the queries' numbers, and how many were not kept.
    pub(super) fn account(&self) -> (Vec<Value>, u64) {
        let state = self.read();
        let mut answers: Vec<&(u64, Answer)> = state.given.iter().collect();
        answers.sort_by_key(|(number, _)| *number);
        let answers = answers.into_iter().map(|(number, answer)| match answer {
            Answer::Digest(digest) => json!({"query": number, "digest": digest}),
            Answer::Rows(rows) => {
                let mut rows = rows.clone();
                rows["query"] = json!(number);
                rows
            }
        });
        (answers.collect(), state.left_out)
    }

    fn difference(&self, (first, known): &(u64, Answer), digest: &Digest) -> Option<String> {
        let Answer::Digest(before) = known else {
            return None;
        };
        let words = before.difference(digest).filter(|_| self.check_repeats)?;
        Some(format!(
            "query {first} returned another answer than before: {words} (before: here; now: there)"
        ))
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&self, key: Key) -> Option<&(u64, Answer)> {
        self.known.get(&key).map(|&at| &self.given[at])
    }

    fn keep(&mut self, key: Key, number: u64, answer: Answer, max: usize) {
        if self.given.len() >= max {
            self.left_out += 1;
            return;
        }
        self.known.insert(key, self.given.len());
        self.given.push((number, answer));
    }
}
