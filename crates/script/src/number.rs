//! Numbers as C's `printf` and `strtod` write and read them.

use std::io::Write as _;

/// Decimal digits of a double that survive a round trip: C's `DBL_DIG`, pgbench's precision.
const DIGITS: usize = 15;

/// Appends `value` as `%ld`.
pub(crate) fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends `value` as `%.15g` of the `printf` that `PostgreSQL` brings along: like C's, but with
/// `NaN` and `Infinity` written out.
pub(crate) fn write_double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let value = value.abs();
    if value.is_infinite() {
        out.extend_from_slice(b"Infinity");
    } else {
        write_finite(value, out);
    }
}

/// `%.15g` of a value that is finite and not negative: the shorter of fixed and scientific
/// notation by C's rule, without trailing zeros.
fn write_finite(value: f64, out: &mut Vec<u8>) {
    // d.dddddddddddddde±x: writing to a slice that is long enough cannot fail.
    let mut buffer = [0_u8; 32];
    let mut slot = &mut buffer[..];
    let _ = write!(slot, "{value:.*e}", DIGITS - 1);
    let free = slot.len();
    let text = &buffer[..buffer.len() - free];
    let split = text.iter().position(|&b| b == b'e').unwrap_or(text.len());
    let exponent = parse_exponent(&text[split..]);
    let mut digits = [0_u8; DIGITS];
    let mut count = 0;
    for &byte in text[..split]
        .iter()
        .filter(|b| b.is_ascii_digit())
        .take(DIGITS)
    {
        digits[count] = byte;
        count += 1;
    }
    while count > 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    place_point(&digits[..count], exponent, out);
}

fn parse_exponent(text: &[u8]) -> i32 {
    std::str::from_utf8(text)
        .ok()
        .and_then(|t| t.strip_prefix('e'))
        .map_or(0, |t| t.parse().unwrap_or(0))
}

fn place_point(digits: &[u8], exponent: i32, out: &mut Vec<u8>) {
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    if exponent < -4 || whole > DIGITS {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend(std::iter::repeat_n(
            b'0',
            exponent.unsigned_abs() as usize - 1,
        ));
        out.extend_from_slice(digits);
    } else if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.extend(std::iter::repeat_n(b'0', whole - digits.len()));
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

/// Whether C's `isspace` holds for `byte`.
pub(crate) const fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// `text` without leading white space, as `strtol` and `strtod` skip it.
pub(crate) fn skip_space(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii() && is_c_space(c as u8))
}

/// The whole of `text` as `strtod` reads it; `None` where something is left over or the value
/// overflows.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let text = skip_space(text);
    let Ok(value) = text.parse::<f64>() else {
        return parse_hex(text);
    };
    let named = text.bytes().any(|b| matches!(b, b'n' | b'N'));
    (value.is_finite() || named).then_some(value)
}

/// Hexadecimal integers, the only part of `strtod`'s hexadecimal form that anybody writes.
fn parse_hex(text: &str) -> Option<f64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let digits = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))?;
    let digits = if digits.starts_with('+') {
        return None;
    } else {
        digits
    };
    let value = u32::from_str_radix(digits, 16).ok()?;
    Some(sign * f64::from(value))
}

/// The leading integer of `text` as `atoi` reads it: 0 where there is none.
pub(crate) fn leading_int(text: &str) -> i64 {
    let text = skip_space(text);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let value = digits
        .bytes()
        .take_while(u8::is_ascii_digit)
        .fold(0_i64, |sum, b| {
            sum.saturating_mul(10).saturating_add(i64::from(b - b'0'))
        });
    if negative { -value } else { value }
}
