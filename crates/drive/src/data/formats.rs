//! Formats that libraries of the surrounding program read and write: Parquet and Zstandard.
//!
//! They would take longer to compile than all the rest of us, and whoever embeds the driver in Python has them
//! already. The driver asks for them where rows come in and files go out, never between a transaction's bytes.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::sync::OnceLock;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use loadstone_gen::dataset::SourceError;

use crate::data::ParquetSpec;
use crate::error::DriveError;

/// Rows that somebody else reads.
pub trait RowReader: Send {
    /// The columns of every batch.
    fn schema(&self) -> &SchemaRef;

    /// The next `rows` rows; fewer before the end only, none at the end.
    ///
    /// # Errors
    /// If the rows cannot be had; the message says where and why.
    fn read(&mut self, rows: usize) -> Result<Option<RecordBatch>, SourceError>;
}

/// A compressor, for one thread.
pub trait Compress: Send {
    /// Put what `plain` becomes, a frame of its own, behind what is in `packed`.
    ///
    /// # Errors
    /// If it cannot be compressed.
    fn compress(&mut self, plain: &[u8], packed: &mut Vec<u8>) -> io::Result<()>;
}

impl fmt::Debug for dyn Compress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compress")
    }
}

/// Whoever knows the formats.
pub trait Formats: Send + Sync {
    /// Check files of Parquet, and begin to read them.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`] for a file that is none, or has other columns.
    fn parquet(&self, spec: &ParquetSpec) -> Result<Box<dyn RowReader>, DriveError>;

    /// What a file compressed by Zstandard holds, in one frame or several.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn zstd_file(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;

    /// A compressor to Zstandard's frames.
    ///
    /// # Errors
    /// If there is none.
    fn zstd(&self) -> io::Result<Box<dyn Compress>>;
}

static FORMATS: OnceLock<Box<dyn Formats>> = OnceLock::new();

/// Tell the driver who knows the formats; the first call counts.
pub fn provide(formats: Box<dyn Formats>) {
    drop(FORMATS.set(formats));
}

/// Who knows them.
pub(crate) fn formats() -> io::Result<&'static dyn Formats> {
    let missing = || io::Error::other("this program can neither read nor write Parquet or zstd");
    FORMATS.get().map(Box::as_ref).ok_or_else(missing)
}
