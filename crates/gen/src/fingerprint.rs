//! The content of tables of time series as a few numbers, the same for any order of their rows.
//!
//! Every step of the formula is exact or one operation of IEEE 754 double arithmetic, so that a database
//! computes the same numbers from what it holds, bit for bit, as we do from what we sent. For each row,
//! with `time_us` its time in microseconds since 1970 (rounded down) and `f_0`, `f_1`, … its fields:
//!
//! * `k = 1 + (time_us + 7919 * tags_id) mod 65521`, the remainder being 0 to 65520;
//! * `s = f_0 * 1 + f_1 * 2 + f_2 * 3 + …` in doubles, from left to right, 0 for a field that is null;
//! * `v = floor((s - floor(s / 65521) * 65521) * 1048576)` as an integer;
//!
//! and over all rows `content = sum(k * v)`, beside the number of rows, the sums of `time_us` and of
//! `tags_id`, and the number of nulls of each field. It finds rows that are lost, doubled, changed or
//! given another's values; it is no defence against someone who means to deceive.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int32Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::dataset::{Chunk, Dataset, Table};

/// A prime below 2^16: what keys and sums are taken by.
pub(crate) const MODULUS: i64 = 65_521;
/// Spreads devices over the keys.
const TAGS_FACTOR: i64 = 7919;
/// Binary digits of a sum that count behind the point.
const FRACTION: f64 = 1_048_576.0;
/// Rows whose sums are made at once, so that they stay in the first cache.
const ROWS: usize = 512;
/// Columns before the fields.
const FIRST_FIELD: usize = 2;

/// The fingerprint of one table.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    rows: u64,
    time_sum: i128,
    tags_sum: i128,
    nulls: Vec<u64>,
    content: i128,
}

/// Why rows have no fingerprint.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FingerprintError {
    /// They are not those of a table of time series.
    #[error(
        "a table of time series has the columns time, tags_id and {fields} fields of doubles, but column \
         {column} is {found}"
    )]
    Column {
        /// How many fields there should be.
        fields: usize,
        /// Its number, from 0.
        column: usize,
        /// Its type, or that there is none.
        found: String,
    },
    /// A chunk of another data set.
    #[error("there is no table number {0}")]
    Table(usize),
}

impl Fingerprint {
    /// That of no rows.
    #[must_use]
    pub fn new(fields: usize) -> Self {
        Self {
            nulls: vec![0; fields],
            ..Self::default()
        }
    }

    /// Adds rows with the columns `time`, `tags_id`, the fields; columns after these do not count.
    ///
    /// # Errors
    /// If a column is missing or of another type. Nothing is added then.
    pub fn add(&mut self, rows: &RecordBatch) -> Result<(), FingerprintError> {
        let columns = rows.columns();
        let wrong = |column: usize| FingerprintError::Column {
            fields: self.nulls.len(),
            column,
            found: columns
                .get(column)
                .map_or("missing".to_owned(), |c| c.data_type().to_string()),
        };
        let times = columns
            .first()
            .and_then(Times::of)
            .ok_or_else(|| wrong(0))?;
        let tags = columns
            .get(1)
            .and_then(|tags| tags.as_primitive_opt::<Int32Type>());
        let tags = tags.ok_or_else(|| wrong(1))?;
        let last = FIRST_FIELD + self.nulls.len();
        for column in FIRST_FIELD..last {
            let kind = columns.get(column).map(Array::data_type);
            if kind != Some(&DataType::Float64) {
                return Err(wrong(column));
            }
        }
        let fields = &columns[FIRST_FIELD..last];
        for (nulls, field) in self.nulls.iter_mut().zip(fields) {
            *nulls += field.null_count() as u64;
        }
        self.rows += rows.num_rows() as u64;
        for first in (0..rows.num_rows()).step_by(ROWS) {
            let end = (first + ROWS).min(rows.num_rows());
            let mut sums = [0.0; ROWS];
            let sums = &mut sums[..end - first];
            add_fields(fields, first, sums);
            for (row, sum) in (first..end).zip(sums) {
                self.add_row(times.microseconds(row), tags.value(row), *sum);
            }
        }
        Ok(())
    }

    #[inline]
    fn add_row(&mut self, time_us: i64, tags: i32, sum: f64) {
        let tags = i64::from(tags);
        let key = 1 + time_us.wrapping_add(tags * TAGS_FACTOR).rem_euclid(MODULUS);
        self.time_sum += i128::from(time_us);
        self.tags_sum += i128::from(tags);
        self.content += i128::from(key) * i128::from(fraction(sum));
    }

