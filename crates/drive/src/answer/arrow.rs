//! Answers that come as Arrow: cells of each column, row by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Date32Type, Date64Type, Decimal32Type,
    Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalYearMonthType, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, RecordBatch, downcast_dictionary_array, make_array,
};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, IntervalUnit, Schema, TimeUnit};

use super::{Digest, Digester};
use crate::client::library::ArrowStream;
use crate::protocol::value::{Cell, Kind, utc};

/// The integer behind a decimal of 256 bits.
type WideDecimal = <Decimal256Type as ArrowPrimitiveType>::Native;

const DAY_US: f64 = 86_400e6;
const MONTH_DAYS: f64 = 30.0;
/// Powers of ten that a double holds exactly.
const EXACT_POWERS: i8 = 22;
/// Whole numbers up to this are doubles.
const EXACT: i128 = 1 << 53;

/// The digest of a whole answer.
pub(crate) fn digest(
    schema: &Schema,
    batches: &[RecordBatch],
    digester: &mut Digester,
) -> Result<Digest, ArrowError> {
    let columns = schema.fields().iter();
    digester.describe_cells(columns.map(|field| (field.name().as_str(), kind(field.data_type()))));
    for batch in batches {
        let columns: Vec<Column> = batch
            .columns()
            .iter()
            .map(Column::new)
            .collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            digester.cells(columns.iter().map(|column| column.cell(row)));
        }
    }
    Ok(digester.digest())
}

/// The digest of an answer as JSON.
///
/// # Errors
/// Whatever the stream says, or a type that cannot be read.
pub fn document(stream: ArrowStream) -> Result<String, ArrowError> {
    let schema = stream.schema();
    let batches = stream.collect::<Result<Vec<_>, _>>()?;
    let digest = digest(&schema, &batches, &mut Digester::default())?;
    serde_json::to_string(&digest).map_err(|error| ArrowError::ExternalError(error.into()))
}

/// What a column of this type is to a digest.
fn kind(data_type: &DataType) -> Kind {
    match data_type {
        data_type if data_type.is_numeric() => Kind::Number,
        DataType::Boolean => Kind::Number,
        DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Time32(_)
        | DataType::Time64(_) => Kind::Span,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Kind::Time,
        _ => Kind::Text,
    }
}

/// A column with its values in the forms of cells.
struct Column {
    array: ArrayRef,
    values: Values,
}

enum Values {
    Doubles(Vec<f64>),
    Spans(Vec<f64>),
    Times(Vec<i64>),
    /// The array's own bytes.
    Texts(TextKind),
    /// Texts that were written of them.
    Strings(Vec<String>),
    /// There is none.
    Nulls,
}

#[derive(Clone, Copy)]
enum TextKind {
    Utf8,
    LargeUtf8,
    Utf8View,
    Binary,
    LargeBinary,
    BinaryView,
    Fixed,
}

impl Column {
    fn new(array: &ArrayRef) -> Result<Self, ArrowError> {
        if let DataType::Dictionary(_, values) = array.data_type() {
            let plain = unpacked(array)?;
            let mut column = Self::new(&plain)?;
            // Whatever the entries are, a column of a dictionary is one of texts.
            if kind(values) != Kind::Text {
                column.values =
                    Values::Strings((0..plain.len()).map(|row| written(&plain, row)).collect());
            }
            return Ok(column);
        }
        Ok(Self {
            values: values(array),
            array: array.clone(),
        })
    }

    fn cell(&self, row: usize) -> Option<Cell<'_>> {
        if self.array.is_null(row) {
            return None;
        }
        Some(match &self.values {
            Values::Doubles(values) => Cell::Number(values[row]),
            Values::Spans(values) => Cell::Span(values[row]),
            Values::Times(values) => Cell::Time(values[row]),
            Values::Strings(texts) => Cell::Text(texts[row].as_bytes()),
            Values::Texts(kind) => Cell::Text(text(&self.array, *kind, row)),
            Values::Nulls => return None,
        })
    }
}

fn unpacked(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    fn of<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>) -> Result<ArrayRef, ArrowError> {
        let entries = array.values().to_data();
        let mut plain = MutableArrayData::new(vec![&entries], true, array.len());
        for row in 0..array.len() {
            match array.key(row) {
                Some(key) => plain.try_extend(0, key, key + 1)?,
                None => plain.try_extend_nulls(1)?,
            }
        }
        Ok(make_array(plain.freeze()))
    }
    downcast_dictionary_array!(
        array => of(array),
        other => Err(ArrowError::SchemaError(format!("{other} is not a dictionary")))
    )
}

