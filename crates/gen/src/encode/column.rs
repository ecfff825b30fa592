//! Columns as slices of their values, so that encoders match on the type once.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, TimeUnit};

use super::{EncodeError, Form, Fragments, is_json};
use crate::dictionary_batch::{ColumnGroup, ColumnGroups, KeyedColumns};

/// One column of a batch.
pub(super) struct Column<'a> {
    pub(super) values: Values<'a>,
    /// None where every row has a value.
    pub(super) nulls: Option<&'a NullBuffer>,
}

/// The values of a column; rows that are null have some value too.
pub(super) enum Values<'a> {
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Text(Texts<'a>),
    Json(Texts<'a>),
    Bool(&'a BooleanBuffer),
    /// Days since 1970.
    Days(&'a [i32]),
    /// Nanoseconds since 1970 UTC.
    Nanoseconds(&'a [i64]),
    /// Microseconds since 1970 UTC.
    Microseconds(&'a [i64]),
    /// One entry's fragment for each row, by its key: the fields of several columns.
    Looked(&'a [u16], &'a Fragments),
}

/// Texts, one after the other; one bound more than texts.
#[derive(Clone, Copy)]
pub(super) struct Texts<'a> {
    bounds: &'a [i32],
    bytes: &'a [u8],
    /// Of the whole batch.
    longest: usize,
    shortest: usize,
}

/// Texts up to this length are laid out by the longest of the batch, longer ones by the longest of a block.
const SHORT: usize = 256;

/// What can be said of some texts together.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) longest: usize,
    pub(super) shortest: usize,
    pub(super) spare: usize,
}

/// The lengths of the shortest and of the longest text between these bounds.
fn extremes(bounds: &[i32]) -> (usize, usize) {
    let lengths = || {
        let ends = bounds.iter().skip(1);
        bounds.iter().zip(ends).map(|(start, end)| end - start)
    };
    let first = lengths().next().unwrap_or(0);
    // Often all are of one length, and this is seen four at a time.
    let all = match lengths().fold(0, |differ, length| differ | (length ^ first)) {
        0 => (first, first),
        _ => lengths().fold((first, first), |(shortest, longest), length| {
            (shortest.min(length), longest.max(length))
        }),
    };
    let length = |length: i32| usize::try_from(length).unwrap_or(0);
    (length(all.0), length(all.1))
}

impl<'a> Texts<'a> {
    fn new(bounds: &'a [i32], bytes: &'a [u8]) -> Self {
        let (shortest, longest) = extremes(bounds);
        Self {
            bounds,
            bytes,
            longest,
            shortest,
        }
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> &'a [u8] {
        &self.bytes[self.bound(row)..self.bound(row + 1)]
    }

    /// Bytes of the shortest text of the batch.
    pub(super) fn shortest(&self) -> usize {
        self.shortest
    }

    /// Whether blocks of them are all laid out for the same width.
    pub(super) fn are_short(&self) -> bool {
        self.longest <= SHORT
    }

    /// Whether the texts of the batch are of several lengths.
    pub(super) fn vary(&self) -> bool {
        self.shortest != self.longest
    }

    /// All texts of the column, and what lies before and behind those of this batch.
    #[inline]
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The bytes of so many texts from this one on.
    #[inline]
    pub(super) fn joined(&self, first: usize, count: usize) -> &'a [u8] {
        &self.bytes[self.bound(first)..self.bound(first + count)]
    }

    /// Where so many texts from this one on begin, and their lengths.
    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "Arrow's offsets are never negative")]
    pub(super) fn places(
        &self,
        first: usize,
        count: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<'a> {
        let bounds = &self.bounds[first..=first + count];
        let ends = &bounds[1..];
        bounds.iter().zip(ends).map(|(start, end)| {
            let start = *start as usize;
            (start, *end as usize - start)
        })
    }

    /// How long so many texts from this one on are, and how many bytes there are from the last one's beginning.
    #[inline]
    pub(super) fn span(&self, first: usize, count: usize) -> Span {
        let last = self.bound(first + count.saturating_sub(1));
        let spare = self.bytes.len() - last;
        let (shortest, longest) = if self.longest <= SHORT {
            (self.shortest, self.longest)
        } else {
            extremes(&self.bounds[first..=first + count])
        };
        Span {
            longest,
            shortest,
            spare,
        }
    }

    #[inline]
    #[expect(clippy::cast_sign_loss, reason = "Arrow's offsets are never negative")]
    fn bound(&self, index: usize) -> usize {
        self.bounds[index] as usize
    }
}

impl<'a> Column<'a> {
    /// The columns of some rows, those that are looked up together as one.
    ///
    /// # Errors
    /// If there is one of a type that is not known.
    pub(super) fn of(rows: ColumnGroups<'a>, form: Form) -> Result<Vec<Self>, EncodeError> {
        match rows {
            ColumnGroups::Columns(batch) => {
                let fields = batch.schema_ref().fields();
                let columns = batch.columns().iter().zip(fields);
                columns
                    .map(|(array, field)| Self::named(array, field))
                    .collect()
            }
            ColumnGroups::Mixed(schema, groups, _) => {
                let mut at = 0;
                let column = |group: &'a ColumnGroup| {
                    let field = &schema.fields()[at];
                    at += group.columns().len();
                    match group {
                        ColumnGroup::Column(array) => Self::named(array, field),
                        ColumnGroup::Keyed(keyed) => Ok(Self::keyed(keyed, form)),
                    }
                };
                groups.iter().map(column).collect()
            }
        }
    }

    fn named(array: &'a ArrayRef, field: &Field) -> Result<Self, EncodeError> {
        Self::new(array, is_json(field)).ok_or_else(|| EncodeError::Type {
            column: field.name().clone(),
            kind: field.data_type().clone(),
        })
    }

    fn keyed(keyed: &'a KeyedColumns, form: Form) -> Self {
        Self {
            values: Values::Looked(keyed.keys(), keyed.dictionary().fragments(form)),
            nulls: None,
        }
    }

    /// The values of an array, unless their type is not known.
    pub(super) fn new(array: &'a ArrayRef, json: bool) -> Option<Self> {
        let texts = || {
            let texts = array.as_string::<i32>();
            Texts::new(texts.value_offsets(), texts.value_data())
        };
        let values = match array.data_type() {
            DataType::Int16 => Values::Int16(array.as_primitive::<Int16Type>().values()),
            DataType::Date32 => Values::Days(array.as_primitive::<Date32Type>().values()),
            DataType::Int32 => Values::Int32(array.as_primitive::<Int32Type>().values()),
            DataType::Int64 => Values::Int64(array.as_primitive::<Int64Type>().values()),
            DataType::Float32 => Values::Float32(array.as_primitive::<Float32Type>().values()),
            DataType::Float64 => Values::Float64(array.as_primitive::<Float64Type>().values()),
            DataType::Utf8 if json => Values::Json(texts()),
            DataType::Utf8 => Values::Text(texts()),
            DataType::Boolean => Values::Bool(array.as_boolean().values()),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                Values::Nanoseconds(array.as_primitive::<TimestampNanosecondType>().values())
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                Values::Microseconds(array.as_primitive::<TimestampMicrosecondType>().values())
            }
            _ => return None,
        };
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        Some(Self { values, nulls })
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }
}
