//! What a session is to do, one frame after the other: in the session's queue, or made beforehand by another thread
//! for [`super::Frontend::encoded`].
//!
//! A frame is a byte that says what, four of length, and a body. It is our own form: packets need numbers and ids of
//! statements that are known only when they are sent.

use super::MysqlError;
use super::placeholders::Translated;
use super::reader::Reader;

const HEAD_BYTES: usize = 5;
/// The largest `max_allowed_packet` of a server, in bytes.
const BODY_MAX: usize = 1 << 30;

/// What a frame asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Query = 1,
    Prepare,
    Execute,
    Close,
    Sync,
    Data,
    DataEnd,
    Quit,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [
            Self::Query,
            Self::Prepare,
            Self::Execute,
            Self::Close,
            Self::Sync,
            Self::Data,
            Self::DataEnd,
            Self::Quit,
        ];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The first frame with its body, and its length; `None` while it is not whole.
pub(super) fn first(queue: &[u8]) -> Option<(Kind, &[u8], usize)> {
    let mut reader = Reader(queue);
    let kind = Kind::of(reader.u8()?)?;
    let length = usize::try_from(reader.u32()?).ok()?;
    let body = reader.take(length)?;
    Some((kind, body, HEAD_BYTES + length))
}

/// A text of SQL, run as it is.
pub fn query(sql: &[u8], out: &mut Vec<u8>) -> Result<(), MysqlError> {
    put(Kind::Query, out, |out| {
        out.extend_from_slice(sql);
        Ok(())
    })
}

/// Prepares a statement under a name.
pub(super) fn prepare(
    name: &str,
    statement: &Translated,
    out: &mut Vec<u8>,
) -> Result<(), MysqlError> {
    put(Kind::Prepare, out, |out| {
        put_name(name, out)?;
        put_u16(statement.order.len(), out)?;
        for parameter in &statement.order {
            out.extend_from_slice(&parameter.to_le_bytes());
        }
        out.extend_from_slice(&statement.sql);
        Ok(())
    })
}

/// Prepares a statement whose parameters are `$1` and so on.
pub fn prepare_text(name: &str, sql: &[u8], out: &mut Vec<u8>) -> Result<(), MysqlError> {
    let mut statement = Translated::default();
    super::placeholders::translate(sql, &mut statement);
    prepare(name, &statement, out)
}

/// Runs a prepared statement: parameters as text, `None` for NULL; rows in binary form or as text.
pub fn execute<'p>(
    name: &str,
    binary: bool,
    parameters: impl Iterator<Item = Option<&'p [u8]>>,
    out: &mut Vec<u8>,
) -> Result<(), MysqlError> {
    put(Kind::Execute, out, |out| {
        put_name(name, out)?;
        out.push(u8::from(binary));
        for parameter in parameters {
            match parameter {
                None => out.extend_from_slice(&[0xFF; 4]),
                Some(value) => {
                    put_u32(value.len(), out)?;
                    out.extend_from_slice(value);
                }
            }
        }
        Ok(())
    })
}

/// Forgets a prepared statement.
pub fn close(name: &str, out: &mut Vec<u8>) -> Result<(), MysqlError> {
    put(Kind::Close, out, |out| put_name(name, out))
}

/// Ends what one answer is for.
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(&[Kind::Sync as u8, 0, 0, 0, 0]);
}

/// A piece of the data that `LOAD DATA LOCAL` reads, which `fill` appends.
pub fn data<E: From<MysqlError>>(
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put(Kind::Data, out, fill)
}

/// The end of that data.
pub fn data_end(out: &mut Vec<u8>) {
    out.extend_from_slice(&[Kind::DataEnd as u8, 0, 0, 0, 0]);
}

pub(super) fn quit(out: &mut Vec<u8>) {
    out.extend_from_slice(&[Kind::Quit as u8, 0, 0, 0, 0]);
}

/// The name at the front of a body.
pub(super) fn name<'a>(body: &mut Reader<'a>) -> Option<&'a str> {
    let length = body.u16()?;
    std::str::from_utf8(body.take(length.into())?).ok()
}

/// The parameters of an execution: each with `None` for NULL.
#[derive(Debug, Clone)]
pub(super) struct Parameters<'a>(pub(super) Reader<'a>);

impl<'a> Iterator for Parameters<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let length = self.0.u32()?;
        if length == u32::MAX {
            return Some(None);
        }
        Some(Some(self.0.take(usize::try_from(length).ok()?)?))
    }
}

fn put_name(name: &str, out: &mut Vec<u8>) -> Result<(), MysqlError> {
    put_u16(name.len(), out)?;
    out.extend_from_slice(name.as_bytes());
    Ok(())
}

fn put_u16(number: usize, out: &mut Vec<u8>) -> Result<(), MysqlError> {
    let number =
        u16::try_from(number).map_err(|_| too_long("more than 65,535 parameters, or a name"))?;
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

fn put_u32(number: usize, out: &mut Vec<u8>) -> Result<(), MysqlError> {
    let number = u32::try_from(number).map_err(|_| too_long("a value of more than 1 GiB"))?;
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

/// A frame whose body `fill` appends; nothing is left of it after an error.
fn put<E: From<MysqlError>>(
    kind: Kind,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let begin = out.len();
    out.push(kind as u8);
    out.extend_from_slice(&[0; 4]);
    let filled = fill(out).and_then(|()| {
        let length = out.len() - begin - HEAD_BYTES;
        match u32::try_from(length) {
            Ok(short) if length <= BODY_MAX => Ok(short),
            _ => Err(too_long("a message of more than 1 GiB").into()),
        }
    });
    match filled {
        Ok(length) => {
            out[begin + 1..begin + HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(begin);
            Err(error)
        }
    }
}

fn too_long(what: &'static str) -> MysqlError {
    MysqlError::Unencodable {
        what,
        reason: "the protocol has no room for it".to_owned(),
    }
}
