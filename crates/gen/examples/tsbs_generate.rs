//! Writes TSBS data to standard output, by flags named as `tsbs_generate_data` names them. Times are
//! given in nanoseconds: `--start-ns`, `--end-ns`, `--interval-ns`. With `--threads=2` one thread
//! simulates and another formats; with `--threads=0` nothing is formatted. `--format=influx` writes line
//! protocol, on one thread. `--discard` counts the text instead of writing it. What was made, and how fast, goes to standard error.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use loadstone_gen::tsbs::{Block, Config, Simulation, Text, UseCase, WriteTotals, write};

type Failure = Box<dyn std::error::Error>;

struct Options {
    config: Config,
    threads: usize,
    influx: bool,
    discard: bool,
}

fn parse() -> Result<Options, Failure> {
    let config = Config::new(UseCase::CpuOnly, 123);
    let mut options = Options {
        config,
        threads: 1,
        influx: false,
        discard: false,
    };
    for argument in std::env::args().skip(1) {
        let flag = argument.trim_start_matches('-');
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        let config = &mut options.config;
        match name {
            "use-case" => {
                config.use_case = UseCase::from_name(value).map_err(|error| error.to_string())?;
            }
            "seed" => config.seed = value.parse()?,
            "scale" => config.scale = value.parse()?,
            "initial-scale" => config.initial_scale = value.parse()?,
            "start-ns" => config.start_ns = value.parse()?,
            "end-ns" => config.end_ns = value.parse()?,
            "interval-ns" => config.interval_ns = value.parse()?,
            "max-data-points" => config.max_points = value.parse()?,
            "max-metric-count" => config.max_metrics = value.parse()?,
            "interleaved-generation-group-id" => config.group = value.parse()?,
            "interleaved-generation-groups" => config.groups = value.parse()?,
            "threads" => options.threads = value.parse()?,
            "format" => options.influx = value == "influx",
            "discard" => options.discard = true,
            _ => return Err(format!("unknown flag --{name}").into()),
        }
    }
    Ok(options)
}

/// Blocks go from thread to thread by so many, because each waking costs as much as a block.
const BLOCKS: usize = 16;

/// One thread fills blocks, another formats them; blocks go back to be filled again.
fn write_on_two_threads(config: &Config, output: &mut impl Write) -> Result<WriteTotals, Failure> {
    let mut simulation = Simulation::new(config)?;
    let catalog = Arc::clone(simulation.catalog());
    let (full_sender, full) = sync_channel::<Vec<Block>>(4);
    let (empty_sender, empty) = sync_channel(4);
    for _ in 0..4 {
        empty_sender.send(vec![Block::default(); BLOCKS])?;
    }
    let simulator = std::thread::spawn(move || {
        while let Ok(mut blocks) = empty.recv() {
            let filled = blocks
                .iter_mut()
                .map_while(|block| simulation.fill(block).then_some(()))
                .count();
            blocks.truncate(filled);
            if full_sender.send(blocks).is_err() || filled < BLOCKS {
                return;
            }
        }
    });
    let (mut text, mut written) = (Text::default(), WriteTotals::default());
    output.write_all(catalog.header().as_bytes())?;
    written.bytes += catalog.header().len() as u64;
    while let Ok(blocks) = full.recv() {
        for block in &blocks {
            text.clear();
            catalog.format(block, &mut text);
            output.write_all(text.as_bytes())?;
            written.bytes += text.as_bytes().len() as u64;
            written.rows += block.rows() as u64;
            written.metrics += catalog.metrics(block);
        }
        let _simulator_ended = empty_sender.send(blocks);
    }
    simulator
        .join()
        .map_err(|_| "the simulating thread failed")?;
    Ok(written)
}

/// The cost of the serial part alone.
fn simulate(config: &Config) -> Result<WriteTotals, Failure> {
    let mut simulation = Simulation::new(config)?;
    let catalog = Arc::clone(simulation.catalog());
    let (mut block, mut written) = (Block::default(), WriteTotals::default());
    while simulation.fill(&mut block) {
        written.rows += block.rows() as u64;
        written.metrics += catalog.metrics(&block);
    }
    Ok(written)
}

/// Line protocol, on one thread.
fn write_influx(config: &Config, output: &mut impl Write) -> Result<WriteTotals, Failure> {
    let mut simulation = Simulation::new(config)?;
    let catalog = Arc::clone(simulation.catalog());
    let (mut block, mut text, mut written) =
        (Block::default(), Text::default(), WriteTotals::default());
    while simulation.fill(&mut block) {
        text.clear();
        catalog.format_influx(&block, &mut text);
        output.write_all(text.as_bytes())?;
        written.bytes += text.as_bytes().len() as u64;
        written.rows += block.rows() as u64;
        written.metrics += catalog.metrics(&block);
    }
    Ok(written)
}

fn generate(options: &Options, output: &mut impl Write) -> Result<WriteTotals, Failure> {
    match options.threads {
        _ if options.influx => write_influx(&options.config, output),
        0 => simulate(&options.config),
        1 => Ok(write(&options.config, output)?),
        _ => write_on_two_threads(&options.config, output),
    }
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
    let options = parse()?;
    let start = Instant::now();
    let written = if options.discard {
        generate(&options, &mut io::sink())?
    } else {
        generate(&options, &mut io::stdout().lock())?
    };
    let seconds = start.elapsed().as_secs_f64();
    let per_microsecond = |count: u64| count as f64 / seconds / 1e6;
    eprintln!(
        "{} rows, {} metrics, {} bytes in {seconds:.3} s: {:.2} M rows/s, {:.1} M metrics/s, {:.0} MB/s",
        written.rows,
        written.metrics,
        written.bytes,
        per_microsecond(written.rows),
        per_microsecond(written.metrics),
        per_microsecond(written.bytes)
    );
    Ok(())
}
