//! The fingerprint of plain rows, taken by all cores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use loadstone_gen::dataset::{Source, SourceError};
use loadstone_gen::rows::Fingerprint;
use serde::Serialize;

use super::{DataSpec, RowsSpec};
use crate::error::DriveError;

/// Rows of which the fingerprint is taken at once.
const ROWS: usize = 1000;
/// More threads than this have nothing to run on.
const THREADS_MAX: usize = 256;

/// As it is shown; whole numbers beyond what a double holds exactly are text.
#[derive(Serialize)]
struct Document {
    rows: String,
    bytes: String,
    content: String,
    numbers: String,
    nulls: Vec<String>,
}

/// The fingerprint of the rows of a document, as JSON; `None` when `stop` was set before its end. `threads` 0: one a
/// core.
///
/// # Errors
/// [`DriveError`] when the document does not parse, or its rows are no plain ones.
pub fn fingerprint_rows(
    text: &str,
    threads: usize,
    stop: &AtomicBool,
) -> Result<Option<String>, DriveError> {
    let DataSpec::Rows(spec) = DataSpec::from_json(text)? else {
        return Err(DriveError::bad_spec(
            "only plain rows have this fingerprint, and these data are not plain rows".to_owned(),
            "use data of the kind \"rows\"",
        ));
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores } else { threads };
    let whole = whole(&spec, threads.min(THREADS_MAX), stop)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let document = Document {
        rows: whole.rows().to_string(),
        bytes: whole.bytes().to_string(),
        content: whole.content().to_string(),
        numbers: whole.numbers().to_string(),
        nulls: whole.nulls().iter().map(u64::to_string).collect(),
    };
    Ok(Some(serde_json::to_string(&document).unwrap_or_default()))
}

fn whole(spec: &RowsSpec, threads: usize, stop: &AtomicBool) -> Result<Fingerprint, DriveError> {
    let count = threads as u64;
    let bound = |slice: u64| {
        let bound = u128::from(spec.rows) * u128::from(slice) / u128::from(count);
        u64::try_from(bound).unwrap_or(spec.rows)
    };
    thread::scope(|scope| {
        let slices: Vec<_> = (0..count)
            .map(|slice| {
                let (first, end) = (bound(slice), bound(slice + 1));
                let slice = RowsSpec {
                    first: spec.first + first,
                    rows: end - first,
                    ..spec.clone()
                };
                scope.spawn(move || slice_fingerprint(&slice, stop))
            })
            .collect();
        let mut whole = Fingerprint::new(spec.source()?.dataset().tables[0].metrics);
        for slice in slices {
            let taken = slice.join().map_err(|_| broken())??;
            whole.merge(&taken);
        }
        Ok(whole)
    })
}

fn slice_fingerprint(spec: &RowsSpec, stop: &AtomicBool) -> Result<Fingerprint, DriveError> {
    let mut source = spec.source()?;
    let mut fingerprint = Fingerprint::new(source.dataset().tables[0].metrics);
    while !stop.load(Ordering::Relaxed) {
        let Some(chunk) = source.next(ROWS)? else {
            break;
        };
        for table in &chunk.tables {
            fingerprint.add(&table.rows.batch()).map_err(|error| {
                DriveError::Data(SourceError::Refused(format!("no fingerprint: {error}")))
            })?;
        }
    }
    Ok(fingerprint)
}

fn broken() -> DriveError {
    DriveError::System {
        what: "a thread that computes a fingerprint failed".to_owned(),
        source: std::io::Error::other("this is a bug of Loadstone"),
        hint: "please report it with the trace above".to_owned(),
    }
}
