//! Times: PostgreSQL's number, and text.

use crate::number::put_three;

/// Microseconds from 1970 to 2000, PostgreSQL's first moment.
const EPOCH_US: i64 = 946_684_800_000_000;
const DAY_S: i64 = 86_400;
/// Days from 1970 to 2000.
const EPOCH_DAYS: i32 = 10_957;

/// Microseconds since 1970 as PostgreSQL counts them, since 2000.
///
/// Its two infinities are never the result: what is out of range stays out of range.
#[inline]
pub(super) fn to_postgres(micros: i64) -> i64 {
    micros.saturating_sub(EPOCH_US).max(i64::MIN + 1)
}

/// Days since 1970 as PostgreSQL counts them, since 2000; its two infinities are never the result.
#[inline]
pub(super) fn days_to_postgres(days: i32) -> i32 {
    days.saturating_sub(EPOCH_DAYS).max(i32::MIN + 1)
}

/// How a time is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// `2016-01-01 00:00:00.5+00`, at most six decimals (rounded down), years before 1 with `BC`.
    Postgres,
    /// The same without a zone, as MySQL reads it; years before 1 as negative numbers from 0 on.
    Local,
    /// `2016-01-01T00:00:00.5Z`, every decimal there is, years before 1 as negative numbers from 0 on.
    Iso,
}

/// Writes times and dates. The last second and day are kept as text, because rows that follow each other often share
/// them.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    style: Style,
    second: i64,
    day: i64,
    /// The second, the first byte in the lowest: whole words reach the row without a detour through memory.
    text: [u64; Self::SECOND_BYTES_MAX / 8],
    /// The day, likewise.
    date: [u64; Self::DATE_BYTES_MAX / 8],
    date_length: usize,
    length: usize,
    before_christ: bool,
}

impl Clock {
    /// The longest is `-290308-12-21T19:59:06`.
    const SECOND_BYTES_MAX: usize = 24;
    /// The longest time, and what may be overwritten after it.
    pub(super) const BYTES_MAX: usize = Self::SECOND_BYTES_MAX + 16 + 8;
    /// The longest date is `5877642-06-23 BC`, longer ones than `-5877641-06-23` being written in one style only.
    pub(super) const DATE_BYTES_MAX: usize = 16;
    /// No time has this second.
    const NO_SECOND: i64 = i64::MIN;

    pub(super) fn new(style: Style) -> Self {
        let mut clock = Self {
            style,
            second: Self::NO_SECOND,
            day: 0,
            text: [0; Self::SECOND_BYTES_MAX / 8],
            date: [0; Self::DATE_BYTES_MAX / 8],
            date_length: 0,
            length: 0,
            before_christ: false,
        };
        clock.set_day(0);
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
            Style::Postgres | Style::Local => self.put(out, at, second, part / 1000, 6),
            Style::Iso => self.put(out, at, second, part, 9),
        }
    }

    /// Writes a time in microseconds since 1970, and returns where it ends.
    #[inline]
    pub(super) fn put_microseconds(&mut self, out: &mut [u8], at: usize, micros: i64) -> usize {
        let (second, part) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        self.put(out, at, second, part, 6)
    }

    /// Writes a date in days since 1970, and returns where it ends.
    #[inline]
    pub(super) fn put_days(&mut self, out: &mut [u8], at: usize, days: i32) -> usize {
        let day = i64::from(days);
        if day != self.day {
            self.set_day(day);
            self.second = Self::NO_SECOND;
        }
        put_words(out, at, self.date);
        let at = at + self.date_length;
        if self.before_christ && self.style == Style::Postgres {
            out[at..at + 3].copy_from_slice(b" BC");
            return at + 3;
        }
        at
    }

    #[inline]
    fn put(&mut self, out: &mut [u8], at: usize, second: i64, part: i64, places: usize) -> usize {
        let text = if second == self.second {
            self.text
        } else {
            self.set(second)
        };
        put_words(out, at, text);
        let mut at = at + self.length;
        if part > 0 {
            at = put_fraction(out, at, part, places);
        }
        let (zone, length) = match self.style {
            Style::Iso => (b"Z.......", 1),
            Style::Local => (b"........", 0),
            Style::Postgres if self.before_christ => (b"+00 BC..", 6),
            Style::Postgres => (b"+00.....", 3),
        };
        out[at..at + 8].copy_from_slice(zone);
        at + length
    }

    /// Lays a second out as text.
    #[inline]
    fn set(&mut self, second: i64) -> [u64; Self::SECOND_BYTES_MAX / 8] {
        self.second = second;
        let (day, rest) = (second.div_euclid(DAY_S), second.rem_euclid(DAY_S));
        if day != self.day {
            self.set_day(day);
        }
        let divider = match self.style {
            Style::Postgres | Style::Local => b' ',
            Style::Iso => b'T',
        };
        let minute = u64::from(divider)
            | pair(rest / 3600) << 8
            | u64::from(b':') << 24
            | pair(rest / 60 % 60) << 32;
        let second = u64::from(b':') | pair(rest % 60) << 8;
        self.length = self.date_length + 9;
        let [year, day] = self.date;
        self.text = if self.date_length == SHORT_DATE_BYTES {
            [year, day | minute << 16, second]
        } else {
            behind(
                self.date,
                self.date_length,
                minute | second << 48,
                second >> 16,
            )
        };
        self.text
    }

    /// Lays a day out as text.
    #[inline]
    fn set_day(&mut self, day: i64) {
        self.day = day;
        let (year, month, day) = date(day);
        self.before_christ = year < 1;
        let shown = match self.style {
            Style::Postgres if self.before_christ => 1 - year,
            _ => year,
        };
        let dash = u64::from(b'-');
        let rest = dash | pair(month) << 8 | dash << 24 | pair(day) << 32;
        if (0..10_000).contains(&shown) {
            let year = pair(shown / 100) | pair(shown % 100) << 16;
            self.date = [year | rest << 32, pair(day)];
            self.date_length = SHORT_DATE_BYTES;
        } else {
            self.set_far_day(shown, rest);
        }
    }

    /// The same for years that have not four digits.
    #[cold]
    fn set_far_day(&mut self, year: i64, rest: u64) {
        let sign = if year < 0 { "-" } else { "" };
        let text = format!("{sign}{:04}", year.unsigned_abs());
        let mut bytes = [0; Self::DATE_BYTES_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes[text.len()..text.len() + 6].copy_from_slice(&rest.to_le_bytes()[..6]);
        let (words, _) = bytes.as_chunks::<8>();
        self.date = [0, 1].map(|word| u64::from_le_bytes(words[word]));
        self.date_length = text.len() + 6;
    }
}

