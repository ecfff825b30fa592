//! Batches of any content, and what they hold.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_schema::{Field, Schema};
use loadstone_gen::encode::json_field;
use proptest::prelude::*;

/// A type of column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Int16,
    Int32,
    Int64,
    Float32,
    Float64,
    Text,
    Json,
    Bool,
    Days,
    Nanos,
    Micros,
}

const KINDS: [Kind; 11] = [
    Kind::Int16,
    Kind::Int32,
    Kind::Int64,
    Kind::Float32,
    Kind::Float64,
    Kind::Text,
    Kind::Json,
    Kind::Bool,
    Kind::Days,
    Kind::Nanos,
    Kind::Micros,
];

/// A value; doubles by their bits, those that are no number all alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int16(i16),
    Int32(i32),
    Int64(i64),
    Float32(u32),
    Float64(u64),
    Text(String),
    Json(String),
    Bool(bool),
    Days(i32),
    Nanos(i64),
    Micros(i64),
}

/// Columns, and which of their rows the batch has.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) kinds: Vec<Kind>,
    columns: Vec<Vec<Value>>,
    first: usize,
    count: usize,
}

impl Batch {
    pub(crate) fn of_row(values: Vec<Value>) -> Self {
        Self {
            kinds: values.iter().map(kind).collect(),
            columns: values.into_iter().map(|value| vec![value]).collect(),
            first: 0,
            count: 1,
        }
    }

    pub(crate) fn single(value: Value) -> Self {
        Self::of_row(vec![value])
    }

    pub(crate) fn rows(&self) -> Vec<Vec<Value>> {
        let row = |row: usize| {
            self.columns
                .iter()
                .map(|column| column[row].clone())
                .collect()
        };
        (self.first..self.first + self.count).map(row).collect()
    }

    /// The rows as they are in formats that have microseconds only.
    pub(crate) fn rows_to_microseconds(&self) -> Vec<Vec<Value>> {
        let shorten = |value| match value {
            Value::Nanos(nanos) => Value::Nanos(nanos.div_euclid(1000) * 1000),
            other => other,
        };
        let shorten_row = |row: Vec<Value>| row.into_iter().map(shorten).collect();
        self.rows().into_iter().map(shorten_row).collect()
    }

    pub(crate) fn record_batch(&self) -> RecordBatch {
        let arrays: Vec<_> = self
            .kinds
            .iter()
            .zip(&self.columns)
            .map(|(kind, column)| array(*kind, column))
            .collect();
        let field = |(index, (kind, array)): (usize, (&Kind, &ArrayRef))| match kind {
            Kind::Json => json_field(&format!("c{index}")),
            _ => Field::new(format!("c{index}"), array.data_type().clone(), true),
        };
        let fields: Vec<_> = self
            .kinds
            .iter()
            .zip(&arrays)
            .enumerate()
            .map(field)
            .collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        rows.expect("columns fit").slice(self.first, self.count)
    }
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Null | Value::Int32(_) => Kind::Int32,
        Value::Int16(_) => Kind::Int16,
        Value::Days(_) => Kind::Days,
        Value::Int64(_) => Kind::Int64,
        Value::Float32(_) => Kind::Float32,
        Value::Float64(_) => Kind::Float64,
        Value::Text(_) => Kind::Text,
        Value::Json(_) => Kind::Json,
        Value::Bool(_) => Kind::Bool,
        Value::Nanos(_) => Kind::Nanos,
        Value::Micros(_) => Kind::Micros,
    }
}

/// The values of one variant of [`Value`] as an Arrow array.
macro_rules! collect {
    ($array:ty, $values:expr, $variant:ident, $get:path) => {{
        let pick = |value: &Value| match value {
            Value::$variant(value) => Some($get(value.clone())),
            _ => None,
        };
        Arc::new($values.iter().map(pick).collect::<$array>())
    }};
}

fn array(kind: Kind, values: &[Value]) -> ArrayRef {
    use std::convert::identity;
    match kind {
        Kind::Int16 => collect!(Int16Array, values, Int16, identity),
        Kind::Days => collect!(Date32Array, values, Days, identity),
        Kind::Int32 => collect!(Int32Array, values, Int32, identity),
        Kind::Int64 => collect!(Int64Array, values, Int64, identity),
        Kind::Float32 => collect!(Float32Array, values, Float32, f32::from_bits),
        Kind::Float64 => collect!(Float64Array, values, Float64, f64::from_bits),
        Kind::Text => collect!(StringArray, values, Text, identity),
        Kind::Json => collect!(StringArray, values, Json, identity),
        Kind::Bool => collect!(BooleanArray, values, Bool, identity),
        Kind::Nanos => collect!(TimestampNanosecondArray, values, Nanos, identity),
        Kind::Micros => collect!(TimestampMicrosecondArray, values, Micros, identity),
    }
}

