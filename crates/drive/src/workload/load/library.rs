//! One client of a load through a library: takes a finished batch, and has the library send it.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use loadstone_gen::random::Prng;

use super::{Batch, Interval, LongResult, Shared, TxnOutcome};
use crate::client::library::{Call, LibraryClient, LibraryError, RowBatch};
use crate::clock::now_ns;
use crate::protocol::Failure;
use crate::waker::Waker;
use crate::workload::blocking::BlockingProgram;
use crate::workload::{End, LoadCount, Readiness};

pub(crate) struct LibraryLoad {
    shared: Arc<Shared>,
    waker: Arc<Waker>,
    woken: UnixStream,
    /// The batch in flight, or about to be.
    batch: Option<Box<Batch>>,
    begun: bool,
    interval: Option<Interval>,
    prng: Prng,
    /// Not to begin before; drawn with each begin.
    not_before_ns: u64,
    now_ns: u64,
    /// Since when it waits for a batch; zero when it does not.
    starved_ns: u64,
    /// A batch is a long transaction, whose progress is told.
    is_long: bool,
    marked_rows: Arc<std::sync::atomic::AtomicU64>,
}

impl LibraryLoad {
    pub(crate) fn new(
        shared: Arc<Shared>,
        interval: Option<Interval>,
        prng: Prng,
        is_long: bool,
    ) -> std::io::Result<Self> {
        let (waker, woken) = Waker::pair()?;
        woken.set_nonblocking(false)?;
        Ok(Self {
            shared,
            waker: Arc::new(waker),
            woken,
            batch: None,
            begun: false,
            interval,
            prng,
            not_before_ns: 0,
            now_ns: 0,
            starved_ns: 0,
            is_long,
            marked_rows: Arc::default(),
        })
    }

    /// The call of a long transaction, which tells how many rows are in.
    fn marked(&self, number: u64, call: &Call) -> Call {
        let (shared, marked_rows) = (Arc::clone(&self.shared), Arc::clone(&self.marked_rows));
        call.marked(move |rows| {
            marked_rows.store(rows, std::sync::atomic::Ordering::Relaxed);
            shared
                .tally()
                .progress(number, rows, now_ns(), TxnOutcome::Open);
        })
    }

    fn end_long(&self, batch: &Batch, end: &End<'_>) {
        let mut account = LongResult {
            transaction: batch.number,
            rows: batch.content.rows,
            start_ns: Some(self.now_ns),
            end_ns: now_ns(),
            state: TxnOutcome::Committed,
        };
        match *end {
            End::Done { sent_ns, acked_ns } => {
                (account.start_ns, account.end_ns) = (Some(sent_ns), acked_ns);
            }
            End::Failed { .. } => {
                account.state = TxnOutcome::Lost;
                account.rows = self.marked_rows.load(std::sync::atomic::Ordering::Relaxed);
            }
        }
        self.shared.tally().end_transaction(account);
    }
}

impl BlockingProgram for LibraryLoad {
    fn ready(&mut self, now_ns: u64) -> Readiness {
        self.now_ns = now_ns;
        if self.batch.is_some() {
            return Readiness::Ready;
        }
        if now_ns < self.not_before_ns {
            let ns = self.not_before_ns;
            return Readiness::At { ns };
        }
        let (waker, starved_ns) = (Some(&self.waker), &mut self.starved_ns);
        match self.shared.take(0, waker, now_ns, starved_ns) {
            Ok(batch) => {
                self.batch = Some(batch);
                Readiness::Ready
            }
            Err(unready) => unready,
        }
    }

    fn wait(&mut self, most: Duration) {
        // A time limit of zero is refused; whatever else goes wrong, the queue is looked at again.
        let _ = self.woken.set_read_timeout(Some(most));
        let _ = self.woken.read(&mut [0; 64]);
    }

    fn begin(&mut self) -> usize {
        self.begun = true;
        self.now_ns = now_ns();
        self.marked_rows
            .store(0, std::sync::atomic::Ordering::Relaxed);
        if let Some(interval) = self.interval {
            self.not_before_ns = self.now_ns + interval.draw_ns(&mut self.prng);
        }
        0
    }

    fn call(&mut self, client: &mut dyn LibraryClient, call: &Call) -> Result<(), LibraryError> {
        let Some(batch) = &self.batch else {
            return Err(LibraryError::new("internal", "no batch"));
        };
        let none = RowBatch::default();
        let rows = batch.rows.as_deref().unwrap_or(&none);
        let sent = if self.is_long {
            client.send(rows, &self.marked(batch.number, call))?
        } else {
            client.send(rows, call)?
        };
        if sent.rows != rows.rows {
            let words = format!("{} of {} rows were stored", sent.rows, rows.rows);
            return Err(LibraryError::new("internal", &words));
        }
        Ok(())
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        self.begun = false;
        let Some(batch) = self.batch.take() else {
            return LoadCount::default();
        };
        if self.is_long {
            self.end_long(&batch, end);
        }
        let (number, content) = (batch.number, &batch.content);
        match *end {
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
                self.fail(number, failure, in_doubt);
                LoadCount::default()
            }
        }
    }
}

impl LibraryLoad {
    fn fail(&self, number: u64, failure: &Failure, in_doubt: bool) {
        self.shared.tally().fail(number, failure, in_doubt);
        self.shared.abandon();
    }
}

impl Drop for LibraryLoad {
    fn drop(&mut self) {
        if self.batch.is_some() && !self.begun {
            self.shared.tally().throw_away(1);
        }
    }
}
