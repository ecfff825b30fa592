//! The simulated stream as one text.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadstone_gen::tsbs::{Block, Catalog, Simulation, Text};

use super::compress::{Compression, Compressor};
use super::pipeline::{self, End, Stages};
use super::sink::Sink;
use super::{Counters, Format, GenerationSpec};
use crate::data::DataSpec;
use crate::error::DriveError;

/// Blocks that go from thread to thread together: about a megabyte of text.
const BLOCKS: usize = 16;

/// A text about to be made.
pub(super) struct Job {
    simulation: Simulation,
    formatting: Formatting,
    sink: Sink,
}

/// Blocks and what they become.
#[derive(Default)]
pub(super) struct Piece {
    blocks: Vec<Block>,
    filled: usize,
    text: Text,
    packed: Vec<u8>,
    is_packed: bool,
    rows: u64,
    metrics: u64,
}

struct Formatting {
    catalog: Arc<Catalog>,
    format: Format,
    compression: Compression,
}

impl Job {
    pub(super) fn open(spec: &GenerationSpec) -> Result<Self, DriveError> {
        let DataSpec::Tsbs(data) = &spec.data else {
            return Err(DriveError::bad_spec(
                "only TSBS's own data can be written in this format".to_owned(),
                "choose another format for this data",
            ));
        };
        let refused =
            |error: loadstone_gen::tsbs::ConfigError| DriveError::bad_spec(error.to_string(), "");
        let simulation = Simulation::new(&data.config()?).map_err(refused)?;
        let sink = Sink::open(&spec.output)?;
        Ok(Self {
            formatting: Formatting {
                catalog: Arc::clone(simulation.catalog()),
                format: spec.format,
                compression: spec.compress,
            },
            simulation,
            sink,
        })
    }

    pub(super) fn run(
        self,
        threads: usize,
        stop: &AtomicBool,
        counters: &Counters,
    ) -> Result<End, DriveError> {
        let Self {
            simulation,
            formatting,
            mut sink,
        } = self;
        let header = formatting.header();
        let mut packed = Vec::new();
        let mut tools = formatting.tools()?;
        // Also where there is none: no bytes at all would be no compressed stream.
        let head = tools.pack(header.as_bytes(), &mut packed);
        sink.write(head.map_err(compressing)?)?;
        counters.add(0, 0, header.len() as u64, sink.bytes());
        let end = pipeline::run(&formatting, simulation, threads, stop, |piece| {
            let bytes = piece.bytes();
            sink.write(bytes)?;
            let plain = piece.text.as_bytes().len() as u64;
            counters.add(piece.rows, piece.metrics, plain, bytes.len() as u64);
            Ok(())
        })?;
        if end == End::Complete {
            sink.finish()?;
        }
        Ok(end)
    }
}

impl Formatting {
    fn header(&self) -> String {
        match self.format {
            Format::Influx => String::new(),
            _ => self.catalog.header(),
        }
    }
}

impl Stages for Formatting {
    type Piece = Piece;
    type Error = DriveError;
    type Maker = Simulation;
    type Tools = Compressor;

    fn make(simulation: &mut Simulation, piece: &mut Piece) -> Result<bool, DriveError> {
        piece.blocks.resize_with(BLOCKS, Block::default);
        piece.filled = 0;
        while piece.filled < BLOCKS && simulation.fill(&mut piece.blocks[piece.filled]) {
            piece.filled += 1;
        }
        Ok(piece.filled > 0)
    }

    fn tools(&self) -> Result<Compressor, DriveError> {
        self.compression.compressor().map_err(compressing)
    }

    fn work(&self, tools: &mut Compressor, piece: &mut Piece) -> Result<(), DriveError> {
        piece.text.clear();
        (piece.rows, piece.metrics) = (0, 0);
        for block in &piece.blocks[..piece.filled] {
            match self.format {
                Format::Influx => self.catalog.format_influx(block, &mut piece.text),
                _ => self.catalog.format(block, &mut piece.text),
            }
            piece.rows += block.rows() as u64;
            piece.metrics += self.catalog.metrics(block);
        }
        piece.is_packed = self.compression != Compression::None;
        if piece.is_packed {
            tools
                .pack(piece.text.as_bytes(), &mut piece.packed)
                .map_err(compressing)?;
        }
        Ok(())
    }
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        if self.is_packed {
            &self.packed
        } else {
            self.text.as_bytes()
        }
    }
}

pub(super) fn compressing(source: std::io::Error) -> DriveError {
    DriveError::System {
        what: "compressing".to_owned(),
        source,
        hint: "generate without compression, and compress with another tool".to_owned(),
    }
}
