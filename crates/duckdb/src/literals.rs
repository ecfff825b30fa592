//! Values of Arrow rows, one by one: as parameters, and as literals of a statement's text.

use std::fmt::Write as _;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
};
use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_schema::{DataType, TimeUnit};

use crate::error::DuckError;
use crate::statement::Value;

/// The rows as lists of literals, which follow the word VALUES.
pub(crate) fn lists(rows: &RecordBatch) -> Result<String, DuckError> {
    let mut sql = String::new();
    for row in 0..rows.num_rows() {
        sql.push_str(if row == 0 { "(" } else { ",\n(" });
        for (place, column) in rows.columns().iter().enumerate() {
            if place > 0 {
                sql.push_str(", ");
            }
            put(column, row, &mut sql)?;
        }
        sql.push(')');
    }
    Ok(sql)
}

fn put(column: &dyn Array, row: usize, sql: &mut String) -> Result<(), DuckError> {
    // Writing to a String cannot fail.
    let _ = match value(column, row)? {
        Value::Null => write!(sql, "NULL"),
        Value::Bool(value) => write!(sql, "{value}"),
        Value::Int(value) => write!(sql, "{value}"),
        Value::Float(value) if value.is_finite() => write!(sql, "{value:?}"),
        Value::Float(value) => write!(sql, "'{value}'"),
        Value::Time(value) => put_time(value, sql),
        Value::Text(value) => write!(sql, "'{}'", value.replace('\'', "''")),
    };
    Ok(())
}

fn put_time(us: i64, sql: &mut String) -> std::fmt::Result {
    match arrow_array::temporal_conversions::timestamp_us_to_datetime(us) {
        Some(time) => write!(sql, "'{time}+00'"),
        None => write!(sql, "make_timestamptz({us})"),
    }
}

/// One value of a column.
pub(crate) fn value(column: &dyn Array, row: usize) -> Result<Value, DuckError> {
    if column.is_null(row) {
        return Ok(Value::Null);
    }
    Ok(match column.data_type() {
        DataType::Boolean => Value::Bool(column.as_boolean().value(row)),
        DataType::Int8 => Value::Int(of::<Int8Type>(column).value(row).into()),
        DataType::Int16 => Value::Int(of::<Int16Type>(column).value(row).into()),
        DataType::Int32 => Value::Int(of::<Int32Type>(column).value(row).into()),
        DataType::Int64 => Value::Int(of::<Int64Type>(column).value(row)),
        DataType::UInt8 => Value::Int(of::<UInt8Type>(column).value(row).into()),
        DataType::UInt16 => Value::Int(of::<UInt16Type>(column).value(row).into()),
        DataType::UInt32 => Value::Int(of::<UInt32Type>(column).value(row).into()),
        DataType::Float32 => Value::Float(shortest(of::<Float32Type>(column).value(row))),
        DataType::Float64 => Value::Float(of::<Float64Type>(column).value(row)),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Value::Text(column.as_string::<i64>().value(row).to_owned()),
        DataType::Timestamp(unit, _) => Value::Time(microseconds(column, *unit, row)),
        DataType::Date32 => Value::Text(date(of::<Date32Type>(column).value(row))),
        DataType::Dictionary(..) => {
            let found = column.as_any_dictionary();
            match value(found.keys(), row)? {
                Value::Int(key) => value(found.values(), usize::try_from(key).unwrap_or(0))?,
                _ => Value::Null,
            }
        }
        other => {
            let said = format!("rows with values of the type {other} cannot be inserted as text");
            return Err(DuckError::new("NotImplementedException", said));
        }
    })
}

fn date(days: i32) -> String {
    let found = arrow_array::temporal_conversions::date32_to_datetime(days);
    found.map_or_else(String::new, |time| time.date().to_string())
}

fn of<T: ArrowPrimitiveType>(column: &dyn Array) -> &PrimitiveArray<T> {
    column.as_primitive::<T>()
}

fn microseconds(column: &dyn Array, unit: TimeUnit, row: usize) -> i64 {
    match unit {
        TimeUnit::Second => of::<TimestampSecondType>(column).value(row) * 1_000_000,
        TimeUnit::Millisecond => of::<TimestampMillisecondType>(column).value(row) * 1000,
        TimeUnit::Microsecond => of::<TimestampMicrosecondType>(column).value(row),
        TimeUnit::Nanosecond => of::<TimestampNanosecondType>(column)
            .value(row)
            .div_euclid(1000),
    }
}

/// The number that is written as the shortest text of this one: 0.1, not 0.10000000149011612.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap_or_else(|_| number.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BinaryArray, BooleanArray, Date32Array, DictionaryArray, Float64Array,
        Int64Array, StringArray, TimestampNanosecondArray,
    };

    use super::*;

    #[test]
    fn values_are_written_as_sql_reads_them() {
        let words: DictionaryArray<Int32Type> = vec![Some("x"), None].into_iter().collect();
        let columns: [(&str, ArrayRef); 7] = [
            ("i", Arc::new(Int64Array::from(vec![Some(-7), None]))),
            ("x", Arc::new(Float64Array::from(vec![0.1, f64::INFINITY]))),
            ("s", Arc::new(StringArray::from(vec!["it's", ""]))),
            ("b", Arc::new(BooleanArray::from(vec![true, false]))),
            (
                "t",
                Arc::new(TimestampNanosecondArray::from(vec![
                    1_451_606_400_123_456_789,
                    -1,
                ])),
            ),
            ("d", Arc::new(Date32Array::from(vec![0, -1]))),
            ("w", Arc::new(words)),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        assert_eq!(
            lists(&rows).unwrap(),
            "(-7, 0.1, 'it''s', true, '2016-01-01 00:00:00.123456+00', '1970-01-01', 'x'),\n\
             (NULL, 'inf', '', false, '1969-12-31 23:59:59.999999+00', '1969-12-31', NULL)"
        );
    }

    #[test]
    fn a_type_without_a_text_is_refused() {
        let bytes = BinaryArray::from(vec![&b"x"[..]]);
        let refused = value(&bytes, 0).unwrap_err();
        assert!(refused.message.contains("type Binary"), "{refused}");
    }
}
