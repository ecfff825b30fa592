//! A data set as a folder, one file a table.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loadstone_gen::dataset::{Chunk, Dataset, Source, SourceError, Table};
use loadstone_gen::dictionary_batch::DictionaryBatch;
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text, csv, csv_header};

use super::compress::{Compression, Compressor};
use super::pipeline::{self, End, Stages};
use super::sink::Folder;
use super::text::compressing;
use super::{Counters, Format, GenerationSpec};
use crate::error::DriveError;

/// Rows that go from thread to thread together.
const ROWS: usize = 1 << 14;

/// Tables about to be made.
pub(super) struct Job {
    source: Box<dyn Source>,
    encoding: Encoding,
    folder: Folder,
}

/// Rows and what they become, by file.
#[derive(Default)]
pub(super) struct Piece {
    chunk: Chunk,
    parts: Vec<Part>,
    used: usize,
}

#[derive(Default)]
struct Part {
    file: usize,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

struct Encoding {
    format: Format,
    compression: Compression,
    has_tags: bool,
}

impl Job {
    pub(super) fn open(spec: &GenerationSpec) -> Result<Self, DriveError> {
        let Some(path) = &spec.output.path else {
            return Err(DriveError::bad_spec(
                "this format has one file per table, which one output cannot contain".to_owned(),
                "choose a new folder",
            ));
        };
        let source = spec.data.open()?;
        let dataset = Arc::clone(source.dataset());
        let end = format!("{}{}", ending(spec.format), spec.compress.ending());
        let names = tables(&dataset).map(|table| format!("{}{end}", table.name));
        Ok(Self {
            folder: Folder::create(path, names.collect(), spec.output.overwrite)?,
            encoding: Encoding {
                format: spec.format,
                compression: spec.compress,
                has_tags: dataset.tags.is_some(),
            },
            source,
        })
    }

    pub(super) fn run(
        self,
        threads: usize,
        stop: &AtomicBool,
        counters: &Counters,
    ) -> Result<End, DriveError> {
        let Self {
            source,
            encoding,
            mut folder,
        } = self;
        let dataset = Arc::clone(source.dataset());
        let mut tools = encoding.tools()?;
        let mut put = |folder: &mut Folder, file: usize, plain: &[u8]| {
            let mut packed = Vec::new();
            let bytes = tools.pack(plain, &mut packed).map_err(compressing)?;
            counters.add(0, 0, plain.len() as u64, bytes.len() as u64);
            folder.write(file, bytes)
        };
        for (file, table) in tables(&dataset).enumerate() {
            put(&mut folder, file, &encoding.header(table))?;
        }
        let end = pipeline::run(&encoding, source, threads, stop, |piece| {
            for part in &piece.parts[..piece.used] {
                let bytes = part.bytes(encoding.compression);
                folder.write(part.file, bytes)?;
                counters.add(0, 0, part.plain.len() as u64, bytes.len() as u64);
            }
            counters.add(piece.chunk.rows, piece.chunk.metrics, 0, 0);
            Ok(())
        })?;
        if end == End::Complete {
            for file in 0..folder.files() {
                put(&mut folder, file, encoding.trailer())?;
            }
            folder.finish()?;
        }
        Ok(end)
    }
}

/// All tables in the order of the files.
fn tables(dataset: &Dataset) -> impl Iterator<Item = &Table> {
    dataset.tags.iter().chain(&dataset.tables)
}

pub(super) fn ending(format: Format) -> &'static str {
    match format {
        Format::CopyBinary => ".copy",
        Format::CopyText => ".tsv",
        _ => ".csv",
    }
}

impl Encoding {
    fn header(&self, table: &Table) -> Vec<u8> {
        let mut header = Vec::new();
        match self.format {
            Format::CopyBinary => header.extend_from_slice(copy_binary::HEADER),
            Format::Csv => csv_header(&table.schema, &mut header),
            _ => {}
        }
        header
    }

    fn trailer(&self) -> &'static [u8] {
        match self.format {
            Format::CopyBinary => &copy_binary::TRAILER,
            _ => b"",
        }
    }

    fn encode(
        &self,
        tools: &mut Compressor,
        part: &mut Part,
        file: usize,
        rows: &DictionaryBatch,
    ) -> Result<(), DriveError> {
        part.file = file;
        part.plain.clear();
        match self.format {
            Format::CopyBinary => copy_binary(rows, &mut part.plain),
            Format::CopyText => copy_text(rows, &mut part.plain),
            _ => csv(rows, &mut part.plain),
        }
        .map_err(|error: EncodeError| DriveError::Data(SourceError::Refused(error.to_string())))?;
        tools
            .pack(&part.plain, &mut part.packed)
            .map(drop)
            .map_err(compressing)
    }
}

impl Stages for Encoding {
    type Piece = Piece;
    type Error = DriveError;
    type Maker = Box<dyn Source>;
    type Tools = Compressor;

    fn make(source: &mut Box<dyn Source>, piece: &mut Piece) -> Result<bool, DriveError> {
        let chunk = source.next(ROWS)?;
        let goes_on = chunk.is_some();
        piece.chunk = chunk.unwrap_or_default();
        Ok(goes_on)
    }

    fn tools(&self) -> Result<Compressor, DriveError> {
        self.compression.compressor().map_err(compressing)
    }

    fn work(&self, tools: &mut Compressor, piece: &mut Piece) -> Result<(), DriveError> {
        let first = usize::from(self.has_tags);
        let tags = piece.chunk.tags.iter().cloned();
        let tags = tags.map(|rows| (0, DictionaryBatch::from(rows)));
        let tables = piece.chunk.tables.iter();
        let tables = tables.map(|part| (part.table + first, part.rows.clone()));
        piece.used = 0;
        for (file, rows) in tags.chain(tables) {
            if piece.parts.len() == piece.used {
                piece.parts.push(Part::default());
            }
            self.encode(tools, &mut piece.parts[piece.used], file, &rows)?;
            piece.used += 1;
        }
        Ok(())
    }
}

impl Part {
    fn bytes(&self, compression: Compression) -> &[u8] {
        match compression {
            Compression::None => &self.plain,
            _ => &self.packed,
        }
    }
}
