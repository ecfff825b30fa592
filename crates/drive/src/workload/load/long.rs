//! Long transactions: rows that go in a few at a time, many in a transaction.
//!
//! A transaction of half a million rows is never whole in memory: it is made in pieces, each as long as what is
//! sent before an answer is awaited, and every client has a lane and a source of its own, so that the pieces of
//! several transactions are made side by side.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadstone_gen::dataset::{Source, TableRows};
use serde::Serialize;

use super::Shared;
use super::batch::{Batch, Content};
use super::encode::{BatchError, content};
use super::producer::Stop;
use super::ranges::Ranges;
use super::tables::{Tables, shape_name};
use crate::protocol::Bulk;
use crate::spec::load::LongSpec;

/// Pieces of a transaction that wait for its client.
pub(crate) const LANE_LENGTH: usize = 4;

/// What has become of a long transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TxnOutcome {
    /// Under way.
    Open,
    Committed,
    /// Nothing of it is stored.
    Lost,
    /// COMMIT was sent, and not answered.
    InDoubt,
}

/// One line of progress.jsonl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    pub(crate) transaction: u64,
    /// Rows that the server has answered.
    pub(crate) rows: u64,
    pub(crate) t_ns: u64,
    pub(crate) state: TxnOutcome,
}

/// A long transaction in drive.json.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct LongResult {
    pub(crate) transaction: u64,
    /// Rows that the server has answered.
    pub(crate) rows: u64,
    /// BEGIN was passed on; none when the connection broke before.
    pub(crate) start_ns: Option<u64>,
    pub(crate) end_ns: u64,
    pub(crate) state: TxnOutcome,
}

/// Makes the pieces of all transactions.
pub(crate) struct LongProducer<B: Bulk> {
    pub(crate) shared: Arc<Shared>,
    /// The rows once for each client.
    pub(crate) sources: Vec<Box<dyn Source>>,
    pub(crate) plan: Plan,
    pub(crate) skip: Ranges,
    pub(crate) protocol: PhantomData<fn() -> B>,
}

/// Which rows each transaction has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Rows of all.
    pub(crate) rows: u64,
    /// Rows of one.
    pub(crate) batch_rows: u64,
    pub(crate) step_rows: Option<u64>,
    pub(crate) long: LongSpec,
}

/// The rows of one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    step: u64,
    first: u64,
    rows: u64,
}

impl Plan {
    /// The rows of a transaction by its number; none after the last.
    fn span(&self, number: u64) -> Option<Span> {
        let step_rows = self.step_rows.unwrap_or(u64::MAX);
        let in_step = step_rows.div_ceil(self.batch_rows);
        let (step, index) = (number / in_step, number % in_step);
        let begin = step.saturating_mul(step_rows);
        let within = index.saturating_mul(self.batch_rows);
        let first = begin.saturating_add(within);
        let rows = self.batch_rows.min(step_rows - within);
        (first < self.rows).then(|| Span {
            step,
            first,
            rows: rows.min(self.rows - first),
        })
    }
}

/// Where one client's transactions stand.
struct Lane {
    source: Box<dyn Source>,
    /// Rows of the source that are gone past.
    at: u64,
    number: u64,
    /// Rows made of the transaction.
    made: u64,
}

impl<B: Bulk> LongProducer<B> {
    /// Make all pieces.
    pub(crate) fn run(mut self) {
        let stopped = self.make_all();
        self.shared.end_making(stopped);
    }

