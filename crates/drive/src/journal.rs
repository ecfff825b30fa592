//! The log of transactions: a line for each, or for each of its intervals, in pgbench's format, a file for each thread.
//!
//! Workers hand over entries in batches; a thread of its own turns them into text, so that neither formatting nor a
//! slow disk delays a transaction that is measured.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use loadstone_gen::random::{Prng, SeedSequence};
use serde::Deserialize;

use crate::clock;
use crate::error::DriveError;

/// Entries that are passed on at once.
const BATCH: usize = 1024;
/// Batches that may wait for the disk; then the worker waits, too: nothing is left out.
const BATCHES_MAX: usize = 256;

/// What is logged, and where.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSpec {
    /// The files are `PREFIX.PID` for the first thread, and `PREFIX.PID.N` for the others.
    pub prefix: String,
    /// Share of the transactions that are logged.
    #[serde(default = "all")]
    pub sampling_rate: f64,
    /// One line for so many seconds instead of one for each transaction.
    #[serde(default)]
    pub interval_s: Option<u64>,
    /// Failures are named by their kind.
    #[serde(default)]
    pub detailed: bool,
}

fn all() -> f64 {
    1.0
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Skipped,
    Serialization,
    Deadlock,
    /// Any other error that did not end its client.
    Other,
}

/// One transaction. Times in microseconds, the end since 1970.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Entry {
    pub(crate) client: u32,
    /// The client's transactions so far, this one included.
    pub(crate) number: u64,
    pub(crate) script: u32,
    pub(crate) outcome: Outcome,
    pub(crate) latency_us: f64,
    pub(crate) lag_us: f64,
    pub(crate) end_us: u64,
    /// Tries beyond the first.
    pub(crate) retries: u32,
}

/// Which columns there are.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Form {
    pub(crate) interval_s: Option<u64>,
    pub(crate) detailed: bool,
    pub(crate) under_a_rate: bool,
    pub(crate) may_skip: bool,
    pub(crate) may_retry: bool,
    /// Nothing is logged before the end of a warm-up.
    pub(crate) after_warmup: bool,
}

/// A worker's end of its log.
pub(crate) struct Logbook {
    batch: Vec<Entry>,
    full: SyncSender<Vec<Entry>>,
    empty: Receiver<Vec<Entry>>,
    sample: Option<(Prng, f64)>,
    /// From the monotonic clock to the time since 1970.
    shift_ns: u64,
}

impl Logbook {
    /// Microseconds since 1970 of a time of the monotonic clock.
    pub(crate) fn epoch_us(&self, ns: u64) -> u64 {
        ns.saturating_add(self.shift_ns) / 1_000
    }

    #[inline]
    pub(crate) fn add(&mut self, entry: Entry) {
        if let Some((prng, rate)) = &mut self.sample
            && prng.double() > *rate
        {
            return;
        }
        self.batch.push(entry);
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    /// Hand over what there is.
    pub(crate) fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let blank = match self.empty.try_recv() {
            Ok(blank) => blank,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Vec::with_capacity(BATCH),
        };
        // A writer that is gone has said why.
        let _ = self.full.send(std::mem::replace(&mut self.batch, blank));
    }
}

impl Drop for Logbook {
    fn drop(&mut self) {
        self.flush();
    }
}

/// The thread that writes one file; its result is the first error.
pub(crate) struct Writer {
    path: PathBuf,
    thread: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Wait until all is written. The worker's end must have been dropped.
    pub(crate) fn finish(self) -> Result<(), String> {
        let written = self
            .thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("its thread failed")));
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))
    }
}

/// The logs of all workers.
pub(crate) struct Logs {
    pub(crate) books: Vec<Option<Logbook>>,
    pub(crate) writers: Vec<Writer>,
}

impl Logs {
    pub(crate) fn none(workers: usize) -> Self {
        Self {
            books: (0..workers).map(|_| None).collect(),
            writers: Vec::new(),
        }
    }

    /// Open all files, or none is written to.
    pub(crate) fn open(
        spec: &LogSpec,
        form: Form,
        workers: usize,
        seed: u64,
    ) -> Result<Self, DriveError> {
        let (mut books, mut writers) = (Vec::new(), Vec::new());
        for worker in 0..workers {
            // A stream of its own: the clients draw the same, whether a log is written or not.
            let mut seeds = SeedSequence::new(!seed ^ worker as u64);
            let (book, writer) = open(spec, form, worker, seeds.next_prng())?;
            books.push(Some(book));
            writers.push(writer);
        }
        Ok(Self { books, writers })
    }
}

