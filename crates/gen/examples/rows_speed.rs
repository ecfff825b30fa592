//! How fast rows of a plain table are made and encoded on one thread: `rows_speed SET [OPTION=VALUE]…
//! [rows=N] [batch=N]`. Figures go to standard error: for each format the bytes that one core makes a second
//! of CPU time, rows made and encoded together, after what making them takes.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::hint::black_box;

use arrow_array::RecordBatch;
use loadstone_gen::dataset::Source;
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text, csv};
use loadstone_gen::rows::{Config, RowsSource};

type Failure = Box<dyn std::error::Error>;
type Encoder = fn(&RecordBatch, &mut Vec<u8>) -> Result<(), EncodeError>;

const FORMATS: [(&str, Encoder); 3] = [
    ("copy text", copy_text),
    ("copy binary", copy_binary),
    ("csv", csv),
];

/// CPU time of this thread in nanoseconds: what the machine does besides does not count.
fn cpu_ns() -> Result<u64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().ok_or("no figure in schedstat")?;
    Ok(first.parse()?)
}

/// Makes all rows, gives each batch away, and says how long that took.
fn time(
    config: &Config,
    batch: usize,
    mut take: impl FnMut(&RecordBatch) -> Result<(), EncodeError>,
) -> Result<u64, Failure> {
    let mut source = RowsSource::new(config)?;
    let start = cpu_ns()?;
    while let Some(chunk) = source.next(batch)? {
        take(black_box(&chunk.tables[0].rows))?;
    }
    Ok(cpu_ns()? - start)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
fn measure(config: &Config, batch: usize) -> Result<(), Failure> {
    let made = time(config, batch, |_| Ok(()))?;
    let per_row = |ns: u64| ns as f64 / config.rows as f64;
    eprintln!("{:12} {:38.1} ns/row", "made", per_row(made));
    for (name, encode) in FORMATS {
        let (mut out, mut bytes) = (Vec::new(), 0);
        let taken = time(config, batch, |rows| {
            out.clear();
            encode(rows, &mut out)?;
            bytes += black_box(&out).len();
            Ok(())
        })?;
        eprintln!(
            "{name:12} {:6.2} GB/s {:10.1} B/row {:13.1} ns/row",
            bytes as f64 / taken as f64,
            bytes as f64 / config.rows as f64,
            per_row(taken),
        );
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let set = arguments.next().ok_or("rows_speed SET [OPTION=VALUE]…")?;
    let mut config = Config::new(&set, 1, 2_000_000);
    let mut batch = 10_000;
    for argument in arguments {
        match argument.split_once('=').ok_or("OPTION=VALUE")? {
            ("rows", rows) => config.rows = rows.parse()?,
            ("batch", rows) => batch = rows.parse()?,
            (name, value) => drop(config.options.insert(name.to_owned(), value.to_owned())),
        }
    }
    measure(&config, batch)
}
