//! Values in MySQL's binary forms, low bytes first; their lengths say how wide numbers are.

use super::text;
use crate::protocol::value::{Cell, DAY_US, Form};

const SECOND_US: i64 = 1_000_000;

/// One value; `None` when its bytes are not of this form.
pub(super) fn cell(form: Form, value: &[u8]) -> Option<Cell<'_>> {
    Some(match form {
        Form::Int8 => Cell::Int(signed(value)?),
        #[expect(clippy::cast_precision_loss, reason = "a digest compares doubles")]
        Form::Oid => Cell::Number(u64::from_le_bytes(padded(value)?) as f64),
        Form::Float4 => Cell::Number(f32::from_le_bytes(value.try_into().ok()?).into()),
        Form::Float8 => Cell::Number(f64::from_le_bytes(value.try_into().ok()?)),
        // Decimals come as text.
        Form::Numeric => return text::cell(form, value),
        Form::Date | Form::Timestamp => Cell::Time(time(value)?),
        #[expect(
            clippy::cast_precision_loss,
            reason = "five weeks have fewer than 2^53 microseconds"
        )]
        Form::TimeOfDay => Cell::Span(span(value)? as f64),
        _ => Cell::Text(value),
    })
}

fn signed(value: &[u8]) -> Option<i64> {
    Some(match *value {
        [a] => i8::from_le_bytes([a]).into(),
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        _ => i64::from_le_bytes(value.try_into().ok()?),
    })
}

/// Zeros stand for what is left out at the end.
fn padded<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    let mut all = [0; N];
    all.get_mut(..value.len())?.copy_from_slice(value);
    Some(all)
}

/// Year, month, day; hour, minute, second; microseconds.
fn time(value: &[u8]) -> Option<i64> {
    let [y0, y1, month, day, hour, minute, second, us @ ..] = padded::<11>(value)?;
    let year = u16::from_le_bytes([y0, y1]);
    let day_us = text::moment(year.into(), month.into(), day.into())?;
    day_us.checked_add(clock(hour, minute, second, us))
}

/// Sign, days, hour, minute, second; microseconds.
fn span(value: &[u8]) -> Option<i64> {
    let [negative, d0, d1, d2, d3, hour, minute, second, us @ ..] = padded::<12>(value)?;
    let days = i64::from(u32::from_le_bytes([d0, d1, d2, d3]));
    let us = days * DAY_US + clock(hour, minute, second, us);
    Some(if negative == 0 { us } else { -us })
}

fn clock(hour: u8, minute: u8, second: u8, us: [u8; 4]) -> i64 {
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    seconds * SECOND_US + i64::from(u32::from_le_bytes(us))
}
