//! Dates by counting the days of all years before, months by their lengths.

const MONTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// Days from the first of January of year 1 to that of another.
fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    365 * past + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

fn is_leap(year: i64) -> bool {
    days_before_year(year + 1) - days_before_year(year) == 366
}

/// Seconds since 1970 of a time as text: `[-]year-month-day hour:minute:second`.
pub(crate) fn seconds(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let numbers: Vec<i64> = text
        .split(['-', ' ', 'T', ':'])
        .map(|part| part.parse().ok())
        .collect::<Option<_>>()?;
    let [year, month, day, hour, minute, second] = numbers[..] else {
        return None;
    };
    Some((days(sign * year, month, day)? * 24 + hour) * 3600 + minute * 60 + second)
}

fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let months = usize::try_from(month - 1)
        .ok()
        .filter(|months| *months < 12)?;
    let length = |index: usize| MONTHS[index] + i64::from(index == 1 && is_leap(year));
    if !(1..=length(months)).contains(&day) {
        return None;
    }
    let before: i64 = (0..months).map(length).sum();
    Some(days_before_year(year) - days_before_year(1970) + before + day - 1)
}
