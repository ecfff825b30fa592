//! Makes native data as Arrow batches and says how fast: `--use-case`, `--scale`, `--seed`, `--end-ns`, and `--threads`, each of
//! which makes a slice of its own.

#![expect(
    clippy::print_stderr,
    reason = "a figure for the person at the terminal"
)]

use std::time::Instant;

use loadstone_gen::dataset::Source;
use loadstone_gen::native::{Config, NativeSource};
use loadstone_gen::tsbs::UseCase;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Rows and metrics of a slice.
fn make(config: &Config) -> Result<(u64, u64), Failure> {
    let mut source = NativeSource::new(config)?;
    let (mut rows, mut metrics) = (0, 0);
    while let Some(chunk) = source.next(10_000)? {
        rows += chunk.rows;
        metrics += chunk.metrics;
    }
    Ok((rows, metrics))
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
    let mut config = Config {
        scale: 1000,
        ..Config::new(UseCase::Devops, 123)
    };
    let mut threads = 1;
    for argument in std::env::args().skip(1) {
        let flag = argument.trim_start_matches('-');
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        match name {
            "use-case" => config.use_case = UseCase::from_name(value)?,
            "scale" => config.scale = value.parse()?,
            "seed" => config.seed = value.parse()?,
            "end-ns" => config.end_ns = value.parse()?,
            "threads" => threads = value.parse()?,
            _ => return Err(format!("unknown flag --{name}").into()),
        }
    }
    let start = Instant::now();
    let slices = (0..threads).map(|index| {
        let slice = (index, threads);
        let config = Config {
            slice,
            ..config.clone()
        };
        std::thread::spawn(move || make(&config))
    });
    let slices: Vec<_> = slices.collect();
    let (mut rows, mut metrics) = (0, 0);
    for slice in slices {
        let (more_rows, more_metrics) = slice.join().map_err(|_| "a thread failed")??;
        rows += more_rows;
        metrics += more_metrics;
    }
    let seconds = start.elapsed().as_secs_f64();
    let per_microsecond = |count: u64| count as f64 / seconds / 1e6;
    eprintln!(
        "{rows} rows, {metrics} metrics in {seconds:.3} s: {:.2} M rows/s, {:.1} M metrics/s",
        per_microsecond(rows),
        per_microsecond(metrics)
    );
    Ok(())
}
