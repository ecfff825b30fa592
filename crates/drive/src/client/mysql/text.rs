//! Values as MySQL writes them.

use crate::protocol::value::{Cell, DAY_US, Form, days_since_1970, plain};

const SECOND_US: i64 = 1_000_000;

/// One value; `None` when its text is not of this form.
pub(super) fn cell(form: Form, value: &[u8]) -> Option<Cell<'_>> {
    let text = || std::str::from_utf8(value).ok();
    Some(match form {
        Form::Int8 => Cell::Int(text()?.parse().ok()?),
        Form::Date | Form::Timestamp => Cell::Time(time(text()?)?),
        #[expect(
            clippy::cast_precision_loss,
            reason = "five weeks have fewer than 2^53 microseconds"
        )]
        Form::TimeOfDay => Cell::Span(span(text()?)? as f64),
        _ => plain(form, value)?,
    })
}

/// `2016-01-01`, `2016-01-01 12:30:05.25`: microseconds since 1970, as the session's time zone has it. There is no
/// moment for `0000-00-00`.
fn time(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = date.split('-').map(digits);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    moment(year, month, day)?.checked_add(clock(rest)?)
}

/// The begin of a day, in microseconds since 1970.
pub(super) fn moment(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day);
    let days = is_day.then(|| days_since_1970(year, month, day))?;
    days.checked_mul(DAY_US)
}

/// `-838:59:59.5`: microseconds.
fn span(text: &str) -> Option<i64> {
    match text.strip_prefix('-') {
        Some(rest) => Some(-clock(rest)?),
        None => clock(text),
    }
}

fn clock(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':').map(digits);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let us = match fraction.len() {
        0 => 0,
        length @ 1..=6 => {
            let scale = 10_i64.pow(6 - u32::try_from(length).ok()?);
            digits(fraction)? * scale
        }
        _ => return None,
    };
    Some((hour * 3600 + minute * 60 + second) * SECOND_US + us)
}

/// Unsigned; nothing but digits, no more than any part has.
fn digits(text: &str) -> Option<i64> {
    let plain = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::mysql::binary;

    #[test]
    fn text_and_binary_forms_say_the_same() {
        let cases: [(Form, &str, &[u8], Option<Cell<'_>>); 9] = [
            (Form::Int8, "-2", &[0xFE, 0xFF], Some(Cell::Int(-2))),
            (Form::Oid, "254", &[0xFE], Some(Cell::Number(254.0))),
            (
                Form::Float8,
                "1.5",
                &1.5_f64.to_le_bytes(),
                Some(Cell::Number(1.5)),
            ),
            (
                Form::Numeric,
                "-12.50",
                b"-12.50",
                Some(Cell::Number(-12.5)),
            ),
            (
                Form::Date,
                "1970-01-02",
                &[0xB2, 7, 1, 2],
                Some(Cell::Time(DAY_US)),
            ),
            (
                Form::Timestamp,
                "1970-01-01 00:00:01.500000",
                &[0xB2, 7, 1, 1, 0, 0, 1, 0x20, 0xA1, 7, 0],
                Some(Cell::Time(1_500_000)),
            ),
            (
                Form::TimeOfDay,
                "-25:00:01",
                &[1, 1, 0, 0, 0, 1, 0, 1],
                Some(Cell::Span(-90_001e6)),
            ),
            (Form::Date, "0000-00-00", &[], None),
            (Form::Text, "a", b"a", Some(Cell::Text(b"a"))),
        ];
        for (form, text, bytes, expected) in cases {
            assert_eq!(cell(form, text.as_bytes()), expected, "{text}");
            assert_eq!(binary::cell(form, bytes), expected, "{text}");
        }
        for text in [
            "",
            "1970",
            "1970-13-01",
            "1970-01-01 00:00",
            "1970-01-01 0:0:0.1234567",
        ] {
            assert_eq!(cell(Form::Timestamp, text.as_bytes()), None, "{text}");
        }
    }
}