/// The double of these bits; one for all that are no number.
pub(crate) fn double(value: f64) -> Value {
    let value = if value.is_nan() { f64::NAN } else { value };
    Value::Float64(value.to_bits())
}

/// As [`double`], for singles.
pub(crate) fn single(value: f32) -> Value {
    let value = if value.is_nan() { f32::NAN } else { value };
    Value::Float32(value.to_bits())
}

/// Microseconds that PostgreSQL's number can stand for.
const MICROS: std::ops::RangeInclusive<i64> = i64::MIN + 946_684_800_000_001..=i64::MAX;

/// Days that PostgreSQL's number can stand for.
const DAYS: std::ops::RangeInclusive<i32> = i32::MIN + 10_958..=i32::MAX;

fn value(kind: Kind) -> BoxedStrategy<Value> {
    let text = prop_oneof![
        "[a-z/_]{0,20}",
        "[\\\\\"',\\t\\n\\r N.é\\x01]{0,12}",
        any::<String>(),
    ];
    let whole = (any::<i64>(), 0..64_u32).prop_map(|(bits, shift)| bits >> shift);
    match kind {
        Kind::Int16 => prop_oneof![any::<i16>(), -1200..1200_i16]
            .prop_map(Value::Int16)
            .boxed(),
        Kind::Days => prop_oneof![DAYS, -800_000..80_000_i32]
            .prop_map(Value::Days)
            .boxed(),
        Kind::Int32 => any::<i32>().prop_map(Value::Int32).boxed(),
        Kind::Int64 => whole.prop_map(Value::Int64).boxed(),
        Kind::Float32 => prop_oneof![
            any::<u32>().prop_map(|bits| single(f32::from_bits(bits))),
            (-1000..1000_i16).prop_map(|n| single(f32::from(n) / 8.0)),
            any::<i16>().prop_map(|n| single(f32::from(n) / 10_000.0)),
            (-1_100_000..1_100_000_i32)
                .prop_map(|n| single(format!("{n}e-3").parse().expect("a number"))),
        ]
        .boxed(),
        Kind::Float64 => prop_oneof![
            any::<u64>().prop_map(|bits| double(f64::from_bits(bits))),
            any::<i32>().prop_map(|n| double(f64::from(n))),
            any::<i32>().prop_map(|n| double(f64::from(n) / 100_000.0)),
            (-2000..2000_i16).prop_map(|n| double(f64::from(n) / 7.0)),
            Just(double(-0.0)),
            Just(double(f64::NAN)),
            Just(double(f64::INFINITY)),
            Just(double(f64::NEG_INFINITY)),
        ]
        .boxed(),
        Kind::Text => text.prop_map(Value::Text).boxed(),
        Kind::Json => text.prop_map(Value::Json).boxed(),
        Kind::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Kind::Nanos => prop_oneof![
            any::<i64>(),
            (0..2_000_000_000_i64).prop_map(|s| s * 1_000_000_000)
        ]
        .prop_map(Value::Nanos)
        .boxed(),
        Kind::Micros => prop_oneof![MICROS, 0..2_000_000_000_000_000_i64]
            .prop_map(Value::Micros)
            .boxed(),
    }
}

/// A column: without nulls, with some, or with nothing else.
fn column(kind: Kind, rows: usize) -> impl Strategy<Value = Vec<Value>> {
    (0..3_u8).prop_flat_map(move |nulls| {
        let value = (value(kind), 0..3_u8).prop_map(move |(value, draw)| match nulls {
            0 => value,
            1 if draw > 0 => value,
            _ => Value::Null,
        });
        prop::collection::vec(value, rows)
    })
}

/// Batches with columns of every type, also parts of larger ones.
pub(crate) fn batches() -> impl Strategy<Value = Batch> {
    let kinds = prop::collection::vec(prop::sample::select(&KINDS), 1..8);
    (kinds, 0..150_usize, 0..70_usize, 0..70_usize).prop_flat_map(|(kinds, count, first, after)| {
        let rows = first + count + after;
        let columns: Vec<_> = kinds.iter().map(|kind| column(*kind, rows)).collect();
        columns.prop_map(move |columns| Batch {
            kinds: kinds.clone(),
            columns,
            first,
            count,
        })
    })
}
