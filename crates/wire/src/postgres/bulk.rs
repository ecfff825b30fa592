//! Messages that carry rows, appended to plain memory, so that another thread than the connection's can make
//! them beforehand; [`super::Frontend::encoded`] takes the result.

use super::WireError;

/// A simple query.
pub fn query(sql: &str, out: &mut Vec<u8>) -> Result<(), WireError> {
    message(b'Q', out, |out| text(sql, out))
}

/// A piece of COPY data, which `fill` appends.
pub fn copy_data<E: From<WireError>>(
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    message(b'd', out, fill)
}

/// The end of COPY data.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// Parses a statement under `name` (empty: the unnamed one); the server infers all types.
pub fn parse(name: &str, sql: &str, out: &mut Vec<u8>) -> Result<(), WireError> {
    message(b'P', out, |out| {
        text(name, out)?;
        text(sql, out)?;
        out.extend_from_slice(&[0, 0]);
        Ok(())
    })
}

/// Binds a statement to the unnamed portal. `fill` appends the `parameters` values in binary format, each after
/// its length; results come as text.
pub fn bind_binary<E: From<WireError>>(
    name: &str,
    parameters: u16,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    message(b'B', out, |out| {
        // The unnamed portal, the statement, one format for all parameters: binary.
        out.push(0);
        text(name, out)?;
        out.extend_from_slice(&[0, 1, 0, 1]);
        out.extend_from_slice(&parameters.to_be_bytes());
        fill(out)?;
        out.extend_from_slice(&[0, 0]);
        Ok(())
    })
}

/// Runs the unnamed portal to its end.
pub fn execute(out: &mut Vec<u8>) {
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
}

/// Asks the server to send what it has, without ending the pipeline.
pub fn flush(out: &mut Vec<u8>) {
    out.extend_from_slice(b"H\0\0\0\x04");
}

/// Ends a pipeline.
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

/// A message whose body `fill` appends; nothing is left of it after an error.
fn message<E: From<WireError>>(
    tag: u8,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let begin = out.len();
    out.push(tag);
    out.extend_from_slice(&[0; 4]);
    let filled = fill(out).and_then(|()| {
        i32::try_from(out.len() - begin - 1).map_err(|_| {
            let reason = "the message is longer than 2 GiB".to_owned();
            E::from(WireError::Unencodable {
                what: "a message of rows",
                reason,
            })
        })
    });
    match filled {
        Ok(length) => {
            out[begin + 1..begin + 5].copy_from_slice(&length.to_be_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(begin);
            Err(error)
        }
    }
}

fn text(text: &str, out: &mut Vec<u8>) -> Result<(), WireError> {
    if text.as_bytes().contains(&0) {
        return Err(WireError::Unencodable {
            what: "a statement",
            reason: "a text contains a NUL byte, which PostgreSQL cannot store".to_owned(),
        });
    }
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_what_the_protocol_says() {
        let mut out = Vec::new();
        query("BEGIN", &mut out).unwrap();
        copy_data::<WireError>(&mut out, |out| {
            out.extend_from_slice(b"1\n");
            Ok(())
        })
        .unwrap();
        copy_done(&mut out);
        assert_eq!(out, b"Q\0\0\0\x0aBEGIN\0d\0\0\0\x061\nc\0\0\0\x04");
        out.clear();
        bind_binary::<WireError>("s", 1, &mut out, |out| {
            out.extend_from_slice(&[0, 0, 0, 1, b'x']);
            Ok(())
        })
        .unwrap();
        let expected = b"B\0\0\0\x14\0s\0\0\x01\0\x01\0\x01\0\0\0\x01x\0\0";
        assert_eq!(out, expected);
    }

    #[test]
    fn what_cannot_be_said_leaves_nothing_behind() {
        let mut out = b"before".to_vec();
        assert!(query("a\0b", &mut out).is_err());
        assert!(parse("n", "a\0b", &mut out).is_err());
        assert_eq!(out, b"before");
    }
}
