//! How fast rows are made, encoded and fingerprinted on one thread: `encode_speed USE_CASE SCALE EPOCHS
//! [ROUNDS]`. Figures go to standard error. With `write=FOLDER` the rows go there as CSV instead, a file
//! a table, with the fingerprints beside them: what a database is checked against.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use loadstone_gen::dataset::{Chunk, Source};
use loadstone_gen::encode::{copy_binary, copy_text, csv, csv_header};
use loadstone_gen::fingerprint::Tables;
use loadstone_gen::tsbs::{Config, SimulationSource, UseCase};

type Failure = Box<dyn std::error::Error>;

const ROWS: usize = 10_000;

fn config(arguments: &[String]) -> Result<Config, Failure> {
    let [use_case, scale, epochs, ..] = arguments else {
        return Err("encode_speed USE_CASE SCALE EPOCHS [ROUNDS | write=FOLDER]".into());
    };
    let start = Config::new(UseCase::from_name(use_case)?, 123);
    let epochs: i64 = epochs.parse()?;
    Ok(Config {
        scale: scale.parse()?,
        end_ns: start.start_ns + epochs * start.interval_ns,
        ..start
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates are shown with three digits"
)]
fn show(what: &str, metrics: u64, bytes: u64, taken: Duration) {
    let seconds = taken.as_secs_f64();
    eprintln!(
        "{what:12} {:8.1} M metrics/s  {:6.2} GB/s  {:6.2} ns/metric",
        metrics as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e9,
        seconds * 1e9 / metrics as f64
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "an example that measures time, outside the crate"
)]
fn now() -> Instant {
    Instant::now()
}

fn measure_encoder(
    what: &str,
    chunks: &[Chunk],
    rounds: u32,
    mut encode: impl FnMut(&RecordBatch, &mut Vec<u8>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut out, mut bytes, mut metrics) = (Vec::new(), 0, 0);
    let start = now();
    for _ in 0..rounds {
        for chunk in chunks {
            out.clear();
            for table in &chunk.tables {
                encode(&table.rows, &mut out)?;
            }
            bytes += black_box(&out).len() as u64;
            metrics += chunk.metrics;
        }
    }
    show(what, metrics, bytes, start.elapsed());
    Ok(())
}

fn measure(config: &Config, rounds: u32) -> Result<(), Failure> {
    let mut source = SimulationSource::new(config)?;
    let mut prints = Tables::new(source.dataset());
    let mut chunks = Vec::new();
    let (start, mut metrics) = (now(), 0);
    while let Some(chunk) = source.next(ROWS)? {
        metrics += chunk.metrics;
        if chunks.len() < 20 {
            chunks.push(chunk);
        }
    }
    show("simulate", metrics, 0, start.elapsed());
    measure_encoder("copy binary", &chunks, rounds, |rows, out| {
        Ok(copy_binary(rows, out)?)
    })?;
    measure_encoder("copy text", &chunks, rounds, |rows, out| {
        Ok(copy_text(rows, out)?)
    })?;
    measure_encoder("csv", &chunks, rounds, |rows, out| Ok(csv(rows, out)?))?;
    let start = now();
    for _ in 0..rounds {
        for chunk in &chunks {
            prints.add(black_box(chunk))?;
        }
    }
    let metrics: u64 = chunks.iter().map(|chunk| chunk.metrics).sum();
    show(
        "fingerprint",
        metrics * u64::from(rounds),
        0,
        start.elapsed(),
    );
    Ok(())
}

fn write(config: &Config, folder: &str) -> Result<(), Failure> {
    let mut source = SimulationSource::new(config)?;
    let dataset = source.dataset().clone();
    let mut prints = Tables::new(&dataset);
    let mut texts = BTreeMap::new();
    for (number, table) in dataset.tables.iter().enumerate() {
        let mut text = Vec::new();
        csv_header(&table.schema, &mut text);
        texts.insert(number, text);
    }
    while let Some(chunk) = source.next(ROWS)? {
        prints.add(&chunk)?;
        for table in &chunk.tables {
            csv(&table.rows, texts.entry(table.table).or_default())?;
        }
    }
    for (number, text) in texts {
        let name = &dataset.tables[number].name;
        fs::write(format!("{folder}/{name}.csv"), text)?;
        let print = &prints.as_slice()[number];
        let nulls: Vec<_> = print.nulls().iter().map(u64::to_string).collect();
        let line = format!(
            "{}|{}|{}|{}|{}\n",
            print.rows(),
            print.time_sum(),
            print.tags_sum(),
            print.content(),
            nulls.join("|")
        );
        fs::write(format!("{folder}/{name}.fingerprint"), line)?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let config = config(&arguments)?;
    match arguments.get(3).map_or("20", String::as_str) {
        folder if folder.starts_with("write=") => write(&config, &folder["write=".len()..]),
        rounds => measure(&config, rounds.parse()?),
    }
}
