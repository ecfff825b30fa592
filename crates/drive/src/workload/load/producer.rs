//! The thread that makes batches: takes rows from the source, encodes them, and hands them over.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use loadstone_gen::dataset::{Chunk, Dataset, Source, SourceError};

use super::Shared;
use super::arrow::Arrows;
use super::batch::{Batch, Content};
use super::encode::{BatchError, Encoder, content, is_plain};
use super::ranges::Ranges;
use super::split;
use super::stream::{self, Writer};
use crate::clock::CpuTime;
use crate::data::FileRows;
use crate::error::DriveError;
use crate::protocol::Bulk;
use crate::share::Share;

/// Where the rows come from.
pub(crate) enum Supply {
    /// They are made, or read as values.
    Values(Box<dyn Source>),
    /// They are in files as they are to be sent.
    Files(FileRows),
}

/// What the thread is given.
pub(crate) struct Producer<B: Bulk> {
    pub(crate) supply: Supply,
    pub(crate) shared: Arc<Shared>,
    pub(crate) lanes: usize,
    pub(crate) batch_rows: usize,
    /// Rows that may still be made.
    pub(crate) rows_left: u64,
    pub(crate) place: Place,
    pub(crate) skip: Ranges,
    /// Which batches are made; the others are those of other hosts.
    pub(crate) share: Share,
    /// Batches are for a library.
    pub(crate) by_library: bool,
    /// Batches are handed over while they are made.
    pub(crate) streams: bool,
    pub(crate) protocol: PhantomData<fn() -> B>,
}

/// About how long a piece of a batch is: its rows, its messages and what the kernel copies stay in a near cache.
const PIECE_BYTES: u64 = 192 * 1024;
/// Rows of a first piece, before it is known how long they are.
const FIRST_ROWS: u64 = 256;

/// What rows are made into.
enum Form<B: Bulk> {
    Messages(Encoder<B>),
    Arrow(Arrows),
}

/// How far the steps are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    step_rows: Option<u64>,
    /// The step that is being made, and what was made of it.
    step: u64,
    rows: u64,
    /// Without those that were skipped.
    batches: u64,
}

impl Place {
    pub(crate) fn new(step_rows: Option<u64>) -> Self {
        Self {
            step_rows,
            step: 0,
            rows: 0,
            batches: 0,
        }
    }

    /// Rows until the step's end.
    fn rows_left(self) -> u64 {
        self.step_rows.map_or(u64::MAX, |rows| rows - self.rows)
    }
}

/// What the thread says of itself.
#[derive(Debug, Default)]
pub(crate) struct ProducerState {
    /// Batches made, those that were skipped not among them.
    pub(crate) made: AtomicU64,
    pub(crate) user_ns: AtomicU64,
    pub(crate) system_ns: AtomicU64,
    /// The source came to its end, or to the limit.
    pub(crate) exhausted: AtomicBool,
    over: Mutex<bool>,
    ended: Condvar,
}

impl ProducerState {
    pub(crate) fn cpu(&self) -> CpuTime {
        CpuTime {
            user_ns: self.user_ns.load(Ordering::Relaxed),
            system_ns: self.system_ns.load(Ordering::Relaxed),
        }
    }

    /// Told by the thread itself.
    pub(crate) fn note_cpu(&self) {
        self.set_cpu(CpuTime::of_this_thread());
    }

    pub(crate) fn set_cpu(&self, cpu: CpuTime) {
        self.user_ns.store(cpu.user_ns, Ordering::Relaxed);
        self.system_ns.store(cpu.system_ns, Ordering::Relaxed);
    }

    /// Wait for the thread's end, if it comes soon: one that reads a pipe may wait for ever.
    pub(crate) fn wait(&self, patience: Duration) {
        let over = self.over.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.ended.wait_timeout_while(over, patience, |over| !*over));
    }

    pub(crate) fn end(&self) {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ended.notify_all();
    }
}

/// Why no more batches are made.
pub(crate) enum Stop {
    /// Nobody takes them.
    Unwanted,
    Broken(String),
}

