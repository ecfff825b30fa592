//! Values in PostgreSQL's binary forms (the types' `send` functions).

use crate::protocol::value::{Cell, DAY_US, Form};

/// From 1970-01-01 to 2000-01-01, where PostgreSQL counts from.
const EPOCH_US: i64 = 946_684_800_000_000;
/// A month in a span.
const MONTH_DAYS: i64 = 30;

/// One value; `None` when its bytes are not of this form. `scratch` holds what has to be built.
pub(super) fn cell<'a>(form: Form, value: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Cell<'a>> {
    Some(match form {
        Form::Bool => Cell::Number(f64::from(array::<1>(value)?[0])),
        Form::Int2 => Cell::Number(f64::from(i16::from_be_bytes(array(value)?))),
        Form::Int4 => Cell::Number(f64::from(i32::from_be_bytes(array(value)?))),
        Form::Int8 => Cell::Int(i64::from_be_bytes(array(value)?)),
        Form::Oid => Cell::Number(f64::from(u32::from_be_bytes(array(value)?))),
        Form::Float4 => Cell::Number(f64::from(f32::from_be_bytes(array(value)?))),
        Form::Float8 => Cell::Number(f64::from_be_bytes(array(value)?)),
        Form::Numeric => Cell::Number(numeric(value)?),
        Form::Date => Cell::Time(date(i32::from_be_bytes(array(value)?))),
        Form::Timestamp => Cell::Time(timestamp(i64::from_be_bytes(array(value)?))),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a day has fewer than 2^53 microseconds"
        )]
        Form::TimeOfDay => Cell::Span(i64::from_be_bytes(array(value)?) as f64),
        Form::Interval => Cell::Span(interval(value)?),
        Form::Text | Form::Bytea | Form::Other => Cell::Text(value),
        // A version is before the text.
        Form::Jsonb => Cell::Text(value.strip_prefix(&[1])?),
        Form::Uuid => uuid(array(value)?, scratch),
    })
}

fn array<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

fn date(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        // No server sends a date beyond the year 5,874,897, and that fits.
        days => i64::from(days)
            .saturating_mul(DAY_US)
            .saturating_add(EPOCH_US),
    }
}

fn timestamp(us: i64) -> i64 {
    match us {
        i64::MIN => i64::MIN,
        // Infinity is the largest, and stays it.
        us => us.saturating_add(EPOCH_US),
    }
}

/// Microseconds, days and months.
fn interval(value: &[u8]) -> Option<f64> {
    let (us, rest) = value.split_first_chunk()?;
    let (days, months) = rest.split_first_chunk()?;
    let us = i64::from_be_bytes(*us);
    let (days, months) = (
        i32::from_be_bytes(*days),
        i32::from_be_bytes(array(months)?),
    );
    Some(match (us, days, months) {
        (i64::MAX, i32::MAX, i32::MAX) => f64::INFINITY,
        (i64::MIN, i32::MIN, i32::MIN) => f64::NEG_INFINITY,
        _ => span(months.into(), days.into(), us),
    })
}

/// A span as microseconds.
#[expect(clippy::cast_precision_loss, reason = "a digest compares doubles")]
pub(super) fn span(months: i64, days: i64, us: i64) -> f64 {
    let days = i128::from(months) * i128::from(MONTH_DAYS) + i128::from(days);
    (days * i128::from(DAY_US) + i128::from(us)) as f64
}

/// Digits to base 10,000: how many, the weight of the first, sign, scale.
fn numeric(value: &[u8]) -> Option<f64> {
    let (head, digits) = value.split_first_chunk::<8>()?;
    let weight = i32::from(i16::from_be_bytes([head[2], head[3]]));
    let sign = u16::from_be_bytes([head[4], head[5]]);
    match sign {
        0xC000 => return Some(f64::NAN),
        0xD000 => return Some(f64::INFINITY),
        0xF000 => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    if digits.len() != 2 * usize::from(u16::from_be_bytes([head[0], head[1]])) {
        return None;
    }
    // Nine digits to base 10,000 are all that a 128-bit integer surely holds, and twice what a double does.
    let mut whole: i128 = 0;
    let mut taken = 0;
    for digit in digits.chunks_exact(2).take(9) {
        whole = whole * 10_000 + i128::from(u16::from_be_bytes([digit[0], digit[1]]));
        taken += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a digest compares doubles")]
    let whole = whole as f64;
    let exponent = 4 * (weight + 1 - taken);
    let value = scaled(whole, exponent);
    Some(if sign == 0x4000 { -value } else { value })
}

/// value * 10^exponent, with one rounding where the power of ten is exact.
fn scaled(value: f64, exponent: i32) -> f64 {
    match exponent {
        0.. => value * 10_f64.powi(exponent),
        // Beyond the largest power the quotient is taken in two steps.
        -300..0 => value / 10_f64.powi(-exponent),
        _ => value / 1e300 / 10_f64.powi(-exponent - 300),
    }
}

/// Thirty-two hexadecimal digits with four dashes.
fn uuid(value: [u8; 16], scratch: &mut Vec<u8>) -> Cell<'_> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    scratch.clear();
    for (at, byte) in value.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            scratch.push(b'-');
        }
        scratch.push(DIGITS[usize::from(byte >> 4)]);
        scratch.push(DIGITS[usize::from(byte & 15)]);
    }
    Cell::Text(scratch)
}
