//! Rows of tags, made ready: as they are, as JSON, as literals of SQL; and the text of each device's first tag.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use serde_json::{Map, Value};

/// The tags of each row as one JSON object, beside its id; a tag without a value is left out.
pub(crate) fn as_json(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let fields = rows.schema();
    let texts: StringArray = (0..rows.num_rows())
        .map(|row| {
            let tags = fields.fields().iter().zip(rows.columns()).skip(1);
            let object: Map<String, Value> = tags
                .filter_map(|(field, column)| Some((field.name().clone(), value(column, row)?)))
                .collect();
            Some(Value::Object(object).to_string())
        })
        .collect();
    let columns: Vec<ArrayRef> = vec![Arc::clone(rows.column(0)), Arc::new(texts)];
    RecordBatch::try_new(Arc::clone(schema), columns)
}

/// The rows as lists of literals, which follow the word VALUES.
pub(crate) fn as_literals(rows: &RecordBatch) -> String {
    let mut sql = String::new();
    for row in 0..rows.num_rows() {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for (number, column) in rows.columns().iter().enumerate() {
            if number > 0 {
                sql.push_str(", ");
            }
            literal(value(column, row).as_ref(), &mut sql);
        }
        sql.push(')');
    }
    sql
}

fn literal(value: Option<&Value>, sql: &mut String) {
    match value {
        None => sql.push_str("NULL"),
        Some(Value::String(text)) => {
            // With an E a backslash means the same under every setting of the server.
            let text = text.replace('\'', "''");
            let escaped = text.replace('\\', "\\\\");
            let mark = if escaped.len() == text.len() { "" } else { "E" };
            // Writing to a String cannot fail.
            let _ = write!(sql, "{mark}'{escaped}'");
        }
        Some(other) => {
            let _ = write!(sql, "{other}");
        }
    }
}

/// A value of the types that tags have; none for null.
fn value(column: &ArrayRef, row: usize) -> Option<Value> {
    if column.is_null(row) {
        return None;
    }
    Some(match column.data_type() {
        DataType::Utf8 => Value::from(column.as_string::<i32>().value(row)),
        DataType::Int32 => Value::from(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => Value::from(column.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => shortest(column.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => Value::from(column.as_primitive::<Float64Type>().value(row)),
        DataType::Boolean => Value::from(column.as_boolean().value(row)),
        _ => return None,
    })
}

/// The shortest number that reads back as this one: 0.1, not 0.10000000149011612.
fn shortest(number: f32) -> Value {
    number
        .to_string()
        .parse()
        .map_or(Value::Null, |n: f64| Value::from(n))
}

/// The first tag's text of every device state that has been seen, by id from 1.
#[derive(Debug, Default)]
pub(crate) struct FirstTags(Vec<Option<Box<str>>>);

impl FirstTags {
    /// Remember new rows of tags; their ids count up.
    pub(crate) fn add(&mut self, rows: &RecordBatch) {
        let column = rows.column(1);
        self.0.extend((0..rows.num_rows()).map(|row| {
            value(column, row).map(|value| match value {
                Value::String(text) => text.into(),
                other => other.to_string().into(),
            })
        }));
    }

    /// Put the tag's text before the other columns.
    pub(crate) fn before(
        &self,
        rows: &RecordBatch,
        schema: &SchemaRef,
    ) -> Result<RecordBatch, ArrowError> {
        let ids = rows
            .column_by_name("tags_id")
            .and_then(|ids| ids.as_primitive_opt::<Int32Type>())
            .ok_or_else(|| ArrowError::SchemaError("rows have no tags_id".to_owned()))?;
        let texts: StringArray = ids
            .values()
            .iter()
            .map(|&id| {
                let index = usize::try_from(id).ok()?.checked_sub(1)?;
                self.0.get(index)?.as_deref()
            })
            .collect();
        let columns = std::iter::once(Arc::new(texts) as ArrayRef);
        let columns = columns.chain(rows.columns().iter().cloned()).collect();
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}