/// Bytes of a date whose year has four digits.
const SHORT_DATE_BYTES: usize = 10;

/// 00 to 99, the first digit in the lower byte; what follows is never asked for, but lets an index be cut to its bits.
#[expect(clippy::cast_possible_truncation, reason = "digits")]
static PAIRS: [u16; 128] = {
    let mut table = [0; 128];
    let mut n = 0;
    while n < 100 {
        table[n] = u16::from_le_bytes([b'0' + (n / 10) as u8, b'0' + (n % 10) as u8]);
        n += 1;
    }
    table
};

/// The two digits of a number below 100, the first one in the lowest byte.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is small, and none is negative"
)]
fn pair(number: i64) -> u64 {
    PAIRS[number as usize % PAIRS.len()].into()
}

/// Writes all bytes of some words.
#[inline]
fn put_words<const N: usize>(out: &mut [u8], at: usize, words: [u64; N]) {
    let (places, _) = out[at..at + 8 * N].as_chunks_mut::<8>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

/// A date of any length, and the nine bytes of `time` and `end` behind it.
#[cold]
fn behind(date: [u64; 2], length: usize, time: u64, end: u64) -> [u64; 3] {
    let mut bytes = [0; 24];
    put_words(&mut bytes, 0, date);
    bytes[length..length + 8].copy_from_slice(&time.to_le_bytes());
    bytes[length + 8..length + 9].copy_from_slice(&end.to_le_bytes()[..1]);
    let (words, _) = bytes.as_chunks::<8>();
    [0, 1, 2].map(|word| u64::from_le_bytes(words[word]))
}

/// Appends a date, days since 1970, as PostgreSQL writes it in its style ISO.
pub(crate) fn put_date(days: i32, out: &mut Vec<u8>) {
    let mut text = [0; Clock::BYTES_MAX];
    let end = Clock::new(Style::Postgres).put_days(&mut text, 0, days);
    out.extend_from_slice(&text[..end]);
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

/// Year, month and day of a number of days since 1970, by the Gregorian calendar.
fn date(days: i64) -> (i64, i64, i64) {
    match u32::try_from(days - MARCH_OF_YEAR_0) {
        Ok(days) if days < NEAR_DAYS => near_date(days),
        _ => far_date(days),
    }
}

/// The first of March of year 0.
const MARCH_OF_YEAR_0: i64 = -719_468;
const CYCLE_DAYS: i64 = 146_097;
/// About 2 million years, which products of 32 bits can count.
const NEAR_DAYS: u32 = 1 << 29;

/// The same for days since [`MARCH_OF_YEAR_0`], with multiplications in place of divisions (C. Neri and L. Schneider,
/// Euclidean affine functions and their application to calendar algorithms, 2023).
fn near_date(days: u32) -> (i64, i64, i64) {
    const CYCLE: u32 = 146_097;
    let quarters = 4 * days + 3;
    let (century, rest) = (quarters / CYCLE, quarters % CYCLE / 4);
    let product = 2_939_745 * u64::from(4 * rest + 3);
    let [year, part] = [product >> 32, product & 0xffff_ffff];
    let day_of_year = part / 2_939_745 / 4;
    let month = 2141 * day_of_year + 197_913;
    let day = (month & 0xffff) / 2141 + 1;
    // A year is counted from March on, so that the leap day is its last.
    let later = day_of_year >= 306;
    let month = (month >> 16) - if later { 12 } else { 0 };
    let year = u64::from(100 * century) + year + u64::from(later);
    [year, month, day].map(u64::cast_signed).into()
}

/// The same for any days; 400 years always have 146,097.
fn far_date(days: i64) -> (i64, i64, i64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_a_date_agree() {
        let near = i64::from(NEAR_DAYS);
        let every = (0..400_000)
            .chain((0..near).step_by(99_991))
            .chain([near - 1]);
        for days in every {
            let small = u32::try_from(days).unwrap();
            assert_eq!(near_date(small), far_date(days + MARCH_OF_YEAR_0), "{days}");
        }
    }
}