fn text(array: &ArrayRef, kind: TextKind, row: usize) -> &[u8] {
    match kind {
        TextKind::Utf8 => array.as_string::<i32>().value(row).as_bytes(),
        TextKind::LargeUtf8 => array.as_string::<i64>().value(row).as_bytes(),
        TextKind::Utf8View => array.as_string_view().value(row).as_bytes(),
        TextKind::Binary => array.as_binary::<i32>().value(row),
        TextKind::LargeBinary => array.as_binary::<i64>().value(row),
        TextKind::BinaryView => array.as_binary_view().value(row),
        TextKind::Fixed => array.as_fixed_size_binary().value(row),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "part of the definition: values are doubles"
)]
fn values(array: &ArrayRef) -> Values {
    match array.data_type() {
        DataType::Null => Values::Nulls,
        DataType::Int8 => doubles::<Int8Type>(array, f64::from),
        DataType::Int16 => doubles::<Int16Type>(array, f64::from),
        DataType::Int32 => doubles::<Int32Type>(array, f64::from),
        DataType::Int64 => doubles::<Int64Type>(array, |value| value as f64),
        DataType::UInt8 => doubles::<UInt8Type>(array, f64::from),
        DataType::UInt16 => doubles::<UInt16Type>(array, f64::from),
        DataType::UInt32 => doubles::<UInt32Type>(array, f64::from),
        DataType::UInt64 => doubles::<UInt64Type>(array, |value| value as f64),
        DataType::Float16 => doubles::<Float16Type>(array, f64::from),
        DataType::Float32 => doubles::<Float32Type>(array, f64::from),
        DataType::Float64 => doubles::<Float64Type>(array, |value| value),
        DataType::Decimal32(_, scale) => {
            decimals::<Decimal32Type>(array, *scale, |v| Some(v.into()))
        }
        DataType::Decimal64(_, scale) => {
            decimals::<Decimal64Type>(array, *scale, |v| Some(v.into()))
        }
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(array, *scale, Some),
        DataType::Decimal256(_, scale) => {
            decimals::<Decimal256Type>(array, *scale, WideDecimal::to_i128)
        }
        DataType::Boolean => {
            let flags = array.as_boolean();
            Values::Doubles(
                (0..flags.len())
                    .map(|row| f64::from(u8::from(flags.value(row))))
                    .collect(),
            )
        }
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            Values::Times(times(array))
        }
        DataType::Duration(_)
        | DataType::Interval(_)
        | DataType::Time32(_)
        | DataType::Time64(_) => Values::Spans(spans(array)),
        DataType::Utf8 => Values::Texts(TextKind::Utf8),
        DataType::LargeUtf8 => Values::Texts(TextKind::LargeUtf8),
        DataType::Utf8View => Values::Texts(TextKind::Utf8View),
        DataType::Binary => Values::Texts(TextKind::Binary),
        DataType::LargeBinary => Values::Texts(TextKind::LargeBinary),
        DataType::BinaryView => Values::Texts(TextKind::BinaryView),
        DataType::FixedSizeBinary(_) => Values::Texts(TextKind::Fixed),
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..)
        | DataType::Union(..)
        | DataType::RunEndEncoded(..) => {
            Values::Strings((0..array.len()).map(|row| written(array, row)).collect())
        }
        _ => Values::Strings(
            (0..array.len())
                .map(|row| format!("{:?}", array.slice(row, 1)))
                .collect(),
        ),
    }
}

fn doubles<T: ArrowPrimitiveType>(array: &ArrayRef, read: impl Fn(T::Native) -> f64) -> Values {
    let values = array.as_primitive::<T>().values();
    Values::Doubles(values.iter().map(|&value| read(value)).collect())
}

/// A quotient of two exact doubles is the nearest one; any other decimal is read as its text.
fn decimals<T: DecimalType>(
    array: &ArrayRef,
    scale: i8,
    whole: impl Fn(T::Native) -> Option<i128>,
) -> Values {
    let decimals = array.as_primitive::<T>();
    let exact = (0..=EXACT_POWERS).contains(&scale);
    let power = 10_f64.powi(scale.into());
    let read = |row: usize| {
        if decimals.is_null(row) {
            return 0.0;
        }
        let value =
            whole(decimals.value(row)).filter(|value| exact && (-EXACT..=EXACT).contains(value));
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
        value.map_or_else(
            || decimals.value_as_string(row).parse().unwrap_or(f64::NAN),
            |value| value as f64 / power,
        )
    };
    Values::Doubles((0..decimals.len()).map(read).collect())
}

