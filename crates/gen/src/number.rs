//! Numbers as Go's `strconv` writes them, into a slice at a position.
//!
//! Every function returns the position after what it wrote and may write up to [`SLACK`] bytes beyond
//! it, which the next value covers: stores of a fixed size are what makes them fast.

/// Bytes beyond a number's end that may be overwritten.
pub(crate) const SLACK: usize = 8;
/// The longest integer with its comma, and the slack.
pub(crate) const INTEGER_BYTES_MAX: usize = 21 + SLACK;
/// The longest float of our ranges (17 digits, up to 24 leading zeros) with its comma, and the slack.
pub(crate) const FLOAT_BYTES_MAX: usize = 48 + SLACK;

/// For 0 to 999, from the lowest byte: a comma and the digits (four bytes), the digits with leading
/// zeros (three), and how many of the first four count.
static THREE_DIGITS: [u64; 1000] = {
    let mut table = [0; 1000];
    let mut n: u16 = 0;
    while n < 1000 {
        let (hundreds, tens, ones) = (n as u64 / 100, n as u64 / 10 % 10, n as u64 % 10);
        let padded = (hundreds + 0x30) | (tens + 0x30) << 8 | (ones + 0x30) << 16;
        let zeros = if n < 10 { 2 } else { (n < 100) as u64 };
        let short = padded >> (8 * zeros);
        table[n as usize] = b',' as u64 | short << 8 | padded << 32 | (4 - zeros) << 56;
        n += 1;
    }
    table
};

/// 0000 to 9999, the first digit in the lowest byte.
#[expect(clippy::cast_possible_truncation, reason = "digits")]
static FOUR_DIGITS: [u32; 10_000] = {
    let mut table = [0; 10_000];
    let mut n = 0;
    while n < 10_000 {
        let digits = [n / 1000, n / 100 % 10, n / 10 % 10, n % 10];
        table[n] = u32::from_le_bytes([
            b'0' + digits[0] as u8,
            b'0' + digits[1] as u8,
            b'0' + digits[2] as u8,
            b'0' + digits[3] as u8,
        ]);
        n += 1;
    }
    table
};
const ZEROS: u32 = u32::from_le_bytes(*b"0000");

/// For 0 to 9999, from the lowest byte: the digits without leading zeros (four bytes), and in the highest how many there
/// are, and one.
static SHORT_DIGITS: [u64; 10_000] = {
    let mut table = [0; 10_000];
    let mut n = 0;
    while n < 10_000 {
        let zeros = (n < 10) as u32 + (n < 100) as u32 + (n < 1000) as u32;
        table[n] = (FOUR_DIGITS[n] >> (8 * zeros)) as u64 | (5 - zeros as u64) << 56;
        n += 1;
    }
    table
};

/// A field of at most seven bytes, its separator among them, and in the highest byte how many: written by one store.
#[derive(Clone, Copy)]
pub(crate) struct Short(u64);

impl Short {
    const LENGTH: u64 = 0xff << 56;

    /// A separator and a text of at most six bytes.
    pub(crate) fn text(separator: u8, text: &[u8]) -> Self {
        let bytes = text.iter().rev().chain([&separator]);
        let word = bytes.fold(0, |word, byte| word << 8 | u64::from(*byte));
        Self(word | (text.len() as u64 + 1) << 56)
    }

    /// A separator and a number of at most four digits.
    #[inline]
    pub(crate) fn number(separator: u8, value: i16) -> Option<Self> {
        let digits = *SHORT_DIGITS.get(usize::from(value.unsigned_abs()))?;
        let sign = u64::from(value < 0);
        let start = u64::from(separator) | (sign * u64::from(b'-')) << 8;
        let text = (digits & !Self::LENGTH) << (8 + 8 * sign);
        let length = (digits & Self::LENGTH) + (sign << 56);
        Some(Self(start | text | length))
    }

    /// This one if `given` is 1, the other if it is 0: rows are null at random, so there must be no branch.
    #[inline]
    pub(crate) fn or(self, other: Self, given: u64) -> Self {
        let mask = given.wrapping_neg();
        Self(self.0 & mask | other.0 & !mask)
    }

    #[inline]
    pub(crate) fn put(self, out: &mut [u8], at: usize) -> usize {
        out[at..at + 8].copy_from_slice(&self.0.to_le_bytes());
        at + (self.0 >> 56) as usize
    }
}

/// A comma and `scaled` / 10^4 below 1000, as the shortest decimal.
#[inline]
pub(crate) fn put_ten_thousandths(out: &mut [u8], at: usize, scaled: i32) -> usize {
    let magnitude = scaled.unsigned_abs();
    let (whole, fraction) = (magnitude / 10_000, magnitude % 10_000);
    let at = put_signed(out, at, scaled < 0, |out, at| put_first(out, at, whole));
    let digits = FOUR_DIGITS[fraction as usize];
    out[at] = b'.';
    out[at + 1..at + 5].copy_from_slice(&digits.to_le_bytes());
    let zeros = (digits ^ ZEROS).leading_zeros() as usize / 8;
    if fraction == 0 { at } else { at + 5 - zeros }
}

