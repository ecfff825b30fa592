//! Numbers as Go's `strconv` writes them, into a slice at a position.
//!
//! Every function returns the position after what it wrote and may write up to [`SLACK`] bytes beyond
//! it, which the next value covers: stores of a fixed size are what makes them fast.

/// Bytes beyond a number's end that may be overwritten.
pub(super) const SLACK: usize = 8;
/// The longest integer with its comma, and the slack.
pub(super) const INTEGER_BYTES_MAX: usize = 21 + SLACK;
/// The longest float of our ranges (17 digits, up to 24 leading zeros) with its comma, and the slack.
pub(super) const FLOAT_BYTES_MAX: usize = 48 + SLACK;

const TEN_4: u64 = 10_000;
const TEN_8: u64 = 100_000_000;
const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;

/// For 0 to 999: a comma, the digits, and in the highest byte the length of both.
static SMALL: [u64; 1000] = {
    let mut table = [0; 1000];
    let mut n = 0;
    while n < 1000 {
        let (mut text, mut rest, mut length) = (0_u64, n as u64, 1_u64);
        while rest > 0 || length == 1 {
            text = (text << 8) | (rest % 10 + 0x30);
            rest /= 10;
            length += 1;
        }
        table[n] = (text << 8) | b',' as u64 | (length << 56);
        n += 1;
    }
    table
};

#[inline]
fn store(out: &mut [u8], at: usize, word: u64) {
    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// The eight decimal digits of `n` < 10^8 as bytes 0 to 9, the first in the lowest byte.
#[inline]
fn eight_digits(n: u64) -> u64 {
    let fours = (n / TEN_4) | ((n % TEN_4) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - 10 * tens) << 8)
}

/// A comma and an integer.
#[inline]
pub(super) fn put_integer(out: &mut [u8], at: usize, value: i64) -> usize {
    let magnitude = value.unsigned_abs();
    if value < 0 {
        out[at] = b',';
        out[at + 1] = b'-';
        return put_large(out, at + 2, magnitude);
    }
    if let Some(&word) = SMALL.get(usize::try_from(magnitude).unwrap_or(usize::MAX)) {
        store(out, at, word);
        return at + (word >> 56) as usize;
    }
    out[at] = b',';
    put_large(out, at + 1, magnitude)
}

/// An integer without a comma.
pub(super) fn put_bare_integer(out: &mut [u8], at: usize, value: i64) -> usize {
    if value < 0 {
        out[at] = b'-';
    }
    put_large(out, at + usize::from(value < 0), value.unsigned_abs())
}

/// Digits of a number of any size.
#[inline]
fn put_large(out: &mut [u8], at: usize, value: u64) -> usize {
    if value < TEN_8 {
        return put_leading(out, at, value);
    }
    let (high, low) = (value / TEN_8, value % TEN_8);
    let at = if high < TEN_8 {
        put_leading(out, at, high)
    } else {
        let at = put_leading(out, at, high / TEN_8);
        store(out, at, eight_digits(high % TEN_8) | ASCII_ZEROS);
        at + 8
    };
    store(out, at, eight_digits(low) | ASCII_ZEROS);
    at + 8
}

/// Digits of a number below 10^8 without leading zeros; 0 is `0`.
#[inline]
fn put_leading(out: &mut [u8], at: usize, value: u64) -> usize {
    let digits = eight_digits(value);
    let zeros = ((digits | (1 << 56)).trailing_zeros() / 8) as usize;
    store(out, at, (digits | ASCII_ZEROS) >> (8 * zeros));
    at + 8 - zeros
}

/// A comma and `scaled` / 10^5, as the shortest decimal: at most five places, no trailing zeros.
#[inline]
pub(super) fn put_hundred_thousandths(out: &mut [u8], at: usize, scaled: i32) -> usize {
    put_fixed(out, at, scaled, 100_000, 3)
}

/// A comma and `scaled` / 10, as the shortest decimal.
#[inline]
pub(super) fn put_tenths(out: &mut [u8], at: usize, scaled: i32) -> usize {
    put_fixed(out, at, scaled, 10, 7)
}