/// Open the log of one worker.
fn open(
    spec: &LogSpec,
    form: Form,
    worker: usize,
    sampler: Prng,
) -> Result<(Logbook, Writer), DriveError> {
    let mut name = format!("{}.{}", spec.prefix, std::process::id());
    if worker > 0 {
        name = format!("{name}.{worker}");
    }
    let path = PathBuf::from(name);
    let file = File::create(&path).map_err(|source| DriveError::Output {
        path: path.clone(),
        source,
    })?;
    let (full, entries) = sync_channel::<Vec<Entry>>(BATCHES_MAX);
    let (give, empty) = sync_channel(2);
    let shift_ns = clock::epoch_ns().saturating_sub(clock::now_ns());
    let begun_us = clock::epoch_ns() / 1_000;
    let thread = thread::Builder::new()
        .name(format!("log-{worker}"))
        .spawn(move || {
            let mut text = Text::new(form, begun_us, BufWriter::new(file));
            for mut batch in entries {
                for entry in &batch {
                    text.put(entry)?;
                }
                text.out.flush()?;
                batch.clear();
                let _ = give.try_send(batch);
            }
            text.close()
        })
        .map_err(DriveError::thread)?;
    let logbook = Logbook {
        batch: Vec::with_capacity(BATCH),
        full,
        empty,
        sample: (spec.sampling_rate < 1.0).then_some((sampler, spec.sampling_rate)),
        shift_ns,
    };
    Ok((logbook, Writer { path, thread }))
}

/// Sums of one interval.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    entries: u64,
    done: u64,
    latency: Spread,
    lag: Spread,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Spread {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Spread {
    fn add(&mut self, value: f64) {
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }

    fn put(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            sum,
            squares,
            min,
            max,
            ..
        } = self;
        write!(out, " {sum:.0} {squares:.0} {min:.0} {max:.0}")
    }
}

impl Sums {
    fn add(&mut self, entry: &Entry) {
        self.entries += 1;
        if entry.outcome == Outcome::Skipped {
            self.skipped += 1;
            return;
        }
        self.retried += u64::from(entry.retries > 0);
        self.retries += u64::from(entry.retries);
        match entry.outcome {
            Outcome::Serialization => self.serialization += 1,
            Outcome::Deadlock => self.deadlock += 1,
            Outcome::Done => {
                self.done += 1;
                self.latency.add(entry.latency_us);
                self.lag.add(entry.lag_us);
            }
            Outcome::Skipped | Outcome::Other => {}
        }
    }
}

/// Entries on their way into text.
struct Text<W: Write> {
    form: Form,
    out: W,
    /// Begin of the current interval, seconds since 1970.
    begin_s: u64,
    sums: Sums,
}

impl<W: Write> Text<W> {
    fn new(form: Form, begun_us: u64, out: W) -> Self {
        Self {
            form,
            out,
            begin_s: begun_us / 1_000_000,
            sums: Sums::default(),
        }
    }

    fn put(&mut self, entry: &Entry) -> io::Result<()> {
        let Some(interval_s) = self.form.interval_s else {
            return self.put_line(entry);
        };
        if self.form.after_warmup {
            self.form.after_warmup = false;
            self.begin_s = self.begin_s.max(entry.end_us / 1_000_000);
        }
        // Intervals without a transaction have their lines, too.
        while (self.begin_s + interval_s) * 1_000_000 <= entry.end_us {
            self.put_sums()?;
            self.begin_s += interval_s;
        }
        self.sums.add(entry);
        Ok(())
    }

    fn put_line(&mut self, entry: &Entry) -> io::Result<()> {
        let (second, micros) = (entry.end_us / 1_000_000, entry.end_us % 1_000_000);
        write!(self.out, "{} {} ", entry.client, entry.number)?;
        match entry.outcome {
            Outcome::Done => write!(self.out, "{:.0}", entry.latency_us)?,
            outcome => self.out.write_all(self.word(outcome))?,
        }
        write!(self.out, " {} {second} {micros}", entry.script)?;
        if self.form.under_a_rate {
            write!(self.out, " {:.0}", entry.lag_us)?;
        }
        if self.form.may_retry {
            write!(self.out, " {}", entry.retries)?;
        }
        self.out.write_all(b"\n")
    }

