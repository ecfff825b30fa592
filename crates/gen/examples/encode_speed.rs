//! How fast rows are made, encoded and fingerprinted on one thread: `encode_speed USE_CASE SCALE EPOCHS
//! [ROUNDS]`. Figures go to standard error. `encode_speed texts` takes a table of texts instead. With
//! `write=FOLDER` the rows go there as CSV, and in `COPY`'s two formats, a file a table, with the
//! fingerprints beside them: what a database is checked against.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use loadstone_gen::dataset::{Chunk, Source, TableRows};
use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text, csv, csv_header};
use loadstone_gen::fingerprint::Tables;
use loadstone_gen::tsbs::{Config, SimulationSource, UseCase};

type Failure = Box<dyn std::error::Error>;

type Encoder = fn(&DictionaryBatch, &mut Vec<u8>) -> Result<(), EncodeError>;

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
    mut encode: impl FnMut(&DictionaryBatch, &mut Vec<u8>) -> Result<(), Failure>,
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

/// Lines of a log, as they come: a number, a time, texts of 5 to 60 bytes.
fn texts() -> Result<Vec<Chunk>, Failure> {
    let numbers = 0..10_000_i64;
    let times = numbers.clone().map(|n| 1_451_606_400_000_000 + n * 1000);
    let text = |length: i64| {
        let line = move |n: i64| {
            "the quick brown fox jumps over the lazy dog and is gone by then "
                .chars()
                .take(usize::try_from(length + n % 8).unwrap_or(0))
                .collect::<String>()
        };
        StringArray::from_iter_values((0..10_000).map(line))
    };
    let rows = RecordBatch::try_from_iter([
        (
            "id",
            Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef,
        ),
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from_iter_values(times)),
        ),
        ("level", Arc::new(text(5))),
        ("host", Arc::new(text(12))),
        ("path", Arc::new(text(30))),
        ("line", Arc::new(text(52))),
    ])?;
    Ok(vec![Chunk {
        rows: 10_000,
        metrics: 60_000,
        tables: vec![TableRows {
            table: 0,
            rows: rows.into(),
        }],
        ..Chunk::default()
    }])
}

fn measure_encoders(chunks: &[Chunk], rounds: u32) -> Result<(), Failure> {
    measure_encoder("copy binary", chunks, rounds, |rows, out| {
        Ok(copy_binary(rows, out)?)
    })?;
    measure_encoder("copy text", chunks, rounds, |rows, out| {
        Ok(copy_text(rows, out)?)
    })?;
    measure_encoder("csv", chunks, rounds, |rows, out| Ok(csv(rows, out)?))
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
    measure_encoders(&chunks, rounds)?;
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
    let encoders: [(&str, Encoder); 3] = [("csv", csv), ("bin", copy_binary), ("txt", copy_text)];
    let mut files = BTreeMap::new();
    for (number, table) in dataset.tables.iter().enumerate() {
        let mut text = Vec::new();
        csv_header(&table.schema, &mut text);
        files.insert((number, "csv"), text);
        files.insert((number, "bin"), copy_binary::HEADER.to_vec());
    }
    while let Some(chunk) = source.next(ROWS)? {
        prints.add(&chunk)?;
        for table in &chunk.tables {
            for (kind, encode) in encoders {
                let file = files.entry((table.table, kind)).or_default();
                encode(&table.rows, file)?;
            }
        }
    }
    for ((number, kind), mut file) in files {
        if kind == "bin" {
            file.extend_from_slice(&copy_binary::TRAILER);
        }
        let name = &dataset.tables[number].name;
        fs::write(format!("{folder}/{name}.{kind}"), file)?;
    }
    for (print, table) in prints.as_slice().iter().zip(&dataset.tables) {
        let name = &table.name;
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
    if arguments.first().is_some_and(|what| what == "texts") {
        return measure_encoders(&texts()?, 500);
    }
    let config = config(&arguments)?;
    match arguments.get(3).map_or("20", String::as_str) {
        folder if folder.starts_with("write=") => write(&config, &folder["write=".len()..]),
        rounds => measure(&config, rounds.parse()?),
    }
}
