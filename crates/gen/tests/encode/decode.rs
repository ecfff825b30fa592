//! Readers of `COPY`'s two formats and of CSV, straight from their definitions.

use super::batch::{Kind, Value, double, single};
use super::calendar;

const EPOCH_US: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i32 = 10_957;

/// Bytes that are read from the front.
pub(crate) struct Read<'a>(&'a [u8]);

impl<'a> Read<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// A tuple with columns of these types.
    pub(crate) fn tuple(&mut self, kinds: &[Kind]) -> Option<Vec<Value>> {
        let count = i16::from_be_bytes(self.array()?);
        if usize::try_from(count) != Ok(kinds.len()) {
            return None;
        }
        kinds.iter().map(|kind| self.field(*kind)).collect()
    }

    fn field(&mut self, kind: Kind) -> Option<Value> {
        let length = i32::from_be_bytes(self.array()?);
        if length == -1 {
            return Some(Value::Null);
        }
        let mut field = Self(self.take(usize::try_from(length).ok()?)?);
        let value = field.value(kind)?;
        field.0.is_empty().then_some(value)
    }

    fn value(&mut self, kind: Kind) -> Option<Value> {
        Some(match kind {
            Kind::Int16 => Value::Int16(i16::from_be_bytes(self.array()?)),
            Kind::Days => Value::Days(i32::from_be_bytes(self.array()?).wrapping_add(EPOCH_DAYS)),
            Kind::Int32 => Value::Int32(i32::from_be_bytes(self.array()?)),
            Kind::Int64 => Value::Int64(i64::from_be_bytes(self.array()?)),
            Kind::Float32 => single(f32::from_be_bytes(self.array()?)),
            Kind::Float64 => double(f64::from_be_bytes(self.array()?)),
            Kind::Bool => Value::Bool(match self.array()? {
                [0] => false,
                [1] => true,
                _ => return None,
            }),
            Kind::Nanos => Value::Nanos((i64::from_be_bytes(self.array()?) + EPOCH_US) * 1000),
            Kind::Micros => Value::Micros(i64::from_be_bytes(self.array()?) + EPOCH_US),
            Kind::Text => Value::Text(self.rest()?),
            Kind::Json if self.array()? == [1] => Value::Json(self.rest()?),
            Kind::Json => return None,
        })
    }

    fn rest(&mut self) -> Option<String> {
        let bytes = self.take(self.0.len())?;
        String::from_utf8(bytes.to_vec()).ok()
    }
}

/// Tuples without header and trailer.
pub(crate) fn binary(bytes: &[u8], kinds: &[Kind]) -> Vec<Vec<Value>> {
    let mut read = Read::new(bytes);
    let mut rows = Vec::new();
    while !read.0.is_empty() {
        rows.push(read.tuple(kinds).expect("a whole tuple"));
    }
    rows
}

/// A value as text, in any of the formats.
fn parse(kind: Kind, text: &str) -> Option<Value> {
    Some(match kind {
        Kind::Int16 => Value::Int16(text.parse().ok()?),
        Kind::Days => Value::Days(date(text)?),
        Kind::Int32 => Value::Int32(text.parse().ok()?),
        Kind::Int64 => Value::Int64(text.parse().ok()?),
        Kind::Float32 => single(text.parse().ok()?),
        Kind::Float64 => double(text.parse().ok()?),
        Kind::Text => Value::Text(text.to_owned()),
        Kind::Json => Value::Json(text.to_owned()),
        Kind::Bool => Value::Bool(match text {
            "t" | "true" => true,
            "f" | "false" => false,
            _ => return None,
        }),
        Kind::Nanos => Value::Nanos(i64::try_from(time(text)?).ok()?),
        Kind::Micros => Value::Micros(i64::try_from(time(text)? / 1000).ok()?),
    })
}

/// Nanoseconds since 1970 of `2016-01-01 00:00:00.5+00`, also with `BC`, or of `2016-01-01T00:00:00.5Z`.
fn time(text: &str) -> Option<i128> {
    let (text, christ) = match text.strip_suffix(" BC") {
        Some(text) => (text, false),
        None => (text, true),
    };
    let text = text
        .strip_suffix("+00")
        .or_else(|| text.strip_suffix('Z'))?;
    let (second, part) = text.split_once('.').unwrap_or((text, "0"));
    let second = if christ {
        calendar::seconds(second)?
    } else {
        let (year, rest) = second.split_once('-')?;
        calendar::seconds(&format!("{}-{rest}", 1 - year.parse::<i64>().ok()?))?
    };
    let part: i128 = format!("{part:0<9}").parse().ok()?;
    Some(i128::from(second) * 1_000_000_000 + part)
}

/// Days since 1970 of `2016-01-01`, also with `BC`.
fn date(text: &str) -> Option<i32> {
    let midnight = match text.strip_suffix(" BC") {
        Some(text) => format!("{text} 00:00:00+00 BC"),
        None => format!("{text}T00:00:00Z"),
    };
    i32::try_from(time(&midnight)? / 86_400_000_000_000).ok()
}

/// Lines of `COPY`'s text format.
pub(crate) fn text(bytes: &[u8], kinds: &[Kind]) -> Vec<Vec<Value>> {
    let text = std::str::from_utf8(bytes).expect("text is UTF-8");
    let row = |line: &str| {
        let line = line.strip_suffix('\n').expect("every line ends");
        let fields: Vec<_> = line.split('\t').collect();
        assert_eq!(fields.len(), kinds.len(), "{line:?}");
        let value = |(kind, field): (&Kind, &str)| match field {
            "\\N" => Value::Null,
            field => parse(*kind, &unescape(field)).expect("a value"),
        };
        kinds.iter().zip(fields).map(value).collect()
    };
    text.split_inclusive('\n').map(row).collect()
}

fn unescape(field: &str) -> String {
    let (mut text, mut characters) = (String::new(), field.chars());
    while let Some(character) = characters.next() {
        assert!(character != '\r', "a carriage return must be escaped");
        text.push(match character {
            '\\' => {
                let escape = characters.next().expect("no backslash ends a field");
                let meanings = [('t', '\t'), ('n', '\n'), ('r', '\r'), ('\\', '\\')];
                let meaning = meanings.iter().find(|(name, _)| *name == escape);
                meaning.expect("an escape that is known").1
            }
            other => other,
        });
    }
    text
}

/// Lines of CSV; a field that is empty and not quoted is null.
pub(crate) fn csv(bytes: &[u8], kinds: &[Kind]) -> Vec<Vec<Value>> {
    let mut text = std::str::from_utf8(bytes).expect("text is UTF-8");
    let mut rows = Vec::new();
    while !text.is_empty() {
        let mut row = Vec::new();
        for (index, kind) in kinds.iter().enumerate() {
            let (field, rest) = csv_field(text);
            let end = if index + 1 < kinds.len() { "," } else { "\r\n" };
            text = rest.strip_prefix(end).expect("a field ends");
            row.push(field.map_or(Value::Null, |field| parse(*kind, &field).expect("a value")));
        }
        rows.push(row);
    }
    rows
}

fn csv_field(text: &str) -> (Option<String>, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let end = text.find([',', '\r', '\n', '"']).expect("a field ends");
        let (field, rest) = text.split_at(end);
        return ((!field.is_empty()).then(|| field.to_owned()), rest);
    };
    let mut field = String::new();
    loop {
        let (part, after) = rest.split_once('"').expect("quotes are closed");
        field.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                field.push('"');
                rest = after;
            }
            None => return (Some(field), after),
        }
    }
}