/// A comma and `scaled` / `unit`, where `unit` is 10^(8 - `skip`).
#[inline]
fn put_fixed(out: &mut [u8], at: usize, scaled: i32, unit: u32, skip: usize) -> usize {
    let magnitude = scaled.unsigned_abs();
    let (whole, fraction) = (magnitude / unit, u64::from(magnitude % unit));
    let mut at = at;
    if scaled < 0 {
        out[at + 1] = b'-';
    }
    out[at] = b',';
    at += 1 + usize::from(scaled < 0);
    at = put_leading(out, at, u64::from(whole));
    if fraction == 0 {
        return at;
    }
    let digits = eight_digits(fraction);
    let length = 8 - skip - (digits.leading_zeros() / 8) as usize;
    out[at] = b'.';
    store(out, at + 1, (digits | ASCII_ZEROS) >> (8 * skip));
    at + 1 + length
}

/// A comma and a non-negative double as Go's format `'f'` with precision -1: the shortest digits that
/// read back to the same value, never an exponent.
pub(super) fn put_float(out: &mut [u8], at: usize, value: f64, ryu: &mut ryu::Buffer) -> usize {
    out[at] = b',';
    let text = ryu.format_finite(value).as_bytes();
    let at = at + 1;
    if let Some(mark) = text.iter().position(|&b| b == b'e') {
        return put_without_exponent(out, at, text, mark);
    }
    let text = text.strip_suffix(b".0").unwrap_or(text);
    out[at..at + text.len()].copy_from_slice(text);
    at + text.len()
}

/// Lays `d.ddde-n` or `d.ddden` out as plain decimals.
#[cold]
fn put_without_exponent(out: &mut [u8], at: usize, text: &[u8], mark: usize) -> usize {
    let exponent: i32 = std::str::from_utf8(&text[mark + 1..])
        .ok()
        .and_then(|e| e.parse().ok())
        .unwrap_or(0);
    let digits = text[..mark].iter().copied().filter(u8::is_ascii_digit);
    let mut end = at;
    let mut push = |byte: u8| {
        out[end] = byte;
        end += 1;
    };
    if exponent < 0 {
        push(b'0');
        push(b'.');
        (1..-exponent).for_each(|_| push(b'0'));
        digits.for_each(push);
    } else {
        let count = text[..mark].iter().filter(|b| b.is_ascii_digit()).count();
        digits.for_each(&mut push);
        let places = usize::try_from(exponent).unwrap_or(0) + 1;
        (count..places).for_each(|_| push(b'0'));
    }
    end
}

#[cfg(test)]
mod tests {
    #![expect(clippy::cast_precision_loss, reason = "the values are below 2^53")]

    use super::*;
    use proptest::prelude::*;

    fn written(put: impl FnOnce(&mut [u8]) -> usize) -> String {
        let mut out = [0; 96];
        let end = put(&mut out);
        String::from_utf8_lossy(&out[..end]).into_owned()
    }

    proptest! {
        #[test]
        fn integers_of_every_size_are_written_in_decimal(value: i64, shift in 0..64_u32) {
            let value = value >> shift;
            prop_assert_eq!(written(|out| put_integer(out, 0, value)), format!(",{value}"));
        }

        #[test]
        fn scaled_integers_are_written_as_the_shortest_decimal(scaled in -20_000_000..20_000_000_i32) {
            let fine = f64::from(scaled) / 100_000.0;
            let text = written(|out| put_hundred_thousandths(out, 0, scaled));
            prop_assert_eq!(text, format!(",{fine}"));
            let coarse = f64::from(scaled) / 10.0;
            prop_assert_eq!(written(|out| put_tenths(out, 0, scaled)), format!(",{coarse}"));
        }

        #[test]
        fn floats_read_back_to_the_same_value(part in 0..1_u64 << 34, shift in 0..3_u32) {
            let value = 100.0 * (part as f64 / (1_u64 << (34 - shift)) as f64);
            let text = written(|out| put_float(out, 0, value, &mut ryu::Buffer::new()));
            prop_assert!(!text.contains('e'));
            prop_assert_eq!(text[1..].parse::<f64>(), Ok(value));
        }
    }

    #[test]
    fn small_large_and_tied_floats_are_written_as_go_writes_them() {
        // Expected: Go's strconv.FormatFloat(value, 'f', -1, 64). Rust's own formatting rounds the
        // first one, an exact tie, upwards.
        for (value, expected) in [
            (22.766_494_750_976_562_5, ",22.766494750976562"),
            (0.0, ",0"),
            (100.0, ",100"),
            (100.0 / 8_589_934_592.0, ",0.000000011641532182693481"),
            (1e-5, ",0.00001"),
            (1.5e17, ",150000000000000000"),
        ] {
            let text = written(|out| put_float(out, 0, value, &mut ryu::Buffer::new()));
            assert_eq!(text, expected);
        }
    }
}