    fn word(&self, outcome: Outcome) -> &'static [u8] {
        match outcome {
            Outcome::Skipped => b"skipped",
            Outcome::Serialization if self.form.detailed => b"serialization",
            Outcome::Deadlock if self.form.detailed => b"deadlock",
            Outcome::Other if self.form.detailed => b"other",
            _ => b"failed",
        }
    }

    fn put_sums(&mut self) -> io::Result<()> {
        let sums = std::mem::take(&mut self.sums);
        let shown = |wanted: bool, count: u64| if wanted { count } else { 0 };
        let form = self.form;
        write!(self.out, "{} {}", self.begin_s, sums.done)?;
        sums.latency.put(&mut self.out)?;
        let lag = if form.under_a_rate {
            sums.lag
        } else {
            Spread::default()
        };
        lag.put(&mut self.out)?;
        writeln!(
            self.out,
            " {} {} {} {} {}",
            shown(form.may_skip, sums.skipped),
            shown(form.may_retry, sums.retried),
            shown(form.may_retry, sums.retries),
            shown(form.detailed, sums.serialization),
            shown(form.detailed, sums.deadlock),
        )
    }

    /// The last interval is not over, as a rule; its transactions count all the same.
    fn close(mut self) -> io::Result<()> {
        if self.sums.entries > 0 {
            self.put_sums()?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form {
        interval_s: None,
        detailed: false,
        under_a_rate: false,
        may_skip: false,
        may_retry: false,
        after_warmup: false,
    };

    fn entry(number: u64, end_us: u64, outcome: Outcome) -> Entry {
        Entry {
            client: 3,
            number,
            script: 1,
            outcome,
            latency_us: 250.4,
            lag_us: 7.0,
            end_us,
            retries: u32::from(number == 2),
        }
    }

    fn text(form: Form, begun_us: u64, entries: &[Entry]) -> String {
        let mut written = Vec::new();
        let mut text = Text::new(form, begun_us, &mut written);
        for entry in entries {
            text.put(entry).unwrap();
        }
        text.close().unwrap();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn each_transaction_has_a_line() {
        let entries = [
            entry(1, 12_000_345, Outcome::Done),
            entry(2, 13_000_000, Outcome::Deadlock),
            entry(3, 13_500_000, Outcome::Skipped),
        ];
        let plain = "3 1 250 1 12 345\n3 2 failed 1 13 0\n3 3 skipped 1 13 500000\n";
        assert_eq!(text(FORM, 0, &entries), plain);
        let form = Form {
            detailed: true,
            under_a_rate: true,
            may_retry: true,
            ..FORM
        };
        let full = "3 1 250 1 12 345 7 0\n3 2 deadlock 1 13 0 7 1\n3 3 skipped 1 13 500000 7 0\n";
        assert_eq!(text(form, 0, &entries), full);
    }

    #[test]
    fn after_a_warm_up_the_first_interval_is_that_of_the_first_entry() {
        let form = Form {
            interval_s: Some(2),
            after_warmup: true,
            ..FORM
        };
        let entries = [
            entry(1, 95_900_000, Outcome::Done),
            entry(2, 97_000_000, Outcome::Done),
        ];
        let lines = text(form, 10_400_000, &entries);
        let begins: Vec<&str> = lines.lines().map(|line| &line[..5]).collect();
        assert_eq!(begins, ["95 1 ", "97 1 "], "{lines}");
    }

    #[test]
    fn intervals_are_summed_and_empty_ones_shown() {
        let form = Form {
            interval_s: Some(2),
            detailed: true,
            may_skip: true,
            may_retry: true,
            ..FORM
        };
        let entries = [
            entry(1, 10_900_000, Outcome::Done),
            entry(2, 11_999_999, Outcome::Serialization),
            entry(4, 15_000_000, Outcome::Done),
            entry(5, 15_000_001, Outcome::Skipped),
        ];
        assert_eq!(
            text(form, 10_400_000, &entries),
            "10 1 250 62700 250 250 0 0 0 0 0 1 1 1 0\n\
             12 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             14 1 250 62700 250 250 0 0 0 0 1 0 0 0 0\n"
        );
    }
}
