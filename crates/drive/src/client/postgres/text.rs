//! Values in PostgreSQL's text forms, with `DateStyle` ISO and `IntervalStyle` postgres (the server's defaults).

use super::binary::span;
use crate::protocol::value::{Cell, DAY_US, Form, days_since_1970, plain};

/// What to do when a value cannot be read.
pub(super) const HINT: &str =
    " (text format needs DateStyle ISO and IntervalStyle postgres at the server)";
const SECOND_US: i64 = 1_000_000;
const YEAR_MONTHS: i64 = 12;

/// One value; `None` when its text is not of this form. `scratch` holds what has to be built.
pub(super) fn cell<'a>(form: Form, value: &'a [u8], scratch: &'a mut Vec<u8>) -> Option<Cell<'a>> {
    let text = || std::str::from_utf8(value).ok();
    Some(match form {
        Form::Bool => Cell::Number(match value {
            b"t" => 1.0,
            b"f" => 0.0,
            _ => return None,
        }),
        Form::Date | Form::Timestamp => Cell::Time(time(text()?)?),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a day has fewer than 2^53 microseconds"
        )]
        Form::TimeOfDay => Cell::Span(clock(text()?)? as f64),
        Form::Interval => Cell::Span(interval(text()?)?),
        Form::Bytea => bytea(value, scratch)?,
        _ => plain(form, value)?,
    })
}

/// `2016-01-01`, `2016-01-01 12:30:05.25`, `… +05:30`, `… BC`, `infinity`; microseconds since 1970 UTC.
fn time(text: &str) -> Option<i64> {
    match text {
        "infinity" => return Some(i64::MAX),
        "-infinity" => return Some(i64::MIN),
        _ => {}
    }
    let (text, is_bc) = text
        .strip_suffix(" BC")
        .map_or((text, false), |text| (text, true));
    let (date, rest) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (
        digits(parts.next()?)?,
        digits(parts.next()?)?,
        digits(parts.next()?)?,
    );
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // There was no year zero: 1 BC is the year 0 of the calculation.
    let year = if is_bc { 1 - year } else { year };
    let at = rest.find(['+', '-']).unwrap_or(rest.len());
    let offset_us = match &rest[at..] {
        "" => 0,
        zone => signed(zone, clock)?,
    };
    let days = days_since_1970(year, month, day);
    let us = days.checked_mul(DAY_US)?.checked_add(clock(&rest[..at])?)?;
    us.checked_sub(offset_us)
}

/// `12`, `12:30`, `12:30:05`, `12:30:05.25`: microseconds.
fn clock(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut us: i64 = 0;
    let mut unit_us = 3600 * SECOND_US;
    for (place, part) in whole.split(':').enumerate() {
        if place > 2 {
            return None;
        }
        us = us.checked_add(digits(part)?.checked_mul(unit_us)?)?;
        unit_us /= 60;
    }
    if fraction.len() > 6 {
        return None;
    }
    if !fraction.is_empty() {
        let scale = 10_i64.pow(6 - u32::try_from(fraction.len()).ok()?);
        us = us.checked_add(digits(fraction)? * scale)?;
    }
    Some(us)
}

/// Unsigned; nothing but digits, no more than any part of a time or span has.
fn digits(text: &str) -> Option<i64> {
    let plain = (1..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

fn signed<T: std::ops::Neg<Output = T>>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    match text.strip_prefix('-') {
        Some(rest) => Some(-read(rest)?),
        None => read(text.strip_prefix('+').unwrap_or(text)),
    }
}

/// `1 year 2 mons -3 days 04:05:06.7`, in microseconds.
fn interval(text: &str) -> Option<f64> {
    match text {
        "infinity" => return Some(f64::INFINITY),
        "-infinity" => return Some(f64::NEG_INFINITY),
        _ => {}
    }
    let (mut months, mut days, mut us) = (0, 0, 0);
    let mut words = text.split(' ');
    while let Some(word) = words.next() {
        if word.contains(':') {
            us = signed(word, clock)?;
            continue;
        }
        let count = signed(word, digits)?;
        match words.next()?.trim_end_matches('s') {
            "year" => months += count.checked_mul(YEAR_MONTHS)?,
            "mon" => months += count,
            "day" => days += count,
            _ => return None,
        }
    }
    Some(span(months, days, us))
}

/// `\x` and hexadecimal digits.
fn bytea<'a>(value: &[u8], scratch: &'a mut Vec<u8>) -> Option<Cell<'a>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|digit| u8::try_from(digit).ok())
    };
    scratch.clear();
    for pair in value.strip_prefix(b"\\x")?.chunks(2) {
        let [high, low] = pair else { return None };
        scratch.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(Cell::Text(scratch))
}
