//! How fast rows of a plain table are made and encoded on one thread: `rows_speed SET [OPTION=VALUE]…
//! [rows=N] [batch=N] [rounds=N]`. Figures go to standard error: for each format the bytes that one core makes a
//! second of CPU time, rows made and encoded together, after what making them takes, and what making columns of Arrow. Each of the rounds, which
//! take turns, makes `rows` rows; the best counts, the median tells how quiet the machine was. The last figure
//! is that of copying the bytes of a batch of text, and no more.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::hint::black_box;

use loadstone_gen::dataset::Source;
use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text, csv};
use loadstone_gen::rows::{Config, RowsSource};
use nix::sys::time::TimeValLike;
use nix::time::ClockId;

type Failure = Box<dyn std::error::Error>;
type Encoder = fn(&DictionaryBatch, &mut Vec<u8>) -> Result<(), EncodeError>;

const FORMATS: [(&str, Encoder); 5] = [
    ("made", |_, _| Ok(())),
    ("as Arrow", |rows, _| {
        drop(black_box(rows.batch()));
        Ok(())
    }),
    ("copy text", copy_text),
    ("copy binary", copy_binary),
    ("csv", csv),
];

/// CPU time of this thread in nanoseconds: what the machine does besides does not count.
fn cpu_ns() -> Result<u64, Failure> {
    let used = ClockId::CLOCK_THREAD_CPUTIME_ID.now()?;
    Ok(u64::try_from(used.num_nanoseconds())?)
}

/// One round: nanoseconds, and bytes.
fn round(source: &mut RowsSource, batch: usize, encode: Encoder) -> Result<(u64, usize), Failure> {
    let (mut out, mut bytes) = (Vec::new(), 0);
    let start = cpu_ns()?;
    while let Some(chunk) = source.next(batch)? {
        out.clear();
        encode(black_box(&chunk.tables[0].rows), &mut out)?;
        bytes += black_box(&out).len();
    }
    Ok((cpu_ns()? - start, bytes))
}

/// One round of copying so many bytes, a batch of `batch_bytes` at a time.
fn copy(bytes: usize, batch_bytes: usize) -> Result<(u64, usize), Failure> {
    let (from, mut out) = (vec![b'x'; batch_bytes], vec![0; batch_bytes]);
    let batches = bytes / batch_bytes;
    let start = cpu_ns()?;
    for _ in 0..batches {
        out.copy_from_slice(black_box(&from));
        black_box(&out);
    }
    Ok((cpu_ns()? - start, batches * batch_bytes))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
fn show(name: &str, rows: u64, rounds: &mut [(u64, usize)]) {
    rounds.sort_unstable();
    let rate = |(ns, bytes): (u64, usize)| bytes as f64 / ns as f64;
    let (best, median) = (rounds[0], rounds[rounds.len() / 2]);
    eprintln!(
        "{name:12} {:6.2} GB/s  median {:5.2}  {:8.1} B/row {:9.1} ns/row",
        rate(best),
        rate(median),
        best.1 as f64 / rows as f64,
        best.0 as f64 / rows as f64,
    );
}

fn measure(config: &Config, batch: usize, rounds: usize) -> Result<(), Failure> {
    let mut source = RowsSource::new(config)?;
    let mut results = FORMATS.map(|_| Vec::new());
    let mut copies = Vec::new();
    for number in 0..rounds as u64 {
        for ((_, encode), results) in FORMATS.into_iter().zip(&mut results) {
            source.go_to(config.first + number * config.rows, config.rows)?;
            results.push(round(&mut source, batch, encode)?);
        }
        let bytes = results[2].last().map_or(1, |(_, bytes)| *bytes);
        let batches = usize::try_from(config.rows)?.div_ceil(batch);
        copies.push(copy(bytes, (bytes / batches).max(1))?);
    }
    for ((name, _), rounds) in FORMATS.into_iter().zip(&mut results) {
        show(name, config.rows, rounds);
    }
    show("memcpy", config.rows, &mut copies);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let set = arguments.next().ok_or("rows_speed SET [OPTION=VALUE]…")?;
    let mut config = Config::new(&set, 1, 100_000);
    let (mut batch, mut rounds) = (1000, 15);
    for argument in arguments {
        match argument.split_once('=').ok_or("OPTION=VALUE")? {
            ("rows", rows) => config.rows = rows.parse()?,
            ("batch", rows) => batch = rows.parse()?,
            ("rounds", count) => rounds = count.parse::<usize>()?.max(1),
            (name, value) => drop(config.options.insert(name.to_owned(), value.to_owned())),
        }
    }
    measure(&config, batch.max(1), rounds)
}
