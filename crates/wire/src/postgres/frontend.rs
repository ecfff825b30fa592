//! Messages to the server.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;

use super::WireError;

/// Appends messages to what a session has to send.
#[derive(Debug)]
pub struct Frontend<'a> {
    out: &'a mut BytesMut,
}

impl<'a> Frontend<'a> {
    pub(crate) fn new(out: &'a mut BytesMut) -> Self {
        Self { out }
    }

    /// Simple query. The bytes are in the connection's client encoding.
    pub fn query(&mut self, sql: &[u8]) -> Result<(), WireError> {
        let len = message_len("Query", &[sql], 4 + 1)?;
        self.out.put_u8(b'Q');
        self.out.put_i32(len);
        put_text(self.out, sql);
        Ok(())
    }

    /// Parses a statement under `name` (empty: the unnamed one); the server infers all types.
    pub fn parse(&mut self, name: &str, sql: &[u8]) -> Result<(), WireError> {
        let len = message_len("Parse", &[name.as_bytes(), sql], 4 + 1 + 1 + 2)?;
        self.out.put_u8(b'P');
        self.out.put_i32(len);
        put_text(self.out, name.as_bytes());
        put_text(self.out, sql);
        self.out.put_i16(0);
        Ok(())
    }

    /// Binds a statement to the unnamed portal: parameters as text (`None`: NULL), results as text.
    pub fn bind_text<'p>(
        &mut self,
        statement: &str,
        parameters: impl IntoIterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), WireError> {
        let before = self.out.len();
        let encode = |parameter: Option<&[u8]>, out: &mut BytesMut| {
            let Some(text) = parameter else {
                return Ok(IsNull::Yes);
            };
            out.put_slice(text);
            Ok(IsNull::No)
        };
        frontend::bind("", statement, None, parameters, encode, None, self.out).map_err(|error| {
            self.out.truncate(before);
            let reason = match error {
                frontend::BindError::Conversion(error) => error.to_string(),
                frontend::BindError::Serialization(error) => error.to_string(),
            };
            WireError::Unencodable {
                what: "Bind",
                reason,
            }
        })
    }

    /// Binds a statement without parameters to the unnamed portal: all results in binary form, or as text.
    pub fn bind_plain(&mut self, statement: &str, binary: bool) -> Result<(), WireError> {
        let len = message_len("Bind", &[b"", statement.as_bytes()], 4 + 2 + 2 + 2 + 2 + 2)?;
        self.out.put_u8(b'B');
        self.out.put_i32(len);
        put_text(self.out, b"");
        put_text(self.out, statement.as_bytes());
        // No parameter formats, no parameters, one format for all results.
        self.out.put_slice(&[0, 0, 0, 0, 0, 1, 0, u8::from(binary)]);
        Ok(())
    }

    /// Asks for the columns of the unnamed portal.
    pub fn describe_portal(&mut self) {
        self.out.put_slice(b"D\0\0\0\x06P\0");
    }

    /// Runs the unnamed portal to its end.
    pub fn execute(&mut self) {
        self.out.put_slice(b"E\0\0\0\x09\0\0\0\0\0");
    }

    /// Ends a pipeline: the server answers everything up to here and reports `ReadyForQuery`.
    pub fn sync(&mut self) {
        self.out.put_slice(b"S\0\0\0\x04");
    }

    /// Asks the server to send what it has, without ending the pipeline.
    pub fn flush(&mut self) {
        self.out.put_slice(b"H\0\0\0\x04");
    }

    /// Closes a prepared statement.
    pub fn close_statement(&mut self, name: &str) -> Result<(), WireError> {
        let len = message_len("Close", &[name.as_bytes()], 4 + 1 + 1)?;
        self.out.put_u8(b'C');
        self.out.put_i32(len);
        self.out.put_u8(b'S');
        put_text(self.out, name.as_bytes());
        Ok(())
    }

    /// Ends a COPY from the client with an error.
    pub fn copy_fail(&mut self, reason: &str) -> Result<(), WireError> {
        let len = message_len("CopyFail", &[reason.as_bytes()], 4 + 1)?;
        self.out.put_u8(b'f');
        self.out.put_i32(len);
        put_text(self.out, reason.as_bytes());
        Ok(())
    }

    /// Takes leave.
    pub fn terminate(&mut self) {
        self.out.put_slice(b"X\0\0\0\x04");
    }

    /// Appends messages that were encoded before.
    pub fn encoded(&mut self, messages: &[u8]) {
        self.out.put_slice(messages);
    }
}

/// Length field of a message of NUL-terminated `texts` and `fixed` other bytes.
fn message_len(what: &'static str, texts: &[&[u8]], fixed: usize) -> Result<i32, WireError> {
    let refuse = |reason: &str| WireError::Unencodable {
        what,
        reason: reason.to_owned(),
    };
    if texts.iter().any(|text| text.contains(&0)) {
        return Err(refuse(
            "a text contains a NUL byte, which PostgreSQL cannot store",
        ));
    }
    let len = texts
        .iter()
        .fold(fixed, |sum, text| sum.saturating_add(text.len()));
    i32::try_from(len).map_err(|_| refuse("the message is longer than 2 GiB"))
}

fn put_text(out: &mut BytesMut, text: &[u8]) {
    out.put_slice(text);
    out.put_u8(0);
}

/// The bytes that ask a server for TLS (`SSLRequest`); it answers with `S` or `N`.
#[must_use]
pub fn tls_request() -> BytesMut {
    let mut out = BytesMut::new();
    frontend::ssl_request(&mut out);
    out
}

/// The bytes of a cancel request, to be sent alone on a new connection.
///
/// `process_id` and `secret` come from [`super::Session::backend_key`].
#[must_use]
pub fn cancel_request(process_id: i32, secret: &[u8]) -> Vec<u8> {
    const CANCEL_REQUEST: u32 = 80_877_102;
    let len = u32::try_from(4 + 4 + 4 + secret.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(12 + secret.len());
    out.extend(len.to_be_bytes());
    out.extend(CANCEL_REQUEST.to_be_bytes());
    out.extend(process_id.to_be_bytes());
    out.extend(secret);
    out
}
