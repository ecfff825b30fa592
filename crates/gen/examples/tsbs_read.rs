//! Reads TSBS's text for `TimescaleDB` as Arrow batches and says how fast: `tsbs_read FILE`, `tsbs_read -` for standard
//! input. With `--from-memory` the file is read before the clock starts; `--rows=N` is the size of chunks.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom, stdin};
use std::time::Instant;

use loadstone_gen::dataset::Source;
use loadstone_gen::tsbs::TextSource;

type Failure = Box<dyn std::error::Error>;

/// Counts the bytes that pass.
struct Counted<R>(R, std::sync::Arc<std::sync::atomic::AtomicU64>);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1
            .fetch_add(count as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(count)
    }
}

fn open(path: &str, from_memory: bool) -> Result<Box<dyn Read + Send>, Failure> {
    if path == "-" {
        return Ok(Box::new(stdin()));
    }
    let mut file = File::open(path)?;
    if !from_memory {
        return Ok(Box::new(file));
    }
    let mut text = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut text)?;
    Ok(Box::new(Cursor::new(text)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
#[expect(
    clippy::disallowed_methods,
    reason = "an example has no event loop to ask for the time"
)]
fn main() -> Result<(), Failure> {
    let (mut path, mut rows, mut from_memory) = ("-".to_owned(), 10_000, false);
    for argument in std::env::args().skip(1) {
        match argument.strip_prefix("--rows=") {
            Some(count) => rows = count.parse()?,
            None if argument == "--from-memory" => from_memory = true,
            None => path = argument,
        }
    }
    let reader = open(&path, from_memory)?;
    let bytes = std::sync::Arc::default();
    let counted = Counted(reader, std::sync::Arc::clone(&bytes));
    let start = Instant::now();
    let mut source = TextSource::new(counted)?;
    let (mut total, mut metrics, mut devices) = (0, 0, 0);
    while let Some(chunk) = source.next(rows)? {
        total += chunk.rows;
        metrics += chunk.metrics;
        devices += chunk.tags.map_or(0, |tags| tags.num_rows());
    }
    let seconds = start.elapsed().as_secs_f64();
    let bytes = bytes.load(std::sync::atomic::Ordering::Relaxed);
    let per_microsecond = |count: u64| count as f64 / seconds / 1e6;
    eprintln!(
        "{total} rows, {metrics} metrics, {devices} rows of tags, {bytes} bytes in {seconds:.3} s: \
         {:.2} M rows/s, {:.1} M metrics/s, {:.0} MB/s",
        per_microsecond(total),
        per_microsecond(metrics),
        per_microsecond(bytes)
    );
    Ok(())
}