    fn make_all(&mut self) -> Result<(), Stop> {
        self.announce();
        let sources = std::mem::take(&mut self.sources);
        let mut lanes: Vec<Lane> = (0_u64..)
            .zip(sources)
            .map(|(number, source)| Lane {
                source,
                at: 0,
                number,
                made: 0,
            })
            .collect();
        let mut busy: Vec<usize> = (0..lanes.len()).collect();
        busy.retain(|&lane| self.settle(&mut lanes[lane], 0));
        let step = lanes.len() as u64;
        while !busy.is_empty() {
            let lane = self.shared.queue.roomiest(&busy).ok_or(Stop::Unwanted)?;
            let piece = self.piece(&mut lanes[lane])?;
            let closes = piece.closes;
            self.hand_over(lane, piece)?;
            if closes && !self.settle(&mut lanes[lane], step) {
                busy.retain(|&other| other != lane);
            }
            self.shared.making.note_cpu();
        }
        self.shared.making.exhausted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Say how many transactions each step has, those that were stored before not among them.
    fn announce(&self) {
        let (mut step, mut batches) = (0, 0);
        for number in 0.. {
            let Some(span) = self.plan.span(number) else {
                break;
            };
            if span.step != step {
                self.shared.queue.step_made(step, batches);
                (step, batches) = (span.step, 0);
            }
            if self.skip.contains(number) {
                self.shared.tally().skip(&Content::default());
            } else {
                batches += 1;
            }
        }
        self.shared.queue.step_made(step, batches);
    }

    /// Go to the lane's next transaction, `by` further, that is not stored yet; false when there is none.
    fn settle(&self, lane: &mut Lane, by: u64) -> bool {
        lane.number += by;
        lane.made = 0;
        while self.skip.contains(lane.number) {
            lane.number += self.shared.queue.lanes() as u64;
        }
        self.plan.span(lane.number).is_some()
    }

    /// The next piece of a lane's transaction.
    fn piece(&self, lane: &mut Lane) -> Result<Batch, Stop> {
        let span = self.plan.span(lane.number).ok_or(Stop::Unwanted)?;
        let begin = span.first + lane.made;
        let dataset = Arc::clone(lane.source.dataset());
        if begin > lane.at {
            lane.at += lane.source.pass(begin - lane.at)?;
        }
        let most = (span.rows - lane.made).min(self.plan.long.mark_rows as u64);
        let chunk = lane
            .source
            .next(usize::try_from(most).unwrap_or(usize::MAX))?;
        let chunk = chunk.filter(|chunk| chunk.rows == most).ok_or_else(|| {
            Stop::Broken(format!(
                "the rows end at row {begin}, but there should be more"
            ))
        })?;
        lane.at += chunk.rows;
        let mut piece = Batch {
            number: lane.number,
            step: span.step,
            content: content(&chunk, &dataset).map_err(BatchError::from)?,
            bytes: self.shared.queue.memory(),
            opens: lane.made == 0,
            closes: lane.made + most == span.rows,
            ..Batch::default()
        };
        lane.made += most;
        for part in &chunk.tables {
            self.put(part, &mut piece)?;
        }
        Ok(piece)
    }

    /// The INSERTs of a piece, and where an answer is to be awaited.
    fn put(&self, part: &TableRows, piece: &mut Batch) -> Result<(), BatchError> {
        let long = self.plan.long;
        let target = &self.shared.tables.series[part.table];
        let (rows, columns) = (part.rows.num_rows(), part.rows.num_columns());
        let mut tuples = Vec::new();
        B::put_values(&part.rows, &mut tuples)?;
        let mut rest = &tuples[..];
        for first in (0..rows).step_by(long.statement_rows) {
            let count = long.statement_rows.min(rows - first);
            let name = if count == long.statement_rows {
                shape_name(Tables::shape(part.table, 0))
            } else {
                B::put_prepare("", &target.insert_sql(count), &mut piece.bytes)?;
                String::new()
            };
            rest = B::put_execute(&name, columns, count, rest, &mut piece.bytes)?;
            if !long.pipeline {
                B::put_sync(&mut piece.bytes);
                piece.parts.push((piece.bytes.len(), count as u64));
            }
        }
        if long.pipeline {
            B::put_sync(&mut piece.bytes);
            piece.parts.push((piece.bytes.len(), rows as u64));
        }
        Ok(())
    }

    fn hand_over(&self, lane: usize, piece: Batch) -> Result<(), Stop> {
        let opens = piece.opens;
        let made = &self.shared.making.made;
        made.fetch_add(u64::from(opens), Ordering::Relaxed);
        if self.shared.queue.push(lane, Box::new(piece)) {
            return Ok(());
        }
        self.shared.tally().throw_away(u64::from(opens));
        Err(Stop::Unwanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_have_all_rows_and_none_crosses_a_step() {
        let long = LongSpec {
            statement_rows: 1,
            pipeline: true,
            mark_rows: 1,
        };
        for (rows, batch_rows, step_rows) in [
            (100, 7, Some(20)),
            (100, 30, None),
            (5, 9, Some(3)),
            (0, 1, None),
        ] {
            let plan = Plan {
                rows,
                batch_rows,
                step_rows,
                long,
            };
            let spans: Vec<Span> = (0..).map_while(|number| plan.span(number)).collect();
            let mut next = 0;
            for span in &spans {
                assert_eq!(span.first, next);
                assert!(span.rows > 0 && span.rows <= batch_rows);
                if let Some(step_rows) = step_rows {
                    assert_eq!(span.first / step_rows, span.step);
                    assert_eq!((span.first + span.rows - 1) / step_rows, span.step);
                }
                next += span.rows;
            }
            assert_eq!(next, rows);
        }
    }
}
