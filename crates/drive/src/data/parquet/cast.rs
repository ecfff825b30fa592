//! Columns as the types that a table has, where no value changes by it.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, Float32Array, Float64Array, Int64Array, PrimitiveArray, StringArray,
    TimestampMicrosecondArray, new_empty_array,
};
use arrow_schema::{DataType, TimeUnit};

const DAY_US: i64 = 86_400_000_000;
/// Every whole number up to here is a double of its own.
const WHOLE_IN_DOUBLE: u64 = 1 << 53;
/// The least double above all 64 bit integers.
const ABOVE_INT64: f64 = 9_223_372_036_854_775_808.0;

/// Whether values of one type can be values of the other, as far as they fit.
pub(super) fn fits(from: &DataType, to: &DataType) -> bool {
    lenient(&new_empty_array(from), to).is_some()
}

/// The column as values of another type, of the same length. Whole numbers, and floats that are whole, become integers;
/// a double becomes the nearest float; times become microseconds, midnights dates; bytes in UTF-8 become text.
///
/// The error is the first row, counted from 0, whose value the other type does not hold.
pub(super) fn cast(column: &ArrayRef, to: &DataType) -> Result<ArrayRef, usize> {
    let other = lenient(column, to).ok_or(0_usize)?;
    if other.null_count() == column.null_count() {
        return Ok(other);
    }
    let mut rows = 0..column.len();
    let first = rows.find(|&row| other.is_null(row) && !column.is_null(row));
    Err(first.unwrap_or(0))
}

/// The column as another type, null where a value does not fit; none where no value could.
fn lenient(column: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    if column.data_type() == to {
        return Some(Arc::clone(column));
    }
    Some(match to {
        DataType::Int16 => Arc::new(checked::<Int64Type, Int16Type>(&whole(column)?)),
        DataType::Int32 => Arc::new(checked::<Int64Type, Int32Type>(&whole(column)?)),
        DataType::Int64 => Arc::new(whole(column)?),
        DataType::Float32 => Arc::new(nearest(&real(column)?)),
        DataType::Float64 => Arc::new(real(column)?),
        DataType::Date32 => Arc::new(days(&times(column)?)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Arc::new(times(column)?.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => Arc::new(texts(column)?),
        _ => return None,
    })
}

fn whole(column: &ArrayRef) -> Option<Int64Array> {
    Some(match column.data_type() {
        DataType::Boolean => {
            let values = column.as_boolean().iter();
            values.map(|value| value.map(i64::from)).collect()
        }
        DataType::Int8 => checked::<Int8Type, _>(column.as_primitive()),
        DataType::Int16 => checked::<Int16Type, _>(column.as_primitive()),
        DataType::Int32 => checked::<Int32Type, _>(column.as_primitive()),
        DataType::Int64 => column.as_primitive().clone(),
        DataType::UInt8 => checked::<UInt8Type, _>(column.as_primitive()),
        DataType::UInt16 => checked::<UInt16Type, _>(column.as_primitive()),
        DataType::UInt32 => checked::<UInt32Type, _>(column.as_primitive()),
        DataType::UInt64 => checked::<UInt64Type, _>(column.as_primitive()),
        DataType::Float32 | DataType::Float64 => real(column)?.unary_opt(whole_number),
        _ => return None,
    })
}

fn real(column: &ArrayRef) -> Option<Float64Array> {
    Some(match column.data_type() {
        DataType::Float32 => column.as_primitive::<Float32Type>().unary(f64::from),
        DataType::Float64 => column.as_primitive::<Float64Type>().clone(),
        DataType::Boolean => return None,
        _ => whole(column)?.unary_opt(double),
    })
}

fn times(column: &ArrayRef) -> Option<TimestampMicrosecondArray> {
    Some(match column.data_type() {
        DataType::Date32 => {
            let days = column.as_primitive::<Date32Type>();
            days.unary_opt(|day| i64::from(day).checked_mul(DAY_US))
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let times = column.as_primitive::<TimestampMillisecondType>();
            times.unary_opt(|ms| ms.checked_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().clone()
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let times = column.as_primitive::<TimestampNanosecondType>();
            times.unary_opt(|ns| (ns % 1000 == 0).then_some(ns / 1000))
        }
        _ => return None,
    })
}

fn days(times: &TimestampMicrosecondArray) -> PrimitiveArray<Date32Type> {
    times.unary_opt(|us| {
        let day = i32::try_from(us / DAY_US).ok()?;
        (us % DAY_US == 0).then_some(day)
    })
}

fn texts(column: &ArrayRef) -> Option<StringArray> {
    let bytes = column.as_binary_opt::<i32>()?;
    let text = |value: Option<_>| value.and_then(|bytes| str::from_utf8(bytes).ok());
    Some(bytes.iter().map(text).collect())
}

fn checked<F, T>(column: &PrimitiveArray<F>) -> PrimitiveArray<T>
where
    F: ArrowPrimitiveType,
    T: ArrowPrimitiveType,
    T::Native: TryFrom<F::Native>,
{
    column.unary_opt(|value| T::Native::try_from(value).ok())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "without a fraction, and below the bound"
)]
fn whole_number(value: f64) -> Option<i64> {
    let holds = value.fract() == 0.0 && (-ABOVE_INT64..ABOVE_INT64).contains(&value);
    holds.then_some(value as i64)
}

#[expect(clippy::cast_precision_loss, reason = "below the bound there is none")]
fn double(value: i64) -> Option<f64> {
    (value.unsigned_abs() <= WHOLE_IN_DOUBLE).then_some(value as f64)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding is what a column of floats asks for; what becomes infinite does not fit"
)]
fn nearest(values: &Float64Array) -> Float32Array {
    values.unary_opt(|value| {
        let float = value as f32;
        (float.is_finite() || !value.is_finite()).then_some(float)
    })
}

/// A value in words, for an error; empty where its type has none.
pub(super) fn shown(column: &ArrayRef, row: usize) -> String {
    if let Some(value) = times(column).filter(|times| times.is_valid(row)) {
        let time = value.value_as_datetime(row);
        return time.map_or_else(|| value.value(row).to_string(), |time| time.to_string());
    }
    match column.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            let times = column.as_primitive::<TimestampNanosecondType>();
            let time = times.value_as_datetime(row);
            time.map_or_else(String::new, |time| time.to_string())
        }
        DataType::Float32 | DataType::Float64 => {
            real(column).map_or_else(String::new, |reals| format!("{:?}", reals.value(row)))
        }
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Binary => "bytes that are no UTF-8".to_owned(),
        _ => whole(column).map_or_else(String::new, |whole| whole.value(row).to_string()),
    }
}

#[cfg(test)]
mod tests;
