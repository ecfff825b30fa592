//! The content of a plain table as a few numbers, the same for any order of its rows.
//!
//! Every step is exact or one operation of IEEE 754 double arithmetic, so that a database computes the same
//! numbers from what it holds. For each row:
//!
//! * *r* is the text of all values but singles and doubles, in the order of the columns, joined by `|`: integers in
//!   decimal, times as whole microseconds since 1970 UTC, dates as `2008-02-29`, booleans 1 or 0, texts as they are, `\N`
//!   for null;
//! * *k* is the number that the first eight hexadecimal digits of *r*'s MD5 are;
//! * *s* = *f*₁ 1 + *f*₂ 2 + … over the columns of singles (widened) and doubles, from left to right, 0 for null, and *v* is what is
//!   left of it by 65521 in units of 2^-20, rounded down, as for time series ([`crate::fingerprint`]).
//!
//! Over all rows `content` = sum(*k*), `numbers` = sum((1 + *k* mod 65521) *v*), `bytes` the octets of the texts; beside
//! them the number of rows, and of nulls by column. It finds rows that are lost, doubled or changed; it is no
//! defence against someone who means to deceive.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use md5::{Digest, Md5};

use crate::encode::put_date;
use crate::fingerprint::{MODULUS, fraction};

/// The fingerprint of one plain table.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Fingerprint {
    rows: u64,
    bytes: u64,
    content: u128,
    numbers: i128,
    nulls: Vec<u64>,
}

/// Why rows have no fingerprint.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FingerprintError {
    /// A type that the formula does not know.
    #[error("column {column:?} is of the Arrow type {kind}, which cannot have a fingerprint")]
    Type {
        /// The column.
        column: String,
        /// Its type.
        kind: DataType,
    },
    /// Not the columns of the rows before.
    #[error("the rows have {found} columns, but the rows before had {expected}")]
    Columns {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
}

impl Fingerprint {
    /// That of no rows.
    #[must_use]
    pub fn new(columns: usize) -> Self {
        Self {
            nulls: vec![0; columns],
            ..Self::default()
        }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// If there are other columns than before, or one of a type that the formula does not know. Nothing is
    /// added then.
    pub fn add(&mut self, rows: &RecordBatch) -> Result<(), FingerprintError> {
        let columns = rows.columns();
        if columns.len() != self.nulls.len() {
            return Err(FingerprintError::Columns {
                found: columns.len(),
                expected: self.nulls.len(),
            });
        }
        let fields = rows.schema_ref().fields();
        if let Some((_, field)) = columns
            .iter()
            .zip(fields)
            .find(|(column, _)| !is_known(column))
        {
            return Err(FingerprintError::Type {
                column: field.name().clone(),
                kind: field.data_type().clone(),
            });
        }
        for (nulls, column) in self.nulls.iter_mut().zip(columns) {
            *nulls += column.null_count() as u64;
            self.bytes += text_bytes(column);
        }
        self.rows += rows.num_rows() as u64;
        let mut text = Vec::new();
        for row in 0..rows.num_rows() {
            self.add_row(columns, row, &mut text);
        }
        Ok(())
    }

    fn add_row(&mut self, columns: &[ArrayRef], row: usize, text: &mut Vec<u8>) {
        text.clear();
        let (mut sum, mut factor) = (0.0, 0.0);
        for column in columns {
            if let Some(value) = real(column, row) {
                factor += 1.0;
                if column.is_valid(row) {
                    sum += value * factor;
                }
                continue;
            }
            put_value(column, row, text);
            text.push(b'|');
        }
        text.pop();
        let digest = Md5::digest(text.as_slice());
        let key = digest
            .iter()
            .take(4)
            .fold(0, |key, byte| key << 8 | u32::from(*byte));
        self.content += u128::from(key);
        if factor > 0.0 {
            let key = 1 + i128::from(key) % i128::from(MODULUS);
            self.numbers += key * i128::from(fraction(sum));
        }
    }

    /// Adds what another one counted of the same table.
    pub fn merge(&mut self, other: &Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.content += other.content;
        self.numbers += other.numbers;
        for (nulls, more) in self.nulls.iter_mut().zip(&other.nulls) {
            *nulls += more;
        }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Octets of the texts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The sum over all values but singles and doubles, see above.
    #[must_use]
    pub fn content(&self) -> u128 {
        self.content
    }

    /// The sum over the singles and doubles, see above; 0 where there are none.
    #[must_use]
    pub fn numbers(&self) -> i128 {
        self.numbers
    }

    /// Rows without a value, by column.
    #[must_use]
    pub fn nulls(&self) -> &[u64] {
        &self.nulls
    }
}

fn is_known(column: &ArrayRef) -> bool {
    use DataType::{Boolean, Date32, Float32, Float64, Int16, Int32, Int64, Timestamp, Utf8};
    use TimeUnit::{Microsecond, Nanosecond};
    match column.data_type() {
        Boolean | Date32 | Float32 | Float64 | Int16 | Int32 | Int64 | Utf8 => true,
        kind => matches!(kind, Timestamp(Microsecond | Nanosecond, _)),
    }
}

/// A value of a column of singles or doubles, whatever it is where there is none.
fn real(column: &ArrayRef, row: usize) -> Option<f64> {
    match column.data_type() {
        DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(row)),
        _ => None,
    }
}

fn text_bytes(column: &ArrayRef) -> u64 {
    match column.data_type() {
        DataType::Utf8 => super::column_bytes(column),
        _ => 0,
    }
}

/// Appends a value as the formula has it.
fn put_value(column: &ArrayRef, row: usize, text: &mut Vec<u8>) {
    if column.is_null(row) {
        text.extend_from_slice(b"\\N");
        return;
    }
    let number = match column.data_type() {
        DataType::Utf8 => {
            let value = column.as_string::<i32>().value(row);
            text.extend_from_slice(value.as_bytes());
            return;
        }
        DataType::Date32 => {
            put_date(column.as_primitive::<Date32Type>().value(row), text);
            return;
        }
        DataType::Boolean => i64::from(column.as_boolean().value(row)),
        DataType::Int16 => i64::from(column.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => i64::from(column.as_primitive::<Int32Type>().value(row)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().value(row)
        }
        DataType::Timestamp(..) => {
            let nanoseconds = column.as_primitive::<TimestampNanosecondType>().value(row);
            nanoseconds.div_euclid(1000)
        }
        _ => column.as_primitive::<Int64Type>().value(row),
    };
    // Writing into memory does not fail.
    let _ = write!(text, "{number}");
}
