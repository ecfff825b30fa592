//! Where rows come from: one JSON document, checked, becomes a [`Source`].

mod files;
mod fingerprint;
pub mod formats;
mod parquet;
mod stream;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use loadstone_gen::dataset::Source;
use loadstone_gen::native::{self, NativeSource};
use loadstone_gen::rows::{self, RowsSource};
use loadstone_gen::tsbs::{Config, ConfigError, SimulationSource, TextSource, UseCase};
use serde::Deserialize;

use crate::data::formats::formats;
use crate::error::DriveError;
use crate::files::duplicate;

pub(crate) use files::FileRows;
pub use files::{FileFormat, FilesSpec};
pub use fingerprint::fingerprint_rows;
pub use parquet::{ParquetSpec, WantedColumn};
pub use stream::{DataStream, FingerprintDocument, TableBatch, document};

/// Compressed bytes read at a time.
const COMPRESSED_BYTES: usize = 1 << 17;

/// A data set, by the way in which it is made or read.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DataSpec {
    /// TSBS's serial stream.
    Tsbs(TsbsSpec),
    /// The stream that starts anywhere.
    Native(NativeSpec),
    /// TSBS's own text format.
    Text(TextSpec),
    /// Rows of a plain table, from any row on.
    Rows(RowsSpec),
    /// Rows of a plain table in files, sent as they are.
    Files(FilesSpec),
    /// Rows of a plain table in files of Parquet, read as values.
    Parquet(ParquetSpec),
}

/// TSBS's parameters; times in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TsbsSpec {
    /// TSBS's name of the use case.
    pub use_case: String,
    /// Seed of the stream.
    pub seed: i64,
    /// Number of hosts or trucks.
    pub scale: u64,
    /// How many of them report in the first epoch; 0: all.
    #[serde(default)]
    pub initial_scale: u64,
    /// First timestamp.
    pub start_ns: i64,
    /// End of the time range, exclusive.
    pub end_ns: i64,
    /// Time between two rows of one device.
    pub interval_ns: i64,
    /// Most rows to simulate; 0: no limit.
    #[serde(default)]
    pub max_points: u64,
    /// Most fields of one host; `devops-generic` only.
    #[serde(default = "hundred")]
    pub max_metrics: u64,
    /// Which of the interleaved groups to make.
    #[serde(default)]
    pub group: u32,
    /// Number of interleaved groups.
    #[serde(default = "one")]
    pub groups: u32,
}

/// Parameters of native data; times in nanoseconds since 1970 UTC.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeSpec {
    /// TSBS's name of the use case.
    pub use_case: String,
    /// Seed of every value.
    pub seed: i64,
    /// Number of hosts or trucks.
    pub scale: u64,
    /// First timestamp.
    pub start_ns: i64,
    /// End of the time range, exclusive.
    pub end_ns: i64,
    /// Time between two rows of one device.
    pub interval_ns: i64,
    /// Which slice, of how many.
    #[serde(default = "whole")]
    pub slice: (u32, u32),
}

/// A file of text, or one that is open already.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextSpec {
    /// Its name.
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// Its descriptor.
    #[serde(default)]
    pub fd: Option<i32>,
    /// What was read of it before: the header, that tables must be made of first.
    #[serde(default)]
    pub head: String,
}

/// Rows of a plain table, made by a formula.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsSpec {
    /// Name of the data set.
    pub set: String,
    /// Seed of every value.
    pub seed: i64,
    /// Number of the first row, counted from 0.
    #[serde(default)]
    pub first: u64,
    /// How many rows.
    pub rows: u64,
    /// What is chosen of the set's options.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

fn one() -> u32 {
    1
}

fn hundred() -> u64 {
    100
}

fn whole() -> (u32, u32) {
    (0, 1)
}

impl DataSpec {
    /// Read and check a document.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`] with what is wrong and the mend.
    pub fn from_json(text: &str) -> Result<Self, DriveError> {
        let spec: Self = serde_json::from_str(text).map_err(|e| {
            DriveError::bad_spec(format!("the data's specification does not parse: {e}"), "")
        })?;
        spec.check()?;
        Ok(spec)
    }