impl From<BatchError> for Stop {
    fn from(error: BatchError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<SourceError> for Stop {
    fn from(error: SourceError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<DriveError> for Stop {
    fn from(error: DriveError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl<B: Bulk> Producer<B> {
    /// Make all batches.
    pub(crate) fn run(mut self) {
        let stopped = self.make_all();
        self.shared.end_making(stopped);
    }

    fn make_all(&mut self) -> Result<(), Stop> {
        let mut encoder = if self.by_library {
            Form::Arrow(Arrows::default())
        } else {
            Form::Messages(Encoder::new(Arc::clone(&self.shared.tables)))
        };
        let chunk_rows = self.batch_rows.saturating_mul(self.lanes);
        for index in 0.. {
            let wanted = self.rows_left.min(self.place.rows_left());
            let rows = chunk_rows.min(usize::try_from(wanted).unwrap_or(usize::MAX));
            let taken = match rows {
                0 => 0,
                rows if !self.share.owns(index) => self.leave(index, rows, &mut encoder)?,
                rows if self.can_pass(index) => self.pass(rows)?,
                rows => self.take(index, rows, &mut encoder)?,
            };
            if taken == 0 {
                break;
            }
            self.rows_left -= taken.min(self.rows_left);
            self.place.rows += taken;
            if self.place.rows_left() == 0 {
                self.end_step();
            }
            self.note_cpu();
        }
        self.end_step();
        self.shared.making.exhausted.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// All batches of the step have been made.
    fn end_step(&mut self) {
        let Place { step, batches, .. } = self.place;
        self.shared.queue.step_made(step, batches);
        self.place.step += 1;
        (self.place.rows, self.place.batches) = (0, 0);
    }

    /// The batch was stored before, and nothing of it must be known.
    fn can_pass(&self, number: u64) -> bool {
        let is_plain = match &self.supply {
            Supply::Values(source) => is_plain(source.dataset()),
            Supply::Files(_) => true,
        };
        self.lanes == 1 && is_plain && self.skip.contains(number)
    }

    /// Go past rows that another host sends; returns how many there were.
    fn leave(&mut self, index: u64, rows: usize, form: &mut Form<B>) -> Result<u64, Stop> {
        let Supply::Values(source) = &mut self.supply else {
            let why = "rows of files cannot be shared by hosts";
            return Err(Stop::Broken(why.to_owned()));
        };
        if self.shared.queue.is_closed() {
            return Err(Stop::Unwanted);
        }
        if index > 0 || !self.shared.tables.in_table_tag {
            return Ok(source.pass(rows as u64)?);
        }
        // The devices' names come with the first rows, and every host needs them.
        let chunk = source.next(rows)?.unwrap_or_default();
        if let (Some(tags), Form::Messages(encoder)) = (&chunk.tags, form) {
            encoder.learn(tags);
        }
        Ok(chunk.rows)
    }

    /// Go past rows without making them; returns how many there were.
    fn pass(&mut self, rows: usize) -> Result<u64, Stop> {
        let passed = match &mut self.supply {
            Supply::Values(source) => source.pass(rows as u64)?,
            Supply::Files(files) => files.next(rows, &mut |_| {})? as u64,
        };
        if self.shared.queue.is_closed() {
            return Err(Stop::Unwanted);
        }
        if passed > 0 {
            self.shared.tally().skip(&Content::default());
        }
        Ok(passed)
    }

    /// Make the batches of the next rows; returns how many rows there were.
    fn take(&mut self, index: u64, rows: usize, form: &mut Form<B>) -> Result<u64, Stop> {
        match (&mut self.supply, &*form) {
            (Supply::Values(_), Form::Messages(encoder)) if self.streams => {
                self.stream(index, rows as u64, encoder)
            }
            (Supply::Values(source), _) => {
                let dataset = Arc::clone(source.dataset());
                let Some(chunk) = source.next(rows)? else {
                    return Ok(0);
                };
                let taken = chunk.rows;
                self.make(index, chunk, &dataset, form)?;
                Ok(taken)
            }
            (Supply::Files(files), _) => {
                let Form::Messages(encoder) = form else {
                    let why = "rows of files are sent unchanged, which no library accepts";
                    return Err(Stop::Broken(why.to_owned()));
                };
                let memory = self.shared.queue.memory();
                let batch = encoder.encode_files(index, files, rows, memory)?;
                let taken = batch.content.rows;
                if taken > 0 && !self.hand_over(0, batch) {
                    return Err(Stop::Unwanted);
                }
                Ok(taken)
            }
        }
    }

    /// Make a batch of at most `rows` rows piece by piece, each handed over as soon as it is made; returns how many
    /// rows there were.
    fn stream(&mut self, number: u64, rows: u64, encoder: &Encoder<B>) -> Result<u64, Stop> {
        let Some((first, content)) = self.piece(FIRST_ROWS.min(rows))? else {
            return Ok(0);
        };
        let (writer, rest) = stream::pair();
        writer.count(&content);
        let mut batch = encoder.open(number, self.shared.queue.memory())?;
        encoder.put_part(&first, &mut batch.bytes)?;
        let made = (first.rows, batch.bytes.len() as u64);
        batch.rest = Some(rest);
        if !self.hand_over(0, batch) {
            return Err(Stop::Unwanted);
        }
        let taken = self.stream_rest(number, made, rows, (encoder, &writer));
        match &taken {
            Ok(_) => writer.finish(),
            // Before the client hears of it.
            Err(Stop::Broken(why)) => self.shared.tally().give_up(|| why.clone()),
            Err(Stop::Unwanted) => {}
        }
        taken
    }

    /// The pieces behind the first, of which rows and bytes were `made`.
    fn stream_rest(
        &mut self,
        number: u64,
        made: (u64, u64),
        rows: u64,
        (encoder, writer): (&Encoder<B>, &Writer),
    ) -> Result<u64, Stop> {
        let (mut taken, mut bytes) = made;
        loop {
            let most = (PIECE_BYTES * taken / bytes.max(1)).max(1);
            let next = match rows - taken {
                0 => None,
                left => self.piece(most.min(left))?,
            };
            let mut memory = self.shared.queue.memory();
            let is_last = next.is_none();
            if let Some((chunk, content)) = next {
                encoder.put_part(&chunk, &mut memory)?;
                writer.count(&content);
                (taken, bytes) = (taken + chunk.rows, bytes + memory.len() as u64);
            } else {
                encoder.close(number, taken, &mut memory)?;
            }
            if !writer.push(memory) {
                return Err(Stop::Unwanted);
            }
            if is_last {
                return Ok(taken);
            }
        }
    }

    /// At most so many of the source's next rows, and what they hold.
    fn piece(&mut self, rows: u64) -> Result<Option<(Chunk, Content)>, Stop> {
        let Supply::Values(source) = &mut self.supply else {
            return Ok(None);
        };
        let Some(chunk) = source.next(usize::try_from(rows).unwrap_or(usize::MAX))? else {
            return Ok(None);
        };
        let content = content(&chunk, source.dataset()).map_err(BatchError::from)?;
        Ok(Some((chunk, content)))
    }

    /// The batches of one chunk: one, or one for each lane.
    fn make(
        &mut self,
        index: u64,
        chunk: Chunk,
        dataset: &Dataset,
        form: &mut Form<B>,
    ) -> Result<(), Stop> {
        let tables = Arc::clone(&self.shared.tables);
        match (&chunk.tags, &mut *form) {
            (Some(tags), Form::Messages(encoder)) => encoder.learn(tags),
            (Some(tags), Form::Arrow(arrows)) => arrows.learn(tags, &tables),
            (None, _) => {}
        }
        let pieces = if self.lanes == 1 {
            vec![chunk]
        } else {
            split::by_device(&chunk, self.lanes, dataset).map_err(BatchError::from)?
        };
        for (lane, piece) in pieces.into_iter().enumerate() {
            let number = index * self.lanes as u64 + lane as u64;
            if piece.tags.is_none() && piece.rows == 0 {
                self.shared.tally().pass_over(number);
                continue;
            }
            let content = content(&piece, dataset).map_err(BatchError::from)?;
            let wanted = if self.skip.contains(number) {
                self.shared.tally().skip(&content);
                !self.shared.queue.is_closed()
            } else {
                let batch = match form {
                    Form::Messages(encoder) => {
                        let memory = self.shared.queue.memory();
                        encoder.encode(number, &piece, content, memory)?
                    }
                    Form::Arrow(arrows) => {
                        arrows.encode(number, &piece, content, (dataset, &tables))?
                    }
                };
                self.hand_over(lane, batch)
            };
            if !wanted {
                return Err(Stop::Unwanted);
            }
        }
        Ok(())
    }

    /// Put a batch into its lane; false when nobody takes it.
    fn hand_over(&mut self, lane: usize, mut batch: Batch) -> bool {
        batch.step = self.place.step;
        self.place.batches += 1;
        self.shared.making.made.fetch_add(1, Ordering::Relaxed);
        let wanted = self.shared.queue.push(lane, Box::new(batch));
        if !wanted {
            self.shared.tally().throw_away(1);
        }
        wanted
    }

    fn note_cpu(&self) {
        self.shared.making.note_cpu();
    }
}
