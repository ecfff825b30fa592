//! Columns under construction: plain vectors, which become Arrow arrays without being copied.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};

/// Texts, one after the other.
#[derive(Clone, Debug)]
pub(in crate::tsbs) struct Texts {
    offsets: Vec<i32>,
    bytes: Vec<u8>,
    nulls: Vec<u32>,
}

impl Texts {
    pub(in crate::tsbs) fn new() -> Self {
        Self {
            offsets: vec![0],
            bytes: Vec::new(),
            nulls: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Appends a text; more than 2 GiB in one batch cannot be, see `CHUNK_ROWS_MAX`.
    #[inline]
    pub(in crate::tsbs) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.offsets
            .push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }

    pub(in crate::tsbs) fn push_null(&mut self) {
        self.nulls.push(row_number(self.len()));
        self.push(b"");
    }

    pub(in crate::tsbs) fn take(&mut self) -> Result<StringArray, ArrowError> {
        let rows = self.len();
        let taken = std::mem::replace(self, Self::new());
        let offsets = OffsetBuffer::new(ScalarBuffer::from(taken.offsets));
        let nulls = nulls_at(rows, &taken.nulls);
        StringArray::try_new(offsets, Buffer::from_vec(taken.bytes), nulls)
    }
}

/// One field of a table.
#[derive(Clone, Debug, Default)]
pub(in crate::tsbs) struct Doubles {
    pub(in crate::tsbs) values: Vec<f64>,
    /// The rows without a value, ascending; they have some number in `values`.
    pub(in crate::tsbs) nulls: Vec<u32>,
}

impl Doubles {
    #[inline]
    pub(in crate::tsbs) fn push_null(&mut self) {
        self.nulls.push(row_number(self.values.len()));
        self.values.push(0.0);
    }

    /// Leaves the rows up to this one without a value.
    #[inline]
    pub(in crate::tsbs) fn skip_to(&mut self, row: usize) {
        self.nulls.extend((self.values.len()..row).map(row_number));
        self.values.resize(row, 0.0);
    }

    fn take(&mut self, rows: usize) -> ArrayRef {
        self.skip_to(rows);
        let values = take_vec(&mut self.values);
        let nulls = nulls_at(rows, &self.nulls);
        self.nulls.clear();
        Arc::new(PrimitiveArray::<Float64Type>::new(
            ScalarBuffer::from(values),
            nulls,
        ))
    }
}

/// Rows of one table.
#[derive(Clone, Debug)]
pub(in crate::tsbs) struct SeriesRows {
    pub(in crate::tsbs) times: Vec<i64>,
    pub(in crate::tsbs) tags: Vec<i32>,
    pub(in crate::tsbs) fields: Vec<Doubles>,
    /// Empty where the table has no tags of its own.
    pub(in crate::tsbs) additional: Texts,
}

impl SeriesRows {
    pub(in crate::tsbs) fn new(fields: usize) -> Self {
        Self {
            times: Vec::new(),
            tags: Vec::new(),
            fields: vec![Doubles::default(); fields],
            additional: Texts::new(),
        }
    }

    pub(in crate::tsbs) fn len(&self) -> usize {
        self.times.len()
    }

    /// The rows as a batch, in the order of `series_table`'s columns. Fields that end early end in nulls.
    pub(in crate::tsbs) fn take(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let rows = self.len();
        let times = ScalarBuffer::from(take_vec(&mut self.times));
        let times =
            PrimitiveArray::<TimestampNanosecondType>::new(times, None).with_timezone("+00:00");
        let tags = ScalarBuffer::from(take_vec(&mut self.tags));
        let tags = PrimitiveArray::<Int32Type>::new(tags, None);
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.fields.len() + 3);
        columns.push(Arc::new(times));
        columns.push(Arc::new(tags));
        columns.extend(self.fields.iter_mut().map(|field| field.take(rows)));
        columns.push(match self.additional.len() {
            0 => Arc::new(StringArray::new_null(rows)),
            _ => Arc::new(self.additional.take()?),
        });
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}

/// Takes the values and makes room for as many.
fn take_vec<T>(values: &mut Vec<T>) -> Vec<T> {
    let next = Vec::with_capacity(values.len());
    std::mem::replace(values, next)
}

/// A number of a row in a batch, of which there are fewer than 2^32.
#[inline]
fn row_number(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

/// All rows but these have a value.
fn nulls_at(rows: usize, nulls: &[u32]) -> Option<NullBuffer> {
    if nulls.is_empty() {
        return None;
    }
    let mut bits = vec![0xff_u8; rows.div_ceil(8)];
    for &row in nulls {
        bits[row as usize / 8] &= !(1 << (row % 8));
    }
    Some(NullBuffer::new(BooleanBuffer::new(
        Buffer::from_vec(bits),
        0,
        rows,
    )))
}
