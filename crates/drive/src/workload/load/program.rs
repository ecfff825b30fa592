//! One client of a load: takes a finished batch, sends it, waits for the answer.

use std::collections::VecDeque;
use std::sync::Arc;

use loadstone_gen::random::Prng;

use super::stream::{Next, Reader};
use super::{Batch, Interval, Shared, shape_name};
use crate::clock;
use crate::protocol::{Failure, Frontend, Message, Protocol};
use crate::waker::Waker;
use crate::workload::{End, LoadCount, Program, Readiness, Step};

/// How much of a batch is handed over at once: it is copied twice on its way, and should still lie in a near cache.
const PIECE_BYTES: usize = 256 * 1024;

pub(crate) struct LoadProgram {
    shared: Arc<Shared>,
    lane: usize,
    waker: Option<Arc<Waker>>,
    /// The batch in flight, or about to be.
    batch: Option<Box<Batch>>,
    begun: bool,
    sent: bool,
    /// Bytes of the batch that were passed on.
    put_bytes: usize,
    interval: Option<Interval>,
    prng: Prng,
    /// Not to begin before; drawn with each begin.
    not_before_ns: u64,
    now_ns: u64,
    /// Since when it waits for a batch; zero when it does not.
    starved_ns: u64,
    /// Statements that the connection knows, by shape.
    parsed: Vec<bool>,
    parsing: VecDeque<u32>,
}

impl LoadProgram {
    pub(crate) fn new(
        shared: Arc<Shared>,
        client: usize,
        interval: Option<Interval>,
        prng: Prng,
    ) -> Self {
        Self {
            lane: if shared.own_lanes { client } else { 0 },
            parsed: vec![false; shared.tables.shapes()],
            shared,
            waker: None,
            batch: None,
            begun: false,
            sent: false,
            put_bytes: 0,
            interval,
            prng,
            not_before_ns: 0,
            now_ns: 0,
            starved_ns: 0,
            parsing: VecDeque::new(),
        }
    }

    fn put(
        &mut self,
        frontend: &mut impl Frontend,
        statements: &mut Vec<u32>,
    ) -> Result<Step, Failure> {
        let Some(batch) = &self.batch else {
            return Err(Failure::script("internal: no batch"));
        };
        let mut from = 0;
        for &(to, shape) in &batch.needs {
            let known = self.parsed[shape as usize] || self.parsing.contains(&shape);
            if !known {
                frontend.encoded(&batch.bytes[from..to]);
                from = to;
                let sql = self.shared.tables.shape_sql(shape);
                frontend.prepare(&shape_name(shape), sql.as_bytes())?;
                self.parsing.push_back(shape);
            }
        }
        let end = batch.bytes.len();
        self.put_bytes = if batch.needs.is_empty() {
            end.min(PIECE_BYTES)
        } else {
            end
        };
        frontend.encoded(&batch.bytes[from..self.put_bytes]);
        statements.extend_from_slice(&batch.statements);
        Ok(Step::Exchange {
            answers: batch.answers,
        })
    }
}

impl LoadProgram {
    /// The next piece of a batch that is still made.
    fn put_rest(&mut self, frontend: &mut impl Frontend) {
        let Some((batch, rest)) = self
            .batch
            .as_ref()
            .and_then(|b| Some((b, b.rest.as_ref()?)))
        else {
            return;
        };
        match rest.next(self.waker.as_ref()) {
            Next::NotYet if self.starved_ns > 0 => return,
            Next::NotYet => return self.starved_ns = clock::now_ns(),
            Next::End => {}
            Next::Piece(piece) => {
                frontend.encoded(&piece);
                self.shared.queue.give_back(piece);
            }
            Next::Broken => refuse(batch, frontend),
        }
        if self.starved_ns > 0 {
            self.shared.note_wait(clock::now_ns(), &mut self.starved_ns);
        }
    }
}

/// The rest of a batch cannot be made: its rows are taken back, and what follows them gets its answers.
fn refuse(batch: &Batch, frontend: &mut impl Frontend) {
    // Constant texts can always be encoded.
    let _ = frontend.refuse_data("the other rows of the batch could not be made", false);
    for _ in 2..batch.answers {
        let _ = frontend.query(b"ROLLBACK");
    }
}

impl<P: Protocol> Program<P> for LoadProgram {
    fn attach(&mut self, waker: &Arc<Waker>) {
        self.waker = Some(Arc::clone(waker));
    }

    fn ready(&mut self, now_ns: u64) -> Readiness {
        self.now_ns = now_ns;
        if self.batch.is_some() {
            return Readiness::Ready;
        }
        if now_ns < self.not_before_ns {
            return Readiness::At {
                ns: self.not_before_ns,
            };
        }
        let (lane, waker) = (self.lane, self.waker.as_ref());
        match self.shared.take(lane, waker, now_ns, &mut self.starved_ns) {
            Ok(batch) => {
                self.batch = Some(batch);
                Readiness::Ready
            }
            Err(unready) => unready,
        }
    }

    fn begin(&mut self) -> usize {
        (self.begun, self.sent) = (true, false);
        if let Some(interval) = self.interval {
            self.not_before_ns = self.now_ns + interval.draw_ns(&mut self.prng);
        }
        0
    }

    fn retry(&mut self) {
        self.sent = false;
    }

    fn resume(&mut self, frontend: &mut P::Frontend<'_>, statements: &mut Vec<u32>) -> Step {
        if self.sent {
            return Step::Done;
        }
        self.sent = true;
        self.put(frontend, statements).unwrap_or_else(Step::Failed)
    }

    fn more(&mut self, frontend: &mut P::Frontend<'_>) {
        if let Some(batch) = self.batch.as_ref().filter(|_| self.sent) {
            let end = batch.bytes.len().min(self.put_bytes + PIECE_BYTES);
            if end == self.put_bytes {
                return self.put_rest(frontend);
            }
            frontend.encoded(&batch.bytes[self.put_bytes..end]);
            self.put_bytes = end;
        }
    }

    fn awaits_more(&self) -> bool {
        self.sent && self.batch.is_some() && self.starved_ns > 0
    }

    fn message(&mut self, message: &Message<'_, P>) {
        if matches!(message, Message::Prepared)
            && let Some(shape) = self.parsing.pop_front()
        {
            self.parsed[shape as usize] = true;
        }
    }

    fn answered(&mut self, _failed: bool) -> Result<(), Failure> {
        self.parsing.clear();
        Ok(())
    }

    fn reconnected(&mut self) {
        self.parsed.fill(false);
        self.parsing.clear();
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        self.begun = false;
        let Some(batch) = self.batch.take() else {
            return LoadCount::default();
        };
        let rest = batch.rest.as_ref().map(Reader::content);
        let (number, content) = (batch.number, rest.as_ref().unwrap_or(&batch.content));
        let gain = match *end {
            End::Done { sent_ns, acked_ns } => {
                let mut tally = self.shared.tally();
                tally.commit(number, content, sent_ns, acked_ns);
                drop(tally);
                self.shared.queue.stored(content.rows, acked_ns);
                LoadCount {
                    rows: content.rows,
                    metrics: content.metrics,
                }
            }
            End::Failed { failure, in_doubt } => {
                self.shared.tally().fail(number, failure, in_doubt);
                self.shared.abandon();
                LoadCount::default()
            }
        };
        self.shared.queue.give_back(batch.bytes);
        gain
    }

    fn gone(&mut self) {
        self.shared.client_gone(self.lane);
    }
}

impl Drop for LoadProgram {
    fn drop(&mut self) {
        if self.batch.is_some() && !self.begun {
            self.shared.tally().throw_away(1);
        }
    }
}
