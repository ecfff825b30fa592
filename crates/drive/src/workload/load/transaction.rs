//! One client of a load by long transactions: takes the pieces of a transaction one after the other.

use std::sync::Arc;

use super::{Batch, Content, Found, LongResult, Shared, Tables, TxnOutcome, shape_name};
use crate::clock::now_ns;
use crate::protocol::{Failure, Frontend, Message, Protocol};
use crate::waker::Waker;
use crate::workload::{End, LoadCount, Program, Readiness, Step};

/// Pause before the next piece is looked for again: making one is many times faster than having it stored.
const PAUSE_NS: u64 = 200_000;

/// How far a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    /// BEGIN was sent.
    Open,
    /// COMMIT was sent.
    Committing,
}

pub(crate) struct TransactionProgram {
    shared: Arc<Shared>,
    lane: usize,
    waker: Option<Arc<Waker>>,
    /// Rows of one statement, which the connection keeps parsed.
    statement_rows: usize,
    parsed: bool,
    stage: Stage,
    begun: bool,
    number: u64,
    /// BEGIN was passed on.
    start_ns: Option<u64>,
    piece: Option<Box<Batch>>,
    /// Parts of the piece that were sent.
    sent: usize,
    /// What the server has answered of the transaction.
    answered: u64,
    /// What the pieces held that it has answered whole.
    content: Content,
    last: bool,
    starved_ns: u64,
}

impl TransactionProgram {
    pub(crate) fn new(shared: Arc<Shared>, lane: usize, statement_rows: usize) -> Self {
        Self {
            shared,
            lane,
            waker: None,
            statement_rows,
            parsed: false,
            stage: Stage::Fresh,
            begun: false,
            number: 0,
            start_ns: None,
            piece: None,
            sent: 0,
            answered: 0,
            content: Content::default(),
            last: false,
            starved_ns: 0,
        }
    }

    fn begin_transaction(&mut self, frontend: &mut impl Frontend) -> Result<Step, Failure> {
        let mut answers = 1;
        if !self.parsed {
            let sql = self.shared.tables.series[0].insert_sql(self.statement_rows);
            let name = shape_name(Tables::shape(0, 0));
            frontend.prepare(&name, sql.as_bytes())?;
            frontend.sync();
            answers += 1;
        }
        frontend.query(b"BEGIN")?;
        (self.stage, self.start_ns) = (Stage::Open, Some(now_ns()));
        Ok(Step::Exchange { answers })
    }

    /// The next part of the rows, or COMMIT after the last.
    fn go_on(
        &mut self,
        frontend: &mut impl Frontend,
        statements: &mut Vec<u32>,
    ) -> Result<Step, Failure> {
        if self.piece.is_none() && !self.last {
            match self.shared.queue.pop(self.lane, None, now_ns()) {
                Found::Batch(piece) => (self.piece, self.sent) = (Some(piece), 0),
                Found::Nothing | Found::Held => return Ok(Step::Sleep { ns: PAUSE_NS }),
                Found::End => return Err(Failure::script("the load has ended before its rows")),
            }
        }
        let Some(piece) = &self.piece else {
            return self.commit(frontend, statements);
        };
        let from = self
            .sent
            .checked_sub(1)
            .map_or(0, |part| piece.parts[part].0);
        frontend.encoded(&piece.bytes[from..piece.parts[self.sent].0]);
        self.sent += 1;
        statements.push(Tables::rows_label(0));
        Ok(Step::Exchange { answers: 1 })
    }

    fn commit(
        &mut self,
        frontend: &mut impl Frontend,
        statements: &mut Vec<u32>,
    ) -> Result<Step, Failure> {
        let tables = &self.shared.tables;
        let mut answers = 1;
        if let Some(sql) = tables.ledger_sql(self.number, self.answered) {
            frontend.query(sql.as_bytes())?;
            statements.push(tables.ledger_label());
            answers += 1;
        }
        frontend.query(b"COMMIT")?;
        statements.push(tables.commit_label());
        self.stage = Stage::Committing;
        Ok(Step::Exchange { answers })
    }

