//! Rows that are in files, handed on as they are.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use loadstone_gen::dataset::{Dataset, Plain, SourceError, Table};
use loadstone_gen::rowfile::{Format, RowError, RowFinder};
use serde::Deserialize;

use crate::error::DriveError;

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;
/// Rows of each file that are looked at before anything is sent.
const LOOK_ROWS: usize = 1000;

/// Files of rows that `COPY` can read.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesSpec {
    /// How the rows are in them.
    pub format: FileFormat,
    /// The files, in order; each may be compressed (gzip, zstd).
    pub paths: Vec<PathBuf>,
    /// Each begins with a row of names; text and CSV only.
    #[serde(default)]
    pub header: bool,
    /// Fields of each row.
    pub columns: usize,
}

/// `COPY`'s formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Lines of fields parted by tabs.
    Text,
    /// Lines of fields parted by commas, some of them quoted.
    Csv,
    /// Tuples.
    Binary,
}

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Text => Self::Text,
            FileFormat::Csv => Self::Csv,
            FileFormat::Binary => Self::Binary,
        }
    }
}

impl FilesSpec {
    /// Refuse what no file can be.
    pub(super) fn check(&self) -> Result<(), DriveError> {
        let refuse =
            |message: &str, hint: &str| Err(DriveError::bad_spec(message.to_owned(), hint));
        if self.paths.is_empty() {
            return refuse("there are no files", "set at least one path");
        }
        if self.columns == 0 {
            return refuse("columns is 0", "set the number of fields of a row");
        }
        if self.header && self.format == FileFormat::Binary {
            return refuse("binary files have no header", "remove header");
        }
        Ok(())
    }

    /// The one table that the rows are for, as far as it is known.
    pub(crate) fn dataset(&self, table: &str) -> Dataset {
        let name = |number| format!("column {}", number + 1);
        let fields: Vec<_> = (0..self.columns)
            .map(|number| Field::new(name(number), DataType::Utf8, true))
            .collect();
        let plain = Plain {
            usual_indexes: Vec::new(),
            sequence: None,
            row_bytes: 0.0,
        };
        let table = Table {
            name: table.to_owned(),
            schema: Arc::new(Schema::new(fields)),
            metrics: self.columns,
            plain: Some(plain),
        };
        Dataset {
            tags: None,
            tables: vec![table],
        }
    }

    /// Open the files and look at the first rows of each.
    pub(crate) fn open(&self) -> Result<FileRows, DriveError> {
        self.check()?;
        for path in &self.paths {
            let mut opened = OpenFile::new(path.clone(), self)?;
            let mut looked = 0;
            while let Some(found) = opened.next(LOOK_ROWS - looked)? {
                looked += found.rows;
                if looked == LOOK_ROWS {
                    break;
                }
            }
        }
        Ok(FileRows {
            spec: self.clone(),
            left: self.paths.iter().cloned().collect(),
            opened: None,
        })
    }
}

/// The rows of several files, one after the other.
pub(crate) struct FileRows {
    spec: FilesSpec,
    left: VecDeque<PathBuf>,
    opened: Option<OpenFile>,
}

/// Whole rows as they are in a file.
pub(crate) struct Rows<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) rows: usize,
}

impl FileRows {
    /// Give at most `most` rows to `take`, in pieces; returns how many there were: fewer where a file ends, none when
    /// all have. Rows of two files are never given together: lines of the other may end differently, and a file's
    /// last line need not have an end.
    pub(crate) fn next(
        &mut self,
        most: usize,
        take: &mut dyn FnMut(&Rows<'_>),
    ) -> Result<usize, DriveError> {
        let mut taken = 0;
        while taken < most {
            let opened = match &mut self.opened {
                Some(opened) => opened,
                None => match self.left.pop_front() {
                    Some(path) => self.opened.insert(OpenFile::new(path, &self.spec)?),
                    None => break,
                },
            };
            if let Some(found) = opened.next(most - taken)? {
                taken += found.rows;
                take(&found);
            } else {
                self.opened = None;
                if taken > 0 {
                    break;
                }
            }
        }
        Ok(taken)
    }
}

/// One file that is being read.
struct OpenFile {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    finder: RowFinder,
    /// What was read of it and not consumed lies from `from` on.
    kept: Vec<u8>,
    from: usize,
    read_bytes: u64,
    is_over: bool,
}

impl OpenFile {
    fn new(path: PathBuf, spec: &FilesSpec) -> Result<Self, DriveError> {
        let opened = File::open(&path).and_then(|file| super::plain(file, Some(&path)));
        let reader = opened.map_err(|source| DriveError::System {
            what: format!("opening {}", path.display()),
            source,
            hint: "use files that can be read".to_owned(),
        })?;
        Ok(Self {
            finder: RowFinder::new(spec.format.into(), spec.columns, spec.header),
            path,
            reader,
            kept: Vec::new(),
            from: 0,
            read_bytes: 0,
            is_over: false,
        })
    }

    /// The next rows, at most `most`; none at the end.
    fn next(&mut self, most: usize) -> Result<Option<Rows<'_>>, DriveError> {
        loop {
            let found = self
                .finder
                .find(&self.kept[self.from..], self.is_over, most)
                .map_err(|error| refused(&self.path, &error))?;
            let begin = self.from;
            self.from += found.consumed;
            if found.rows > 0 {
                let bytes = begin + found.bytes.start..begin + found.bytes.end;
                return Ok(Some(Rows {
                    bytes: &self.kept[bytes],
                    rows: found.rows,
                }));
            }
            if found.consumed == 0 {
                if self.is_over {
                    return Ok(None);
                }
                self.read()?;
            }
        }
    }

    /// Read more of the file behind what is kept of it.
    fn read(&mut self) -> Result<(), DriveError> {
        self.kept.drain(..self.from);
        self.from = 0;
        // A row that is longer than all that was read is looked at again: twice as much is read each time.
        let wanted = READ_BYTES.max(self.kept.len()) as u64;
        let read = self
            .reader
            .by_ref()
            .take(wanted)
            .read_to_end(&mut self.kept);
        let read = read.map_err(|source| {
            let bytes = self.read_bytes;
            named(
                &self.path,
                &SourceError::Input { bytes, source }.to_string(),
            )
        })?;
        self.read_bytes += read as u64;
        self.is_over = read == 0;
        Ok(())
    }
}

fn refused(path: &Path, error: &RowError) -> DriveError {
    DriveError::bad_spec(format!("{}: {error}", path.display()), error.hint)
}

fn named(path: &Path, words: &str) -> DriveError {
    DriveError::Data(SourceError::Refused(format!("{}: {words}", path.display())))
}

impl std::fmt::Debug for FileRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileRows")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}
