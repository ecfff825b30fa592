//! Values of a result, whatever the protocol: kinds of columns, forms of types, and what one value says.

use serde::{Deserialize, Serialize};

const SECOND_US: i64 = 1_000_000;
pub(crate) const DAY_US: i64 = 86_400_000_000;

/// Kinds of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Number,
    Span,
    Time,
    Text,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Span => "span",
            Self::Time => "time",
            Self::Text => "text",
        }
    }
}

/// One value as the digest sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    Number(f64),
    /// A whole number that a double may not hold to its last digit.
    Int(i64),
    /// Microseconds; infinite where the server says so.
    Span(f64),
    /// Microseconds since 1970 UTC; the extremes stand for infinity.
    Time(i64),
    Text(&'a [u8]),
}

/// What a column's values come as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Bool,
    Int2,
    Int4,
    Int8,
    Oid,
    Float4,
    Float8,
    Numeric,
    Date,
    TimeOfDay,
    Timestamp,
    Interval,
    Text,
    Jsonb,
    Bytea,
    Uuid,
    /// No type that we know. In binary form its bytes can be compared only with those of the same server family.
    Other,
}

impl Form {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Bool
            | Self::Int2
            | Self::Int4
            | Self::Int8
            | Self::Oid
            | Self::Float4
            | Self::Float8
            | Self::Numeric => Kind::Number,
            Self::TimeOfDay | Self::Interval => Kind::Span,
            Self::Date | Self::Timestamp => Kind::Time,
            Self::Text | Self::Jsonb | Self::Bytea | Self::Uuid | Self::Other => Kind::Text,
        }
    }
}

/// A number or a text as nearly every server writes it; `None` where it is no number. Moments, spans and truth are
/// written in as many ways as there are servers: `None`.
pub(crate) fn plain(form: Form, value: &[u8]) -> Option<Cell<'_>> {
    match form.kind() {
        _ if form == Form::Bool => None,
        Kind::Number => {
            let text = std::str::from_utf8(value).ok()?;
            Some(Cell::Number(text.parse().ok()?))
        }
        Kind::Text => Some(Cell::Text(value)),
        Kind::Span | Kind::Time => None,
    }
}

/// Days from 1970-01-01 of the proleptic Gregorian calendar, counted in years that begin in March.
pub(crate) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    const ERA_DAYS: i64 = 146_097; // 400 years
    const TO_1970: i64 = 719_468; // from 0000-03-01
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year - TO_1970
}

/// A moment as a person reads it; for messages.
pub(crate) fn utc(us: i64) -> String {
    match us {
        i64::MAX => return "infinity".to_owned(),
        i64::MIN => return "-infinity".to_owned(),
        _ => {}
    }
    let (days, rest_us) = (us.div_euclid(DAY_US), us.rem_euclid(DAY_US));
    let (year, month, day) = civil(days);
    let (seconds, us) = (rest_us / SECOND_US, rest_us % SECOND_US);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if us == 0 {
        String::new()
    } else {
        format!(".{us:06}")
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

/// Year, month and day; the reverse of [`days_since_1970`].
fn civil(days: i64) -> (i64, i64, i64) {
    // Early by a few years at most, within the years that a timestamp can have.
    let guess = 1969 + days.div_euclid(366).min(days.div_euclid(365));
    let year = (guess..guess + 2000)
        .find(|&y| days < days_since_1970(y + 1, 1, 1))
        .unwrap_or(guess);
    let month = (1..12)
        .find(|&m| days < days_since_1970(year, m + 1, 1))
        .unwrap_or(12);
    (year, month, days - days_since_1970(year, month, 1) + 1)
}