    /// Refuse what no source can make.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`].
    pub fn check(&self) -> Result<(), DriveError> {
        match self {
            Self::Tsbs(spec) => {
                check_times(spec.start_ns, spec.end_ns, spec.interval_ns)?;
                spec.config().map(drop)
            }
            Self::Native(spec) => {
                check_times(spec.start_ns, spec.end_ns, spec.interval_ns)?;
                spec.config().map(drop)
            }
            Self::Text(spec) => spec.check(),
            Self::Rows(spec) => spec.source().map(drop),
            Self::Files(spec) => spec.check(),
            Self::Parquet(spec) => spec.check(),
        }
    }

    /// Begin to make or read the rows.
    ///
    /// # Errors
    /// [`DriveError`] when the data cannot be made, or the file not be opened.
    pub fn open(&self) -> Result<Box<dyn Source>, DriveError> {
        self.check()?;
        match self {
            Self::Tsbs(spec) => {
                let refused = |error: ConfigError| DriveError::bad_spec(error.to_string(), "");
                let source = SimulationSource::new(&spec.config()?).map_err(refused)?;
                Ok(Box::new(source))
            }
            Self::Native(spec) => {
                let refused =
                    |error: native::ConfigError| DriveError::bad_spec(error.to_string(), "");
                let source = NativeSource::new(&spec.config()?).map_err(refused)?;
                Ok(Box::new(source))
            }
            Self::Text(spec) => Ok(Box::new(TextSource::new(spec.reader()?)?)),
            Self::Rows(spec) => Ok(Box::new(spec.source()?)),
            Self::Parquet(spec) => Ok(Box::new(spec.open()?)),
            Self::Files(_) => Err(DriveError::bad_spec(
                "rows of files are sent unchanged, not as values".to_owned(),
                "load them by COPY",
            )),
        }
    }
}

impl TsbsSpec {
    /// The parameters as the generator takes them.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`] when the use case is unknown.
    pub fn config(&self) -> Result<Config, DriveError> {
        Ok(Config {
            use_case: use_case(&self.use_case)?,
            seed: self.seed,
            scale: self.scale,
            initial_scale: self.initial_scale,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            interval_ns: self.interval_ns,
            max_points: self.max_points,
            max_metrics: self.max_metrics,
            group: self.group,
            groups: self.groups,
        })
    }
}

impl NativeSpec {
    fn config(&self) -> Result<native::Config, DriveError> {
        Ok(native::Config {
            use_case: use_case(&self.use_case)?,
            seed: self.seed,
            scale: self.scale,
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            interval_ns: self.interval_ns,
            slice: self.slice,
        })
    }
}

impl RowsSpec {
    /// The rows, from the first.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`] when there is no such set, option or row.
    pub fn source(&self) -> Result<RowsSource, DriveError> {
        let config = rows::Config {
            set: self.set.clone(),
            seed: self.seed,
            first: self.first,
            rows: self.rows,
            options: self.options.clone(),
        };
        let refused = |error: rows::ConfigError| DriveError::bad_spec(error.to_string(), "");
        RowsSource::new(&config).map_err(refused)
    }
}

impl TextSpec {
    fn check(&self) -> Result<(), DriveError> {
        if self.path.is_some() == self.fd.is_some() {
            let message = "text is read from one file".to_owned();
            return Err(DriveError::bad_spec(
                message,
                "set exactly one of path and fd",
            ));
        }
        Ok(())
    }

    /// The text of the file, which may be compressed.
    fn reader(&self) -> Result<Box<dyn Read + Send>, DriveError> {
        let (name, opened) = match (&self.path, self.fd) {
            (Some(path), _) => (path.display().to_string(), File::open(path)),
            (None, fd) => {
                let fd = fd.unwrap_or(0);
                (format!("file descriptor {fd}"), duplicate(fd))
            }
        };
        let failed = |source| DriveError::System {
            what: format!("opening {name}"),
            source,
            hint: "use a file of TSBS's text that can be read".to_owned(),
        };
        let file = opened.map_err(failed)?;
        if self.head.is_empty() {
            return plain(file, self.path.as_deref()).map_err(failed);
        }
        Ok(Box::new(Cursor::new(self.head.clone()).chain(file)))
    }
}

/// What the file holds, decompressed if it begins as gzip or zstd does; of zstd, its name must be known.
fn plain(mut file: File, path: Option<&Path>) -> io::Result<Box<dyn Read + Send>> {
    let mut first = Vec::new();
    file.by_ref().take(4).read_to_end(&mut first)?;
    let is_gzip = first.starts_with(&[0x1f, 0x8b]);
    let is_zstd = first == [0x28, 0xb5, 0x2f, 0xfd];
    let whole = Cursor::new(first).chain(file);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(BufReader::with_capacity(
            COMPRESSED_BYTES,
            whole,
        )))
    } else if let (true, Some(path)) = (is_zstd, path) {
        let whole = formats()?.zstd_file(path)?;
        Box::new(BufReader::with_capacity(COMPRESSED_BYTES, whole))
    } else {
        Box::new(whole)
    })
}

