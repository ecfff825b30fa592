//! records.jsonl: what one of several hosts has recorded, exactly, so that the records of all can be merged.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::DriveError;
use crate::record::Record;
use crate::timeline::Timeline;
use crate::workload::load::Mark;

/// Name of the file in the folder of the drive.
const NAME: &str = "records.jsonl";

/// Its first line.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The common start, on this host's clock.
    pub(crate) start_ns: u64,
}

/// One line, to write.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a, E> {
    Begin(Head),
    Interval {
        index: u64,
        end_ns: u64,
        connected: usize,
        record: &'a Record,
        #[serde(skip_serializing_if = "no_marks")]
        sent: &'a [Mark],
    },
    Part(&'a Value),
    End(&'a E),
}

fn no_marks(sent: &&[Mark]) -> bool {
    sent.is_empty()
}

/// One line, read.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line<E> {
    Begin(Head),
    Interval {
        index: u64,
        end_ns: u64,
        connected: usize,
        record: Box<Record>,
        #[serde(default)]
        sent: Vec<Mark>,
    },
    /// What the work has learnt beside its records; any number of them.
    Part(Value),
    End(E),
}

/// The open file.
pub(crate) struct Records {
    path: PathBuf,
    file: File,
}

impl Records {
    /// Create it in `dir`, which must exist.
    pub(crate) fn create(dir: &Path) -> Result<Self, DriveError> {
        let path = dir.join(NAME);
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(source) => Err(DriveError::Output { path, source }),
        }
    }

    /// The drive has begun.
    pub(crate) fn begin(&mut self, timeline: &Timeline) -> Result<(), DriveError> {
        let start_ns = timeline.start_ns;
        let line: LineRef<'_, ()> = LineRef::Begin(Head { start_ns });
        self.line(&line)
    }

    /// An interval is over; `sent` are a load's marks of it.
    pub(crate) fn interval(
        &mut self,
        index: u64,
        (end_ns, connected): (u64, usize),
        record: &Record,
        sent: &[Mark],
    ) -> Result<(), DriveError> {
        let line: LineRef<'_, ()> = LineRef::Interval {
            index,
            end_ns,
            connected,
            record,
            sent,
        };
        self.line(&line)
    }

    /// What the work has learnt.
    pub(crate) fn part(&mut self, part: &Value) -> Result<(), DriveError> {
        let line: LineRef<'_, ()> = LineRef::Part(part);
        self.line(&line)
    }

    /// The drive is over: all that is not in an interval.
    pub(crate) fn end(&mut self, end: &impl Serialize) -> Result<(), DriveError> {
        self.line(&LineRef::End(end))
    }

    /// In one write, so that a drive that is killed leaves whole lines.
    fn line(&mut self, line: &impl Serialize) -> Result<(), DriveError> {
        let mut text = serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
        (self.file.write_all(text.as_bytes())).map_err(|source| DriveError::Output {
            path: self.path.clone(),
            source,
        })
    }
}
