//! Plain rows as one file, or as one a step: pieces are made and encoded by all threads, each at its own place.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use loadstone_gen::dataset::{Source, SourceError};
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text, csv, csv_header};
use loadstone_gen::rows::RowsSource;

use super::compress::{Compression, Compressor};
use super::pipeline::{self, End, Stages};
use super::sink::{Folder, Sink};
use super::tables::ending;
use super::text::compressing;
use super::{Counters, Format, GenerationSpec};
use crate::data::RowsSpec;
use crate::error::DriveError;

/// About so many bytes go from thread to thread together: rows and text of them stay in the second cache.
const PIECE_BYTES: f64 = 200_000.0;
/// More files than this are no use to anybody.
const FILES_MAX: u64 = 100_000;

/// Files about to be made.
pub(super) struct Job {
    places: Places,
    encoding: Encoding,
    output: Output,
    table: String,
}

/// Where the bytes go.
enum Output {
    One(Sink),
    Steps(Folder),
}

/// The pieces still to be made: rows of one file each, counted from the first.
struct Places {
    next: u64,
    is_begun: bool,
    rows: u64,
    /// Rows of a file.
    step_rows: u64,
    piece_rows: u64,
}

/// Rows of one file, and what they become.
#[derive(Default)]
pub(super) struct Piece {
    rows: Range<u64>,
    file: u64,
    /// Whether it is the first, or the last, of its file.
    begins: bool,
    ends: bool,
    columns: u64,
    plain: Vec<u8>,
    packed: Vec<u8>,
}

struct Encoding {
    data: RowsSpec,
    format: Format,
    compression: Compression,
    header: bool,
}

/// What one thread makes rows with.
pub(super) struct Tools {
    source: RowsSource,
    compressor: Compressor,
}

impl Job {
    pub(super) fn open(spec: &GenerationSpec, data: &RowsSpec) -> Result<Self, DriveError> {
        let source = data.source()?;
        let table = &source.dataset().tables[0];
        let row_bytes = table.plain.as_ref().map_or(1.0, |plain| plain.row_bytes);
        let step_rows = match spec.step_rows {
            0 => data.rows.max(1),
            rows => rows,
        };
        let files = data.rows.div_ceil(step_rows).max(1);
        let end = format!("{}{}", ending(spec.format), spec.compress.ending());
        let output = if spec.step_rows > 0 {
            Output::steps(spec, &table.name, &end, files)?
        } else {
            Output::One(Sink::open(&spec.output)?)
        };
        Ok(Self {
            places: Places {
                next: 0,
                is_begun: false,
                rows: data.rows,
                step_rows,
                piece_rows: rows_of(PIECE_BYTES / row_bytes.max(1.0)),
            },
            encoding: Encoding {
                data: data.clone(),
                format: spec.format,
                compression: spec.compress,
                header: spec.header,
            },
            output,
            table: format!("{}-{{}}{end}", table.name),
        })
    }

    pub(super) fn run(
        self,
        threads: usize,
        stop: &AtomicBool,
        counters: &Counters,
    ) -> Result<End, DriveError> {
        let Self {
            places,
            encoding,
            mut output,
            table,
        } = self;
        let end = pipeline::run(&encoding, places, threads, stop, |piece| {
            if piece.begins
                && let Output::Steps(folder) = &mut output
            {
                folder.turn_to(&name(&table, piece.file))?;
            }
            let bytes = piece.bytes(encoding.compression);
            match &mut output {
                Output::One(sink) => sink.write(bytes)?,
                Output::Steps(folder) => folder.write(0, bytes)?,
            }
            let rows = piece.rows.end - piece.rows.start;
            let plain = piece.plain.len() as u64;
            counters.add(rows, rows * piece.columns, plain, bytes.len() as u64);
            Ok(())
        })?;
        if end == End::Complete {
            match output {
                Output::One(sink) => sink.finish()?,
                Output::Steps(folder) => folder.finish()?,
            }
        }
        Ok(end)
    }
}