    /// Adds what another one counted of the same table.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.time_sum += other.time_sum;
        self.tags_sum += other.tags_sum;
        self.content += other.content;
        for (nulls, more) in self.nulls.iter_mut().zip(&other.nulls) {
            *nulls += more;
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Sum of the times, in microseconds since 1970.
    #[must_use]
    pub fn time_sum(&self) -> i128 {
        self.time_sum
    }

    /// Sum of `tags_id`.
    #[must_use]
    pub fn tags_sum(&self) -> i128 {
        self.tags_sum
    }

    /// Rows without a value, by field.
    #[must_use]
    pub fn nulls(&self) -> &[u64] {
        &self.nulls
    }

    /// The sum over the fields, see above.
    #[must_use]
    pub fn content(&self) -> i128 {
        self.content
    }
}

/// The times of rows.
enum Times<'a> {
    Nanoseconds(&'a [i64]),
    Microseconds(&'a [i64]),
}

impl<'a> Times<'a> {
    fn of(column: &'a ArrayRef) -> Option<Self> {
        match column.data_type() {
            DataType::Timestamp(TimeUnit::Nanosecond, _) => Some(Self::Nanoseconds(
                column.as_primitive::<TimestampNanosecondType>().values(),
            )),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Some(Self::Microseconds(
                column.as_primitive::<TimestampMicrosecondType>().values(),
            )),
            _ => None,
        }
    }

    #[inline]
    fn microseconds(&self, row: usize) -> i64 {
        match self {
            Self::Nanoseconds(values) => values[row].div_euclid(1000),
            Self::Microseconds(values) => values[row],
        }
    }
}

/// Adds each field times its number (from 1) to the sums of the rows from `first` on.
fn add_fields(fields: &[ArrayRef], first: usize, sums: &mut [f64]) {
    let mut factor = 0.0;
    for field in fields {
        factor += 1.0;
        let field = field.as_primitive::<Float64Type>();
        let values = &field.values()[first..first + sums.len()];
        match field.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => {
                for (sum, value) in sums.iter_mut().zip(values) {
                    *sum += value * factor;
                }
            }
            Some(nulls) => {
                for ((row, sum), value) in (first..).zip(sums.iter_mut()).zip(values) {
                    let mask = u64::from(nulls.is_valid(row)).wrapping_neg();
                    *sum += f64::from_bits(value.to_bits() & mask) * factor;
                }
            }
        }
    }
}

/// What is left of a sum by the modulus, in units of 2^-20.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the modulus is small, and what is left of a sum below 2^53 is below 2^37"
)]
pub(crate) fn fraction(sum: f64) -> i64 {
    let modulus = MODULUS as f64;
    let left = sum - floor(sum / modulus) * modulus;
    floor(left * FRACTION) as i64
}

/// The greatest whole number that is not above a value, without a call into the C library.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "from 2^52 on every double is whole"
)]
fn floor(value: f64) -> f64 {
    if value.abs() >= 4_503_599_627_370_496.0 {
        return value;
    }
    let cut = value as i64 as f64;
    if cut > value { cut - 1.0 } else { cut }
}

/// The fingerprints of all tables of a data set.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize)]
pub struct Tables(Vec<Fingerprint>);

impl Tables {
    /// Those of no rows.
    #[must_use]
    pub fn new(dataset: &Dataset) -> Self {
        let empty = |table: &Table| Fingerprint::new(table.metrics);
        Self(dataset.tables.iter().map(empty).collect())
    }

    /// Adds the rows of a chunk of the data set.
    ///
    /// # Errors
    /// If the chunk is one of another data set.
    pub fn add(&mut self, chunk: &Chunk) -> Result<(), FingerprintError> {
        for rows in &chunk.tables {
            let table = self.0.get_mut(rows.table);
            table
                .ok_or(FingerprintError::Table(rows.table))?
                .add(&rows.rows.batch())?;
        }
        Ok(())
    }

    /// Adds what others counted of the same data set.
    pub fn merge(&mut self, other: &Self) {
        for (table, more) in self.0.iter_mut().zip(&other.0) {
            table.merge(more);
        }
    }

    /// The fingerprints, by the numbers of the tables.
    #[must_use]
    pub fn as_slice(&self) -> &[Fingerprint] {
        &self.0
    }
}
