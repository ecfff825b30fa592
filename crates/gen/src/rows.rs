//! Rows of plain tables, made from any place on.
//!
//! A *set* is one table: a list of columns and a formula for the values of row *i*. Row *i* is a function of the set,
//! its options, the seed and *i* alone, so any slice begins at once, and slices made by different threads or
//! machines fit together. What the values are is in the module of each set; [`SETS`] lists them.
//!
//! # Random numbers
//! `r(i, n)` is number *n* (0 to 7) of row *i*: wyrand's for the state `key + step (8 i + n)`, 64 bits, where
//! `key = mix(seed + γ)` and `mix` is the finalizer of `SplitMix64`. Read as a fraction *r* / 2^64, it is used up from
//! the front: to *take* a number below *n* multiplies it by *n*; the whole part is the number, and what
//! follows the point is the fraction that is left.
//!
//! ```
//! use loadstone_gen::dataset::Source;
//! use loadstone_gen::rows::{Config, RowsSource};
//!
//! let config = Config { first: 359_999_000, ..Config::new("import", 1, 1000) };
//! let mut last = RowsSource::new(&config)?;
//! let chunk = last.next(5000)?.ok_or("there are a thousand")?;
//! assert_eq!((chunk.rows, chunk.metrics), (1000, 12_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod columns;
pub mod fingerprint;
mod flights;
mod import;
mod number;
mod types;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

pub use fingerprint::Fingerprint;

use crate::dataset::{Chunk, Dataset, Source, SourceError, Table, TableRows, check_chunk_rows};
use crate::dictionary_batch::{AnyBatch, ColumnGroup, ColumnGroups, DictionaryBatch};

/// What the rows of one table are.
trait Set: Send {
    /// The table.
    fn table(&self) -> Table;

    /// Most bytes that a text of it has.
    fn text_bytes_max(&self) -> usize;

    /// The columns of these rows, in the order of the table.
    fn column_groups(&mut self, rows: Range<u64>) -> Vec<ColumnGroup>;
}

/// A set that can be asked for.
pub struct SetSpec {
    /// Its name.
    pub name: &'static str,
    /// What it holds, in a few words.
    pub about: &'static str,
    /// What it offers to choose.
    pub options: &'static [Choice],
    /// No row has a number from this one on.
    pub rows_max: u64,
    make: fn(i64, &Options) -> Box<dyn Set>,
}

/// Something to choose.
pub struct Choice {
    /// Its name.
    pub name: &'static str,
    /// Its possible values; the first is the default.
    pub values: &'static [&'static str],
}

/// Every set, a line each.
pub const SETS: &[SetSpec] = &[import::SPEC, types::SPEC, flights::SPEC];

/// So many rows can be numbered, with every row's random numbers.
const ROWS_MAX: u64 = 1 << 48;

/// What to make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// Name of the set.
    pub set: String,
    /// Seed of every value.
    pub seed: i64,
    /// Number of the first row, counted from 0.
    pub first: u64,
    /// How many rows.
    pub rows: u64,
    /// What is chosen of the set's options; the others have their defaults.
    pub options: BTreeMap<String, String>,
}

impl Config {
    /// The first rows of a set, nothing chosen.
    #[must_use]
    pub fn new(set: &str, seed: i64, rows: u64) -> Self {
        Self {
            set: set.to_owned(),
            seed,
            first: 0,
            rows,
            options: BTreeMap::new(),
        }
    }
}

/// Why rows cannot be made as asked.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// No such set.
    #[error("there is no data set {set:?}; there are {known}")]
    Set {
        /// What was requested.
        set: String,
        /// What there is.
        known: String,
    },
    /// No such option.
    #[error("the data set {set:?} has no option {option:?}; it has {known}")]
    Option {
        /// The set.
        set: &'static str,
        /// What was requested.
        option: String,
        /// What there is.
        known: String,
    },
    /// No such value of an option.
    #[error("the option {option:?} of the data set {set:?} cannot be {value:?}; choose {known}")]
    Value {
        /// The set.
        set: &'static str,
        /// The option.
        option: String,
        /// What was requested.
        value: String,
        /// What there is.
        known: String,
    },
    /// More rows than can be numbered.
    #[error(
        "{rows} rows from row {first} on are more than the data set {set:?} has; its last row is number {last}"
    )]
    Rows {
        /// The set.
        set: &'static str,
        /// The first row requested.
        first: u64,
        /// How many.
        rows: u64,
        /// The last there can be.
        last: u64,
    },
}

/// What was chosen, with the defaults of what was not.
struct Options(BTreeMap<&'static str, &'static str>);

impl Options {
    fn of(spec: &SetSpec, chosen: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let defaults = spec.options.iter();
        let mut options: BTreeMap<_, _> = defaults
            .filter_map(|choice| Some((choice.name, *choice.values.first()?)))
            .collect();
        for (name, value) in chosen {
            let choice = spec.options.iter().find(|choice| choice.name == name);
            let choice = choice.ok_or_else(|| ConfigError::Option {
                set: spec.name,
                option: name.clone(),
                known: list(spec.options.iter().map(|choice| choice.name)),
            })?;
            let found = choice.values.iter().find(|known| *known == value);
            let found = found.ok_or_else(|| ConfigError::Value {
                set: spec.name,
                option: name.clone(),
                value: value.clone(),
                known: list(choice.values.iter().copied()),
            })?;
            options.insert(choice.name, found);
        }
        Ok(Self(options))
    }