/// A comma and a number below 1000.
#[inline]
fn put_first(out: &mut [u8], at: usize, value: u32) -> usize {
    let word = THREE_DIGITS[value as usize];
    out[at..at + 8].copy_from_slice(&word.to_le_bytes());
    at + (word >> 56) as usize
}

/// Three digits of a number below 1000, leading zeros included.
#[inline]
pub(crate) fn put_three(out: &mut [u8], at: usize, value: u32) -> usize {
    let [_, _, _, _, digits @ ..] = THREE_DIGITS[value as usize].to_le_bytes();
    out[at..at + 4].copy_from_slice(&digits);
    at + 3
}

/// A comma and a number.
#[inline]
fn put_unsigned(out: &mut [u8], at: usize, value: u64) -> usize {
    match u32::try_from(value) {
        Ok(value) if value < 1000 => put_first(out, at, value),
        Ok(value) if value < 1_000_000 => put_thousands(out, at, value),
        _ => put_large(out, at, value),
    }
}

/// [`put_unsigned`] for numbers of four to six digits.
#[inline(never)]
fn put_thousands(out: &mut [u8], at: usize, value: u32) -> usize {
    let at = put_first(out, at, value / 1000);
    put_three(out, at, value % 1000)
}

/// [`put_unsigned`] for numbers of seven digits and more.
#[inline(never)]
fn put_large(out: &mut [u8], at: usize, value: u64) -> usize {
    const BILLION: u64 = 1_000_000_000;
    let low = u32::try_from(value % BILLION).unwrap_or(0);
    let (high, middle) = (low / 1_000_000, low / 1000 % 1000);
    let at = match value / BILLION {
        0 => put_first(out, at, high),
        billions => {
            let at = put_unsigned(out, at, billions);
            put_three(out, at, high)
        }
    };
    let at = put_three(out, at, middle);
    put_three(out, at, low % 1000)
}

/// Makes room for a sign after the comma: `put` writes a comma and the magnitude.
#[inline]
fn put_signed(
    out: &mut [u8],
    at: usize,
    negative: bool,
    put: impl FnOnce(&mut [u8], usize) -> usize,
) -> usize {
    let end = put(out, at + usize::from(negative));
    if negative {
        out[at..at + 2].copy_from_slice(b",-");
    }
    end
}

/// A comma and an integer.
#[inline]
pub(crate) fn put_integer(out: &mut [u8], at: usize, value: i64) -> usize {
    put_signed(out, at, value < 0, |out, at| {
        put_unsigned(out, at, value.unsigned_abs())
    })
}

/// A comma and `scaled` / 10^5, as the shortest decimal: at most five places, no trailing zeros.
#[inline]
pub(crate) fn put_hundred_thousandths(out: &mut [u8], at: usize, scaled: i32) -> usize {
    let magnitude = scaled.unsigned_abs();
    let (whole, fraction) = (magnitude / 100_000, magnitude % 100_000);
    let at = put_signed(out, at, scaled < 0, |out, at| {
        put_unsigned(out, at, whole.into())
    });
    if fraction == 0 {
        return at;
    }
    out[at] = b'.';
    let last = put_three(out, at + 1, fraction / 100);
    put_three(out, last, fraction % 100 * 10);
    let mut end = last + 2;
    while out[end - 1] == b'0' {
        end -= 1;
    }
    end
}

/// A comma and `scaled` / 10, as the shortest decimal.
#[inline]
pub(crate) fn put_tenths(out: &mut [u8], at: usize, scaled: i32) -> usize {
    let magnitude = scaled.unsigned_abs();
    let (whole, fraction) = (magnitude / 10, magnitude % 10);
    let at = put_signed(out, at, scaled < 0, |out, at| {
        put_unsigned(out, at, whole.into())
    });
    let [_, digit, ..] = THREE_DIGITS[fraction as usize].to_le_bytes();
    out[at..at + 2].copy_from_slice(&[b'.', digit]);
    if fraction == 0 { at } else { at + 2 }
}

/// A comma and a non-negative double as Go's format `'f'` with precision -1: the shortest digits that
/// read back to the same value, never an exponent.
pub(crate) fn put_float(out: &mut [u8], at: usize, value: f64, ryu: &mut ryu::Buffer) -> usize {
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
        fn small_numbers_are_written_in_decimal(value in prop_oneof![any::<i16>(), -1200..1200_i16], scaled in -9_999_999..10_000_000_i32) {
            let short = Short::number(b',', value);
            prop_assert_eq!(short.is_some(), value.unsigned_abs() < 10_000);
            if let Some(short) = short {
                let null = Short::text(b';', b"null");
                prop_assert_eq!(written(|out| short.or(null, 1).put(out, 0)), format!(",{value}"));
                prop_assert_eq!(written(|out| short.or(null, 0).put(out, 0)), ";null");
            }
            let fine = f64::from(scaled) / 10_000.0;
            let text = written(|out| put_ten_thousandths(out, 0, scaled));
            prop_assert_eq!(text, format!(",{fine}"));
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
            (f64::from(11_936_200) / 524_288.0, ",22.766494750976562"),
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
