//! The data of the Time Series Benchmark Suite (TSBS), byte for byte.
//!
//! TSBS draws every value of a data set from one random stream in the order of the program, so one
//! thread must simulate. It writes compact [`Block`]s; any other thread can turn a block into text with
//! the [`Catalog`], and texts joined in the order of their blocks are what `tsbs_generate_data
//! --format=timescaledb` writes for the same parameters.
//!
//! ```
//! use loadstone_gen::tsbs::{Config, UseCase, write};
//!
//! let config = Config { end_ns: 1_451_606_420_000_000_000, ..Config::new(UseCase::CpuSingle, 123) };
//! let mut text = Vec::new();
//! write(&config, &mut text)?;
//! assert!(text.ends_with(b"cpu,1451606410000000000,56\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arrow;
mod batches;
mod block;
mod config;
pub(crate) mod devices;
mod devops;
pub(crate) mod fields;
pub mod go_rand;
mod hosts;
mod influx;
mod lifetime;
mod population;
mod read;
mod strings;
mod tables;
mod text;
mod trucks;
mod walk;

use std::io::{self, Write};
use std::sync::Arc;

pub use arrow::SimulationSource;
pub use block::Block;
pub use config::{Config, ConfigError, UseCase};
use go_rand::GoRand;
use hosts::Hosts;
pub use read::TextSource;
use strings::Strings;
pub use text::Text;

/// A simulation in progress.
#[derive(Clone, Debug)]
pub struct Simulation(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Hosts(Box<devops::Simulation>),
    Trucks(Box<batches::Simulation>),
}

impl Simulation {
    /// Draws the devices.
    ///
    /// # Errors
    /// If the configuration cannot be generated.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let settled = config.settle()?;
        let rng = GoRand::new(config.seed);
        Ok(Self(match config.use_case {
            UseCase::Iot => Kind::Trucks(Box::new(batches::Simulation::new(config, &settled, rng))),
            _ => Kind::Hosts(Box::new(devops::Simulation::new(config, &settled, rng))),
        }))
    }

    /// What is needed to read and format blocks.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        match &self.0 {
            Kind::Hosts(hosts) => hosts.catalog(),
            Kind::Trucks(trucks) => trucks.catalog(),
        }
    }

    /// Replaces the block's rows by the next ones, at least one; false when there are no more.
    /// Like TSBS it does not end when the time range does before it begins.
    pub fn fill(&mut self, block: &mut Block) -> bool {
        match &mut self.0 {
            Kind::Hosts(hosts) => hosts.fill(block),
            Kind::Trucks(trucks) => trucks.fill(block),
        }
    }
}

/// What does not change during a simulation: tables, tags and constants of the devices.
#[derive(Clone, Debug)]
pub struct Catalog(CatalogKind);

#[derive(Clone, Debug)]
enum CatalogKind {
    Hosts(Box<Hosts>),
    /// The line of tags of each truck.
    Trucks(Strings),
}

impl Catalog {
    /// The lines before the first row: names of tags, tables and fields.
    #[must_use]
    pub fn header(&self) -> String {
        match &self.0 {
            CatalogKind::Hosts(hosts) => text::hosts_header(hosts),
            CatalogKind::Trucks(_) => text::TRUCKS_HEADER.to_owned(),
        }
    }

    /// Appends the rows of a block that a simulation with this catalog filled.
    pub fn format(&self, block: &Block, text: &mut Text) {
        match &self.0 {
            CatalogKind::Hosts(hosts) if block.rows() > 0 => {
                text::format_hosts(hosts, &block.hosts, text);
            }
            CatalogKind::Hosts(_) => {}
            CatalogKind::Trucks(tags) => text::format_trucks(tags, &block.trucks, text),
        }
    }

    /// Appends the rows of a block as TSBS's `--format=influx` writes them: a line of `InfluxDB`'s line
    /// protocol each. There is no header.
    pub fn format_influx(&self, block: &Block, text: &mut Text) {
        match &self.0 {
            CatalogKind::Hosts(hosts) if block.rows() > 0 => {
                influx::format_hosts(hosts, &block.hosts, text);
            }
            CatalogKind::Hosts(_) => {}
            CatalogKind::Trucks(tags) => influx::format_trucks(tags, &block.trucks, text),
        }
    }

    /// Number of field values in a block, as TSBS counts metrics when it loads: empty ones too.
    #[must_use]
    pub fn metrics(&self, block: &Block) -> u64 {
        let count = match &self.0 {
            CatalogKind::Hosts(hosts) => {
                let table = &hosts.schema.tables[block.hosts.table];
                match table.shape {
                    tables::Shape::Ragged => block.hosts.values.len(),
                    _ => block.rows() * table.fields.len(),
                }
            }
            CatalogKind::Trucks(_) => block.trucks.iter().map(block::TruckRow::width).sum(),
        };
        count as u64
    }
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WriteTotals {
    /// Number of rows.
    pub rows: u64,
    /// Number of field values.
    pub metrics: u64,
    /// Bytes of text with the header.
    pub bytes: u64,
}

/// Why a data set could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// It cannot be generated.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It cannot be stored.
    #[error("writing TSBS data after {bytes} bytes: {source}")]
    Output {
        /// Bytes that were written before.
        bytes: u64,
        /// What went wrong.
        source: io::Error,
    },
}

/// Writes a whole data set in TSBS's format for `TimescaleDB`, in pieces of about 100 KiB.
///
/// # Errors
/// If the configuration cannot be generated, or the output refuses a write.
pub fn write(config: &Config, output: &mut impl Write) -> Result<WriteTotals, WriteError> {
    let mut simulation = Simulation::new(config)?;
    let catalog = Arc::clone(simulation.catalog());
    let (mut block, mut text, mut written) =
        (Block::default(), Text::default(), WriteTotals::default());
    let mut put = |bytes: &[u8], written: &mut WriteTotals| {
        let failed = |source| WriteError::Output {
            bytes: written.bytes,
            source,
        };
        output.write_all(bytes).map_err(failed)?;
        written.bytes += bytes.len() as u64;
        Ok::<(), WriteError>(())
    };
    put(catalog.header().as_bytes(), &mut written)?;
    while simulation.fill(&mut block) {
        text.clear();
        catalog.format(&block, &mut text);
        put(text.as_bytes(), &mut written)?;
        written.rows += block.rows() as u64;
        written.metrics += catalog.metrics(&block);
    }
    Ok(written)
}