    /// A part of the rows has been answered.
    fn part_answered(&mut self) {
        let Some(piece) = self.piece.take_if(|piece| {
            self.answered += piece.parts[self.sent - 1].1;
            self.sent == piece.parts.len()
        }) else {
            return;
        };
        self.content.add(&piece.content);
        self.last = piece.closes;
        self.shared.queue.give_back(piece.bytes);
        self.shared
            .tally()
            .progress(self.number, self.answered, now_ns(), TxnOutcome::Open);
    }
}

impl<P: Protocol> Program<P> for TransactionProgram {
    fn attach(&mut self, waker: &Arc<Waker>) {
        self.waker = Some(Arc::clone(waker));
    }

    fn ready(&mut self, now_ns: u64) -> Readiness {
        if self.piece.is_some() {
            return Readiness::Ready;
        }
        let (lane, waker) = (self.lane, self.waker.as_ref());
        match self.shared.take(lane, waker, now_ns, &mut self.starved_ns) {
            Ok(piece) => {
                self.piece = Some(piece);
                Readiness::Ready
            }
            Err(unready) => unready,
        }
    }

    fn begin(&mut self) -> usize {
        self.begun = true;
        self.stage = Stage::Fresh;
        self.number = self.piece.as_ref().map_or(0, |piece| piece.number);
        (self.sent, self.answered, self.last) = (0, 0, false);
        (self.content, self.start_ns) = (Content::default(), None);
        0
    }

    fn retry(&mut self) {
        // Refused by the specification: what was sent is not kept.
    }

    fn resume(&mut self, frontend: &mut P::Frontend<'_>, statements: &mut Vec<u32>) -> Step {
        let step = match self.stage {
            Stage::Fresh => {
                statements.push(Tables::BEGIN);
                self.begin_transaction(frontend)
            }
            Stage::Open => self.go_on(frontend, statements),
            Stage::Committing => Ok(Step::Done),
        };
        step.unwrap_or_else(Step::Failed)
    }

    fn message(&mut self, message: &Message<'_, P>) {
        self.parsed |= matches!(message, Message::Prepared);
    }

    fn answered(&mut self, failed: bool) -> Result<(), Failure> {
        if !failed && self.stage == Stage::Open && self.sent > 0 {
            self.part_answered();
        }
        Ok(())
    }

    fn reconnected(&mut self) {
        self.parsed = false;
    }

    fn may_be_stored(&self) -> bool {
        self.stage == Stage::Committing
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        self.begun = false;
        self.piece = None;
        let (number, rows) = (self.number, self.answered);
        let mut account = LongResult {
            transaction: number,
            rows,
            start_ns: self.start_ns,
            end_ns: now_ns(),
            state: TxnOutcome::Lost,
        };
        match *end {
            End::Done { sent_ns, acked_ns } => {
                (account.end_ns, account.state) = (acked_ns, TxnOutcome::Committed);
                let mut tally = self.shared.tally();
                tally.commit(number, &self.content, sent_ns, acked_ns);
                tally.end_transaction(account);
                drop(tally);
                self.shared.queue.stored(rows, acked_ns);
                let metrics = self.content.metrics;
                LoadCount { rows, metrics }
            }
            End::Failed { failure, in_doubt } => {
                if in_doubt {
                    account.state = TxnOutcome::InDoubt;
                }
                let mut tally = self.shared.tally();
                tally.fail(number, failure, in_doubt);
                tally.end_transaction(account);
                drop(tally);
                self.shared.abandon();
                LoadCount::default()
            }
        }
    }

    fn gone(&mut self) {
        self.shared.client_gone(self.lane);
    }
}

impl Drop for TransactionProgram {
    fn drop(&mut self) {
        if self.piece.is_some() && !self.begun {
            self.shared.tally().throw_away(1);
        }
    }
}
