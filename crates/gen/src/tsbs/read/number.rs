//! Numbers in a line that ends in a line feed, eight digits at a time.
//!
//! Finding and converting digits in a 64-bit word: <https://lemire.me/blog/2022/01/21/swar-explained-parsing-eight-digits/>.

const ONES: u64 = 0x0101_0101_0101_0101;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];
const WHOLE_POWERS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];
/// So many digits always fit into 64 bits.
const DIGITS_MAX: usize = 19;
/// Whole numbers up to here are exact doubles.
const EXACT: u64 = 1 << 53;

/// Eight bytes, the first one lowest.
#[inline]
fn word(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes.get(at..).and_then(<[u8]>::first_chunk);
    eight.map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// How many digits the word begins with.
#[inline]
fn count_digits(word: u64) -> usize {
    let from_zero = word ^ (ONES * 0x30); // digits become 0 to 9, everything else more
    let others = (((from_zero & (ONES * 0x7f)) + ONES * 0x76) | from_zero) & (ONES * 0x80);
    others.trailing_zeros() as usize / 8
}

/// The number that eight digits make; bytes of zero count as the digit 0.
#[inline]
fn eight_digits(word: u64) -> u64 {
    let ones = word & (ONES * 0x0f);
    let pairs = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// Appends the digits that begin at `at` to a number; returns it and where they end. The number is right
/// if it has no more than [`DIGITS_MAX`] digits.
#[inline]
fn digits(bytes: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    loop {
        let word = word(bytes, at);
        let count = count_digits(word);
        if count < 8 {
            let last = eight_digits(word << (8 * (7 - count)) << 8);
            let number = number.wrapping_mul(WHOLE_POWERS[count]).wrapping_add(last);
            return (number, at + count);
        }
        number = number
            .wrapping_mul(100_000_000)
            .wrapping_add(eight_digits(word));
        at += 8;
    }
}

/// Whether a value may end before this byte.
#[inline]
fn ends_value(byte: u8) -> bool {
    byte == b',' || byte == b'\n'
}

/// The whole number that is the value at `at`, and where it ends.
#[inline]
pub(super) fn integer(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = *bytes.get(at)? == b'-';
    let first = at + usize::from(negative);
    let (magnitude, end) = digits(bytes, first, 0);
    if end == first || end - first > DIGITS_MAX || !ends_value(*bytes.get(end)?) {
        return None;
    }
    let value = if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    value.map(|value| (value, end))
}

/// The number that is the value at `at`, rounded to the nearest double, and where it ends.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "one byte of the word is meant, and seven digits fit"
)]
pub(super) fn double(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let word = word(bytes, at);
    let count = count_digits(word);
    if (1..8).contains(&count) && ends_value((word >> (8 * count)) as u8) {
        let number = eight_digits(word << (8 * (8 - count)));
        return Some((f64::from(number as u32), at + count));
    }
    decimal(bytes, at)
}

/// [`double`] for all but whole numbers of up to seven digits.
///
/// Dividing exact doubles rounds once, so short decimals need no more than that.
#[inline(never)]
#[expect(
    clippy::cast_precision_loss,
    reason = "the one rounding of a whole number, as it should be"
)]
fn decimal(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let negative = *bytes.get(at)? == b'-';
    let first = at + usize::from(negative);
    let (whole, end) = digits(bytes, first, 0);
    let stop = *bytes.get(end)?;
    let (magnitude, end) = if ends_value(stop) && end > first && end - first <= DIGITS_MAX {
        (whole as f64, end)
    } else if stop == b'.' && end > first {
        let point = end;
        let (scaled, end) = digits(bytes, point + 1, whole);
        let exact = end - first <= DIGITS_MAX + 1 && scaled <= EXACT;
        if !exact || !ends_value(*bytes.get(end)?) {
            return any_double(bytes, at);
        }
        (scaled as f64 / POWERS[end - point - 1], end)
    } else {
        return any_double(bytes, at);
    };
    let sign = u64::from(negative) << 63;
    Some((f64::from_bits(magnitude.to_bits() | sign), end))
}

/// [`double`] for long decimals, exponents, infinities and what is no number.
#[inline(never)]
fn any_double(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let length = bytes.get(at..)?.iter().position(|&byte| ends_value(byte))?;
    let text = &bytes[at..at + length];
    let value: f64 = fast_float2::parse(text).ok()?;
    let overflowed = value.is_infinite() && text.iter().any(u8::is_ascii_digit);
    (!overflowed).then_some((value, at + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(text: &str) -> Vec<u8> {
        format!("{text}\n\0\0\0\0\0\0\0\0").into_bytes()
    }

    fn check(text: &str) {
        let expected: f64 = text.parse().expect("a number");
        let (value, end) = double(&line(text), 0).expect(text);
        assert_eq!(
            (value.to_bits(), end),
            (expected.to_bits(), text.len()),
            "{text}"
        );
    }

    #[test]
    fn doubles_are_rounded_once() {
        for text in [
            "0",
            "-0",
            "7",
            "12345678",
            "123456789",
            "9007199254740993",
            "9999999999999999999",
            "99999999999999999999",
            "0.1",
            "-0.1",
            "5.",
            "1.7976931348623157e308",
            "4.9e-324",
            "22.7664947509765625",
            "9007199254740993.5",
            "0.0000000000000000000001",
            "00000000000000000000000001.5",
            "inf",
            "-inf",
            "1e5",
            "+3",
            ".5",
        ] {
            check(text);
        }
        let (value, end) = double(&line("NaN"), 0).expect("TSBS would write it");
        assert!(value.is_nan() && end == 3);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "1.2.3",
            "1e",
            "1e999",
            "x",
            "1x",
            "1 ",
            "12345678x",
            "0x1p3",
            "1_0",
            "--1",
            "1\r",
        ] {
            assert_eq!(double(&line(text), 0), None, "{text:?}");
        }
        for text in [
            "",
            "-",
            "1.0",
            "1e3",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551617",
        ] {
            assert_eq!(integer(&line(text), 0), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_double_is_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            check(&format!("{value}"));
            check(&format!("{value:e}"));
        }

        #[test]
        fn short_decimals_are_read_as_the_standard_library_does(scaled: i64, places in 0_usize..20) {
            let digits = format!("{:020}", scaled.unsigned_abs());
            let (whole, fraction) = digits.split_at(20 - places);
            check(&format!("{}{whole}.{fraction}0", if scaled < 0 { "-" } else { "" }));
        }

        #[test]
        fn integers_are_read_back(value: i64) {
            let text = value.to_string();
            prop_assert_eq!(integer(&line(&text), 0), Some((value, text.len())));
        }
    }
}