/// Microseconds since 1970; what is finer is cut off.
fn times(array: &ArrayRef) -> Vec<i64> {
    const DAY: i64 = 86_400_000_000;
    fn of<T: ArrowPrimitiveType<Native = i64>>(
        array: &ArrayRef,
        read: impl Fn(i64) -> i64,
    ) -> Vec<i64> {
        array
            .as_primitive::<T>()
            .values()
            .iter()
            .map(|&value| read(value))
            .collect()
    }
    match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values();
            days.iter().map(|&day| i64::from(day) * DAY).collect()
        }
        DataType::Date64 => of::<Date64Type>(array, |ms| ms.saturating_mul(1000)),
        DataType::Timestamp(TimeUnit::Second, _) => {
            of::<TimestampSecondType>(array, |s| s.saturating_mul(1_000_000))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            of::<TimestampMillisecondType>(array, |ms| ms.saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            of::<TimestampNanosecondType>(array, |ns| ns / 1000)
        }
        _ => of::<TimestampMicrosecondType>(array, |us| us),
    }
}

/// Microseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "part of the definition: spans are doubles"
)]
fn spans(array: &ArrayRef) -> Vec<f64> {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef, read: impl Fn(T::Native) -> f64) -> Vec<f64> {
        array
            .as_primitive::<T>()
            .values()
            .iter()
            .map(|&value| read(value))
            .collect()
    }
    match array.data_type() {
        DataType::Duration(TimeUnit::Second) => of::<DurationSecondType>(array, |s| s as f64 * 1e6),
        DataType::Duration(TimeUnit::Millisecond) => {
            of::<DurationMillisecondType>(array, |ms| ms as f64 * 1e3)
        }
        DataType::Duration(TimeUnit::Microsecond) => {
            of::<DurationMicrosecondType>(array, |us| us as f64)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            of::<DurationNanosecondType>(array, |ns| (ns / 1000) as f64)
        }
        DataType::Time32(TimeUnit::Second) => of::<Time32SecondType>(array, |s| f64::from(s) * 1e6),
        DataType::Time32(_) => of::<Time32MillisecondType>(array, |ms| f64::from(ms) * 1e3),
        DataType::Time64(TimeUnit::Nanosecond) => {
            of::<Time64NanosecondType>(array, |ns| (ns / 1000) as f64)
        }
        DataType::Time64(_) => of::<Time64MicrosecondType>(array, |us| us as f64),
        DataType::Interval(IntervalUnit::YearMonth) => {
            of::<IntervalYearMonthType>(array, |months| f64::from(months) * MONTH_DAYS * DAY_US)
        }
        DataType::Interval(IntervalUnit::DayTime) => of::<IntervalDayTimeType>(array, |span| {
            f64::from(span.days) * DAY_US + f64::from(span.milliseconds) * 1e3
        }),
        _ => of::<IntervalMonthDayNanoType>(array, |span| {
            (f64::from(span.months) * MONTH_DAYS + f64::from(span.days)) * DAY_US
                + span.nanoseconds as f64 / 1e3
        }),
    }
}

/// A value of a type that no other engine has in the same form: as Python writes it.
fn written(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "None".to_owned();
    }
    let inside = |items: &ArrayRef| {
        let texts: Vec<String> = (0..items.len()).map(|item| quoted(items, item)).collect();
        format!("[{}]", texts.join(", "))
    };
    match array.data_type() {
        DataType::List(_) => inside(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => inside(&array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => inside(&array.as_fixed_size_list().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let members = fields.iter().zip(columns);
            let texts: Vec<String> = members
                .map(|(field, values)| format!("'{}': {}", field.name(), quoted(values, row)))
                .collect();
            format!("{{{}}}", texts.join(", "))
        }
        DataType::Null | DataType::Map(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            format!("{:?}", array.slice(row, 1))
        }
        _ => Column::new(&array.slice(row, 1))
            .map_or_else(|error| error.to_string(), |column| plain(&column)),
    }
}

/// The same within another value, where texts have quotes.
fn quoted(array: &ArrayRef, row: usize) -> String {
    let text = written(array, row);
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View if array.is_valid(row) => {
            format!("'{text}'")
        }
        _ => text,
    }
}

/// The only value of a column.
fn plain(column: &Column) -> String {
    match column.cell(0) {
        Some(Cell::Number(value) | Cell::Span(value)) => value.to_string(),
        Some(Cell::Time(us)) => utc(us),
        Some(Cell::Int(value)) => value.to_string(),
        Some(Cell::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        None => String::new(),
    }
}
