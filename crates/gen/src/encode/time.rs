//! Times: PostgreSQL's number, and text.

use crate::number::put_three;

/// Microseconds from 1970 to 2000, PostgreSQL's first moment.
const EPOCH_US: i64 = 946_684_800_000_000;
const DAY_S: i64 = 86_400;

/// Microseconds since 1970 as PostgreSQL counts them, since 2000.
///
/// Its two infinities are never the result: what is out of range stays out of range.
#[inline]
pub(super) fn to_postgres(micros: i64) -> i64 {
    micros.saturating_sub(EPOCH_US).max(i64::MIN + 1)
}

/// How a time is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// `2016-01-01 00:00:00.5+00`, at most six decimals (rounded down), years before 1 with `BC`.
    Postgres,
    /// `2016-01-01T00:00:00.5Z`, every decimal there is, years before 1 as negative numbers from 0 on.
    Iso,
}

/// Writes times. The last second is kept as text, because rows that follow each other often share it.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    style: Style,
    second: i64,
    text: [u8; Self::SECOND_BYTES_MAX],
    length: usize,
    before_christ: bool,
}

impl Clock {
    /// The longest is `-290308-12-21T19:59:06`.
    const SECOND_BYTES_MAX: usize = 24;
    /// The longest time, and what may be overwritten after it.
    pub(super) const BYTES_MAX: usize = Self::SECOND_BYTES_MAX + 16 + 8;

    pub(super) fn new(style: Style) -> Self {
        let mut clock = Self {
            style,
            second: 0,
            text: [0; Self::SECOND_BYTES_MAX],
            length: 0,
            before_christ: false,
        };
        clock.set(0);
        clock
    }

    /// Writes a time in nanoseconds since 1970, and returns where it ends.
    #[inline]
    pub(super) fn put_nanoseconds(&mut self, out: &mut [u8], at: usize, nanos: i64) -> usize {
        let (second, part) = (
            nanos.div_euclid(1_000_000_000),
            nanos.rem_euclid(1_000_000_000),
        );
        match self.style {
            Style::Postgres => self.put(out, at, second, part / 1000, 6),
            Style::Iso => self.put(out, at, second, part, 9),
        }
    }

    /// Writes a time in microseconds since 1970, and returns where it ends.
    #[inline]
    pub(super) fn put_microseconds(&mut self, out: &mut [u8], at: usize, micros: i64) -> usize {
        let (second, part) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        self.put(out, at, second, part, 6)
    }

    #[inline]
    fn put(&mut self, out: &mut [u8], at: usize, second: i64, part: i64, places: usize) -> usize {
        if second != self.second {
            self.set(second);
        }
        out[at..at + Self::SECOND_BYTES_MAX].copy_from_slice(&self.text);
        let mut at = at + self.length;
        if part > 0 {
            at = put_fraction(out, at, part, places);
        }
        let (zone, length) = match self.style {
            Style::Iso => (b"Z.......", 1),
            Style::Postgres if self.before_christ => (b"+00 BC..", 6),
            Style::Postgres => (b"+00.....", 3),
        };
        out[at..at + 8].copy_from_slice(zone);
        at + length
    }

    /// Lays a second out as text.
    fn set(&mut self, second: i64) {
        self.second = second;
        let (day, rest) = (second.div_euclid(DAY_S), second.rem_euclid(DAY_S));
        let (year, month, day) = date(day);
        self.before_christ = year < 1;
        let (shown, divider) = match self.style {
            Style::Postgres if self.before_christ => (1 - year, b' '),
            Style::Postgres => (year, b' '),
            Style::Iso => (year, b'T'),
        };
        let mut at = 0;
        let mut push = |byte| {
            self.text[at] = byte;
            at += 1;
        };
        if shown < 0 {
            push(b'-');
        }
        let magnitude = shown.abs();
        let places = (4..7).find(|&n| magnitude < 10_i64.pow(n)).unwrap_or(6);
        for place in (0..places).rev() {
            push(digit(magnitude / 10_i64.pow(place)));
        }
        let parts = [
            (b'-', month),
            (b'-', day),
            (divider, rest / 3600),
            (b':', rest / 60 % 60),
            (b':', rest % 60),
        ];
        for (before, part) in parts {
            push(before);
            push(digit(part / 10));
            push(digit(part));
        }
        self.length = at;
    }
}

/// The last digit of a number.
fn digit(number: i64) -> u8 {
    b'0' + u8::try_from(number % 10).unwrap_or(0)
}

/// A point and the decimals of a part, six or nine, less the zeros at its end.
fn put_fraction(out: &mut [u8], at: usize, part: i64, places: usize) -> usize {
    let part = u32::try_from(part).unwrap_or(0);
    let mut text = [b'0'; 16];
    text[0] = b'.';
    let mut end = 1;
    if places > 6 {
        end = put_three(&mut text, end, part / 1_000_000);
    }
    end = put_three(&mut text, end, part / 1000 % 1000);
    end = put_three(&mut text, end, part % 1000);
    text[end] = b'0';
    let zeros = u128::from_le_bytes(text) ^ u128::from_le_bytes([b'0'; 16]);
    out[at..at + 16].copy_from_slice(&text);
    at + 16 - zeros.leading_zeros() as usize / 8
}

/// Year, month and day of a number of days since 1970, by the Gregorian calendar. A year is counted from
/// March on, so that the leap day is its last; 400 years always have 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    const CYCLE_DAYS: i64 = 146_097;
    const MARCH_OF_YEAR_0: i64 = -719_468;
    let days = days - MARCH_OF_YEAR_0;
    let (cycle, day) = (days.div_euclid(CYCLE_DAYS), days.rem_euclid(CYCLE_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (cycle * 400 + year + later, month, day)
}