fn use_case(name: &str) -> Result<UseCase, DriveError> {
    UseCase::from_name(name).map_err(|error| DriveError::bad_spec(error.to_string(), ""))
}

/// TSBS goes on for ever where the end lies before the start.
fn check_times(start_ns: i64, end_ns: i64, interval_ns: i64) -> Result<(), DriveError> {
    if end_ns < start_ns {
        return Err(DriveError::bad_spec(
            "the time range ends before it begins".to_owned(),
            "set an end after the start",
        ));
    }
    if interval_ns <= 0 {
        return Err(DriveError::bad_spec(
            "the log interval must be above zero".to_owned(),
            "set the time between two rows of one device, such as 10s",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::io::Write;
    use tempfile::TempDir;

    const START_NS: i64 = 1_451_606_400_000_000_000;

    fn tsbs(more: &Value) -> Result<DataSpec, DriveError> {
        let mut spec = json!({
            "kind": "tsbs", "use_case": "iot", "seed": 123, "scale": 5, "start_ns": START_NS,
            "end_ns": START_NS + 600_000_000_000_i64, "interval_ns": 10_000_000_000_i64,
        });
        for (key, value) in more.as_object().unwrap() {
            spec[key] = value.clone();
        }
        DataSpec::from_json(&spec.to_string())
    }

    #[test]
    fn what_no_source_can_make_is_refused_in_words() {
        let cases = [
            (json!({"use_case": "iox"}), "use case \"iox\" is unknown"),
            (json!({"end_ns": START_NS - 1}), "ends before it begins"),
            (json!({"interval_ns": 0}), "log interval"),
            (json!({"interval_ns": -1}), "log interval"),
            (json!({"colour": "red"}), "unknown field `colour`"),
            (json!({"kind": "avro"}), "unknown variant `avro`"),
            (json!({"kind": "text"}), "unknown field"),
        ];
        for (more, words) in cases {
            let error = tsbs(&more).unwrap_err().to_string();
            assert!(error.contains(words), "{more}: {error}");
        }
        for (more, words) in [
            (json!({"scale": 0}), "scale"),
            (json!({"group": 1}), "group"),
        ] {
            let error = tsbs(&more).unwrap().open().err().unwrap().to_string();
            assert!(error.contains(words), "{more}: {error}");
        }
        for text in [
            json!({"kind": "text"}),
            json!({"kind": "text", "fd": 0, "path": "x"}),
        ] {
            let error = DataSpec::from_json(&text.to_string()).unwrap_err();
            assert_eq!(error.to_string(), "text is read from one file");
        }
        let missing = json!({"kind": "text", "path": "/nosuch"}).to_string();
        let error = DataSpec::from_json(&missing).unwrap().open().err().unwrap();
        assert!(
            error.to_string().starts_with("opening /nosuch: "),
            "{error}"
        );
    }

    #[test]
    fn text_is_read_as_it_is_or_compressed() {
        let spec = tsbs(&json!({})).unwrap();
        let DataSpec::Tsbs(parameters) = &spec else {
            unreachable!("kind is tsbs");
        };
        let mut text = Vec::new();
        loadstone_gen::tsbs::write(&parameters.config().unwrap(), &mut text).unwrap();
        let rows = count(&spec);
        let folder = TempDir::new().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            json!({"kind": "text", "path": path}).to_string()
        };
        let gzip = |bytes: &[u8]| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        let (first, second) = text.split_at(text.len() / 2);
        let documents = [
            write("plain", &text),
            write("gzip", &[gzip(first), gzip(second)].concat()),
        ];
        for document in documents {
            let read = DataSpec::from_json(&document).unwrap();
            assert_eq!(count(&read), rows, "{document}");
        }
    }

    fn count(spec: &DataSpec) -> u64 {
        let mut source = spec.open().unwrap();
        let mut rows = 0;
        while let Some(chunk) = source.next(100).unwrap() {
            rows += chunk.rows;
        }
        assert!(rows > 400, "{rows}");
        rows
    }
}