    /// What was chosen.
    fn get(&self, name: &str) -> &'static str {
        self.0.get(name).copied().unwrap_or_default()
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        [name] => (*name).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

/// Rows of a set. Making it takes no time that depends on the rows: any slice begins at once.
pub struct RowsSource {
    dataset: Arc<Dataset>,
    spec: &'static SetSpec,
    set: Box<dyn Set>,
    /// Numbers of the rows still to be made.
    rows: Range<u64>,
}

impl RowsSource {
    /// Looks up the set.
    ///
    /// # Errors
    /// If there is no such set, option or value, or the rows cannot be numbered.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let spec = SETS.iter().find(|spec| spec.name == config.set);
        let spec = spec.ok_or_else(|| ConfigError::Set {
            set: config.set.clone(),
            known: list(SETS.iter().map(|spec| spec.name)),
        })?;
        let options = Options::of(spec, &config.options)?;
        let rows = numbered(spec, config.first, config.rows)?;
        let set = (spec.make)(config.seed, &options);
        Ok(Self {
            dataset: Arc::new(Dataset {
                tags: None,
                tables: vec![set.table()],
            }),
            spec,
            set,
            rows,
        })
    }

    /// Rows that are still to be made.
    #[must_use]
    pub fn rows_left(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Goes to row `first`, counted in the set, with `rows` of them to be made.
    ///
    /// # Errors
    /// If the rows cannot be numbered.
    pub fn go_to(&mut self, first: u64, rows: u64) -> Result<(), ConfigError> {
        self.rows = numbered(self.spec, first, rows)?;
        Ok(())
    }

    /// Refuses so many rows at once that a column's texts might pass the 2 GiB that Arrow's offsets reach.
    fn check_texts(&self, rows: u64) -> Result<(), SourceError> {
        let most = i32::MAX.unsigned_abs() as usize / self.set.text_bytes_max().max(1);
        if rows <= most as u64 {
            return Ok(());
        }
        Err(SourceError::Refused(format!(
            "{rows} of these rows are too many for one batch: use 1 to {most}"
        )))
    }
}

/// The numbers of these rows.
fn numbered(spec: &SetSpec, first: u64, rows: u64) -> Result<Range<u64>, ConfigError> {
    let end = first.checked_add(rows);
    let end = end.filter(|end| *end <= spec.rows_max);
    let end = end.ok_or(ConfigError::Rows {
        set: spec.name,
        first,
        rows,
        last: spec.rows_max - 1,
    })?;
    Ok(first..end)
}

impl Source for RowsSource {
    fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError> {
        check_chunk_rows(rows)?;
        let end = self.rows.end.min(self.rows.start + rows as u64);
        let made = self.rows.start..end;
        if made.is_empty() {
            return Ok(None);
        }
        self.check_texts(end - made.start)?;
        let count = end - made.start;
        let table = &self.dataset.tables[0];
        let groups = self.set.column_groups(made);
        let rows = DictionaryBatch::try_new(Arc::clone(&table.schema), groups);
        let rows = rows.map_err(|error| SourceError::Refused(error.to_string()))?;
        self.rows.start = end;
        Ok(Some(Chunk {
            tags: None,
            tables: vec![TableRows { table: 0, rows }],
            rows: count,
            metrics: count * table.metrics as u64,
        }))
    }

    fn pass(&mut self, rows: u64) -> Result<u64, SourceError> {
        let passed = rows.min(self.rows_left());
        self.rows.start += passed;
        Ok(passed)
    }
}

/// Bytes of what the rows say, however they are stored: integers, singles and doubles their width, dates 4, times 8,
/// booleans 1, texts their octets, nothing for null.
#[must_use]
pub fn logical_bytes(rows: &impl AnyBatch) -> u64 {
    match rows.column_groups() {
        ColumnGroups::Columns(batch) => batch.columns().iter().map(column_bytes).sum(),
        ColumnGroups::Mixed(_, groups, _) => groups.iter().map(group_bytes).sum(),
    }
}

fn group_bytes(group: &ColumnGroup) -> u64 {
    match group {
        ColumnGroup::Column(column) => column_bytes(column),
        ColumnGroup::Keyed(keyed) => keyed.dictionary().bytes(keyed.keys()),
    }
}

pub(crate) fn column_bytes(column: &ArrayRef) -> u64 {
    use arrow_array::cast::AsArray;
    let values = (column.len() - column.null_count()) as u64;
    match column.data_type() {
        DataType::Int16 => 2 * values,
        DataType::Int32 | DataType::Float32 | DataType::Date32 => 4 * values,
        DataType::Boolean => values,
        DataType::Utf8 => {
            let texts = column.as_string::<i32>();
            if texts.null_count() == 0 {
                let bounds = texts.value_offsets();
                let length = |first: &i32, last: &i32| (last - first).unsigned_abs().into();
                return bounds
                    .first()
                    .zip(bounds.last())
                    .map_or(0, |(first, last)| length(first, last));
            }
            texts.iter().flatten().map(|text| text.len() as u64).sum()
        }
        _ => 8 * values,
    }
}
