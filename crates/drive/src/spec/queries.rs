//! What queries are requested.

use std::path::PathBuf;

use serde::Deserialize;

/// The queries of a drive.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueriesSpec {
    /// Kinds of queries.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The queries: number of the label, and the text;
    #[serde(default)]
    pub queries: Option<Vec<(u32, String)>>,
    /// or a file with one such pair, as JSON, a line. It is read once to check it, then again while driving.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The first so many are run and left out of every figure.
    #[serde(default)]
    pub burn_in: u64,
    /// End after so many, those of `burn_in` included; 0: after the list.
    #[serde(default)]
    pub max_queries: u64,
    /// So many in a row belong together: one of several hosts asks them.
    #[serde(default = "one")]
    pub together: u64,
    /// Begin again at the end of the list.
    #[serde(default, rename = "loop")]
    pub repeat: bool,
    /// Ask for results in binary form.
    #[serde(default = "yes")]
    pub binary: bool,
    /// What to keep of the answers.
    #[serde(default)]
    pub answers: AnswerMode,
    /// Keep the answers of so many distinct queries.
    #[serde(default = "ten_thousand")]
    pub answers_max: usize,
    /// Keep so many rows of an answer, where rows are kept.
    #[serde(default = "thousand")]
    pub rows_max: usize,
    /// A query must give the same answer every time: true of a database that rests.
    #[serde(default = "yes")]
    pub check_repeats: bool,
    /// Texts that a connection keeps prepared; 0: none.
    #[serde(default = "five_hundred_twelve")]
    pub statements_max: usize,
    /// Instead of a list: one query again and again, whose answers are written to probe.jsonl.
    #[serde(default)]
    pub probe: Option<ProbeSpec>,
}

/// A query whose answer is watched.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Its text; the first column of the first row is the value.
    pub sql: String,
}

/// What is kept of an answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerMode {
    /// Its digest, once for each distinct query.
    #[default]
    Digest,
    /// Its rows, once for each distinct query.
    Rows,
    /// How many rows it has.
    None,
}

fn yes() -> bool {
    true
}
fn one() -> u64 {
    1
}
fn thousand() -> usize {
    1000
}
fn ten_thousand() -> usize {
    10_000
}
fn five_hundred_twelve() -> usize {
    512
}
