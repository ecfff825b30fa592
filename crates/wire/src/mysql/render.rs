//! Values in binary form as the server would write them in text form.

use std::io::Write as _;

use super::column::Definition;
use super::reader::{Reader, lenenc_bytes};
use super::row::Values;

const SECOND_US: usize = 6;

/// A row in text form; it ends early where the row is damaged.
pub(super) fn text_row(payload: &[u8], definitions: &[Definition]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * payload.len());
    let mut text = Vec::new();
    for (value, definition) in Values::binary(payload, definitions).zip(definitions) {
        let Some(value) = value else {
            out.push(0xFB);
            continue;
        };
        text.clear();
        if put(value, *definition, &mut text).is_none() {
            break;
        }
        lenenc_bytes(&text, &mut out);
    }
    out
}

fn put(value: &[u8], definition: Definition, out: &mut Vec<u8>) -> Option<()> {
    let signed = !definition.is_unsigned;
    // Writing to memory cannot fail.
    match (definition.kind, value.len()) {
        (5, 8) => write!(out, "{}", f64::from_le_bytes(value.try_into().ok()?)).ok(),
        (4, 4) => write!(out, "{}", f32::from_le_bytes(value.try_into().ok()?)).ok(),
        (1 | 2 | 3 | 8 | 9 | 13, 1 | 2 | 4 | 8) if signed && definition.kind != 13 => {
            write!(out, "{}", signed_int(value)?).ok()
        }
        (1 | 2 | 3 | 8 | 9 | 13, 1 | 2 | 4 | 8) => write!(out, "{}", unsigned_int(value)?).ok(),
        (7 | 10 | 12 | 14 | 17 | 18, _) => put_date(value, definition, out),
        (11 | 19, _) => put_time(value, definition, out),
        _ => {
            out.extend_from_slice(value);
            Some(())
        }
    }
}

fn signed_int(value: &[u8]) -> Option<i64> {
    Some(match *value {
        [a] => i8::from_le_bytes([a]).into(),
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        _ => i64::from_le_bytes(value.try_into().ok()?),
    })
}

fn unsigned_int(value: &[u8]) -> Option<u64> {
    let mut all = [0; 8];
    all.get_mut(..value.len())?.copy_from_slice(value);
    Some(u64::from_le_bytes(all))
}

/// Year, month, day; hour, minute, second; microseconds: parts that are zero at the end are left out.
fn put_date(value: &[u8], definition: Definition, out: &mut Vec<u8>) -> Option<()> {
    let mut all = [0; 11];
    all.get_mut(..value.len())?.copy_from_slice(value);
    let mut reader = Reader(&all);
    let (year, month, day) = (reader.u16()?, reader.u8()?, reader.u8()?);
    write!(out, "{year:04}-{month:02}-{day:02}").ok()?;
    if matches!(definition.kind, 10 | 14) {
        return Some(());
    }
    let (hour, minute, second) = (reader.u8()?, reader.u8()?, reader.u8()?);
    write!(out, " {hour:02}:{minute:02}:{second:02}").ok()?;
    put_fraction(reader.u32()?, definition, out)
}

/// Sign, days, hour, minute, second; microseconds.
fn put_time(value: &[u8], definition: Definition, out: &mut Vec<u8>) -> Option<()> {
    let mut all = [0; 12];
    all.get_mut(..value.len())?.copy_from_slice(value);
    let mut reader = Reader(&all);
    let (negative, days) = (reader.u8()?, reader.u32()?);
    let (hour, minute, second) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let sign = if negative == 0 { "" } else { "-" };
    let hours = u64::from(days) * 24 + u64::from(hour);
    write!(out, "{sign}{hours:02}:{minute:02}:{second:02}").ok()?;
    put_fraction(reader.u32()?, definition, out)
}

fn put_fraction(us: u32, definition: Definition, out: &mut Vec<u8>) -> Option<()> {
    let digits = usize::from(definition.decimals).min(SECOND_US);
    if digits == 0 {
        return Some(());
    }
    let from = out.len();
    write!(out, ".{us:06}").ok()?;
    out.truncate(from + 1 + digits);
    Some(())
}
