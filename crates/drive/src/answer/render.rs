//! Rows of an answer as JSON, for people who want to see them.

use serde_json::{Value, json};

use crate::protocol::value::{Cell, Form, Kind, utc};
use crate::protocol::{Columns, Row};

/// The first rows of an answer.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    columns: Vec<(String, Form, bool)>,
    kept: Vec<Value>,
    max: usize,
    scratch: Vec<u8>,
}

impl Rows {
    /// Keep at most so many rows of an answer.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    pub(crate) fn describe(&mut self, columns: &impl Columns) {
        self.columns = columns
            .columns()
            .map(|c| {
                let name = String::from_utf8_lossy(c.name).into_owned();
                (name, c.form, c.is_binary)
            })
            .collect();
        self.kept.clear();
    }

    pub(crate) fn row<R: Row>(&mut self, row: &R) {
        if self.kept.len() == self.max {
            return;
        }
        let scratch = &mut self.scratch;
        let values = row.values().zip(&self.columns);
        let values = values.map(|(value, &(_, form, is_binary))| {
            value.map_or(Value::Null, |value| {
                shown::<R>(form, is_binary, value, scratch)
            })
        });
        self.kept.push(Value::Array(values.collect()));
    }

    /// The columns' names and the rows; nothing stays.
    pub(crate) fn take(&mut self) -> (Value, Value) {
        let names = self.columns.iter().map(|(name, ..)| json!(name)).collect();
        (names, Value::Array(std::mem::take(&mut self.kept)))
    }
}

/// The first value of a row as a whole number: of times the microseconds since 1970 UTC.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
pub(crate) fn whole<R: Row>(form: Form, is_binary: bool, value: &[u8]) -> Option<i64> {
    match R::cell(form, is_binary, value, &mut Vec::new())? {
        Cell::Int(value) => Some(value),
        Cell::Number(value) | Cell::Span(value) => value.is_finite().then_some(value as i64),
        Cell::Time(us) => Some(us),
        Cell::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
    }
}

fn shown<R: Row>(form: Form, is_binary: bool, value: &[u8], scratch: &mut Vec<u8>) -> Value {
    let Some(cell) = R::cell(form, is_binary, value, scratch) else {
        return json!(String::from_utf8_lossy(value));
    };
    match cell {
        // A double would lose its last digits.
        Cell::Int(value) => json!(value),
        Cell::Number(value) if form == Form::Bool => json!(value != 0.0),
        Cell::Number(value) => number(form, value),
        Cell::Span(us) => number(form, us),
        Cell::Time(us) => json!(utc(us)),
        Cell::Text(text) => {
            debug_assert_eq!(form.kind(), Kind::Text);
            json!(String::from_utf8_lossy(text))
        }
    }
}

fn number(form: Form, value: f64) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "these types hold no more than 32 bits"
    )]
    if matches!(form, Form::Int2 | Form::Int4 | Form::Oid) {
        return json!(value as i64);
    }
    if value.is_finite() {
        json!(value)
    } else {
        json!(value.to_string())
    }
}