/// The name of a step's file, counted from 1.
fn name(pattern: &str, file: u64) -> String {
    pattern.replace("{}", &format!("{:06}", file + 1))
}

/// A number of rows, one at least.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the bytes of a piece"
)]
fn rows_of(rows: f64) -> u64 {
    rows.max(1.0) as u64
}

impl Output {
    fn steps(
        spec: &GenerationSpec,
        table: &str,
        end: &str,
        files: u64,
    ) -> Result<Self, DriveError> {
        let Some(path) = &spec.output.path else {
            return Err(DriveError::bad_spec(
                "each step is a file of its own, which one output cannot contain".to_owned(),
                "choose a new folder, or remove the steps",
            ));
        };
        if files > FILES_MAX {
            return Err(DriveError::bad_spec(
                format!("{files} files are too many"),
                "use more rows per step: at most 100000 files are written",
            ));
        }
        let pattern = format!("{table}-{{}}{end}");
        let names: Vec<_> = (0..files).map(|file| name(&pattern, file)).collect();
        Ok(Self::Steps(Folder::begin(
            path,
            &names,
            spec.output.overwrite,
        )?))
    }
}

impl Places {
    /// The next piece; of no rows at all there is one, with what a file has besides.
    fn fill(&mut self, piece: &mut Piece) -> bool {
        if self.is_begun && self.next >= self.rows {
            return false;
        }
        self.is_begun = true;
        let file = self.next / self.step_rows;
        let file_end = self.rows.min((file + 1).saturating_mul(self.step_rows));
        let end = file_end.min(self.next + self.piece_rows);
        piece.rows = self.next..end;
        piece.file = file;
        piece.begins = self.next == file * self.step_rows;
        piece.ends = end == file_end;
        self.next = end;
        true
    }
}

impl Stages for Encoding {
    type Piece = Piece;
    type Error = DriveError;
    type Maker = Places;
    type Tools = Tools;

    fn make(places: &mut Places, piece: &mut Piece) -> Result<bool, DriveError> {
        Ok(places.fill(piece))
    }

    fn tools(&self) -> Result<Tools, DriveError> {
        Ok(Tools {
            source: self.data.source()?,
            compressor: self.compression.compressor().map_err(compressing)?,
        })
    }

    fn work(&self, tools: &mut Tools, piece: &mut Piece) -> Result<(), DriveError> {
        let refused = |error: String| DriveError::Data(SourceError::Refused(error));
        let count = piece.rows.end - piece.rows.start;
        let source = &mut tools.source;
        source
            .go_to(self.data.first + piece.rows.start, count)
            .map_err(|error| refused(error.to_string()))?;
        let table = &source.dataset().tables[0];
        piece.columns = table.metrics as u64;
        piece.plain.clear();
        match self.format {
            Format::CopyBinary if piece.begins => {
                piece.plain.extend_from_slice(copy_binary::HEADER);
            }
            Format::Csv if piece.begins && self.header => {
                csv_header(&table.schema, &mut piece.plain);
            }
            _ => {}
        }
        if let Some(chunk) = source.next(usize::try_from(count.max(1)).unwrap_or(usize::MAX))? {
            for part in &chunk.tables {
                let encoded: Result<(), EncodeError> = match self.format {
                    Format::CopyBinary => copy_binary(&part.rows, &mut piece.plain),
                    Format::CopyText => copy_text(&part.rows, &mut piece.plain),
                    _ => csv(&part.rows, &mut piece.plain),
                };
                encoded.map_err(|error| refused(error.to_string()))?;
            }
        }
        if piece.ends && self.format == Format::CopyBinary {
            piece.plain.extend_from_slice(&copy_binary::TRAILER);
        }
        tools
            .compressor
            .pack(&piece.plain, &mut piece.packed)
            .map(drop)
            .map_err(compressing)
    }
}

impl Piece {
    fn bytes(&self, compression: Compression) -> &[u8] {
        match compression {
            Compression::None => &self.plain,
            _ => &self.packed,
        }
    }
}
