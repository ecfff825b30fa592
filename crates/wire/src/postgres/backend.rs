//! Messages from the server, decoded in place: nothing is copied and no payload is looked at
//! before somebody asks for it.

use super::{ServerError, WireError};

/// Longest message we take, in bytes: the longest value that PostgreSQL itself can make.
const MESSAGE_BYTES_MAX: u32 = 1 << 30;

/// Type byte and length.
pub(crate) const HEADER_BYTES: usize = 5;

/// One message of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Answer to Parse.
    ParseComplete,
    /// Answer to Bind.
    BindComplete,
    /// Answer to Close.
    CloseComplete,
    /// Answer to Describe: no rows will come.
    NoData,
    /// Answer to Describe of a statement.
    ParameterDescription,
    /// The columns of the rows that follow.
    RowDescription(RowDescription<'a>),
    /// One row.
    DataRow(DataRow<'a>),
    /// A statement is done; its tag, such as `INSERT 0 1`.
    CommandComplete(&'a [u8]),
    /// An empty statement is done.
    EmptyQuery,
    /// Execute reached its row limit.
    PortalSuspended,
    /// The server waits for the next query.
    ReadyForQuery(TransactionStatus),
    /// A statement failed, or (`FATAL`) the connection did.
    Error(ServerError<'a>),
    /// A warning or a notice.
    Notice(ServerError<'a>),
    /// The server waits for COPY data.
    CopyIn,
    /// The server will send COPY data.
    CopyOut,
    /// COPY data.
    CopyData(&'a [u8]),
    /// End of COPY data.
    CopyDone,
    /// A NOTIFY arrived.
    Notification,
    /// A run-time parameter, now or newly set; the session remembers it.
    ParameterStatus,
}

/// Where the server's transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionStatus {
    /// In no transaction.
    Idle,
    /// In a transaction.
    InTransaction,
    /// In a failed transaction: only ROLLBACK helps.
    Failed,
}

/// A whole message, not yet understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raw<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
}

impl Raw<'_> {
    /// Bytes on the wire.
    pub(crate) fn size_bytes(&self) -> usize {
        HEADER_BYTES + self.body.len()
    }
}

/// Bytes on the wire of the message that begins here; `None` while its header is incomplete.
#[expect(
    clippy::inline_always,
    reason = "a result passed by memory costs four times the decoding"
)]
#[inline(always)]
pub(crate) fn announced_bytes(input: &[u8]) -> Result<Option<usize>, WireError> {
    let [_, a, b, c, d, ..] = *input else {
        return Ok(None);
    };
    let len = u32::from_be_bytes([a, b, c, d]);
    if len < 4 {
        return Err(WireError::Malformed {
            what: "message length",
            at: 1,
        });
    }
    if len > MESSAGE_BYTES_MAX {
        return Err(WireError::MessageTooLarge { len });
    }
    Ok(Some(1 + len as usize))
}

/// The message that begins here; `None` while it is incomplete.
#[expect(
    clippy::inline_always,
    reason = "a result passed by memory costs four times the decoding"
)]
#[inline(always)]
pub(crate) fn split(input: &[u8]) -> Result<Option<Raw<'_>>, WireError> {
    let Some(size) = announced_bytes(input)? else {
        return Ok(None);
    };
    let Some(message) = input.get(..size) else {
        return Ok(None);
    };
    Ok(Some(Raw {
        tag: message[0],
        body: &message[HEADER_BYTES..],
    }))
}

/// Decodes the message at the beginning of `input`, and how many bytes it takes.
///
/// `None` means that more bytes are needed. Messages that belong to the start-up only are
/// `UnexpectedMessage` here.
pub fn decode(input: &[u8]) -> Result<Option<(Message<'_>, usize)>, WireError> {
    let Some(raw) = split(input)? else {
        return Ok(None);
    };
    Ok(Some((understand(raw)?, raw.size_bytes())))
}

#[expect(
    clippy::inline_always,
    reason = "a result passed by memory costs four times the decoding"
)]
#[inline(always)]
pub(crate) fn understand(raw: Raw<'_>) -> Result<Message<'_>, WireError> {
    let body = raw.body;
    Ok(match raw.tag {
        b'1' => Message::ParseComplete,
        b'2' => Message::BindComplete,
        b'3' => Message::CloseComplete,
        b'A' => Message::Notification,
        b'C' => Message::CommandComplete(text("CommandComplete", body)?),
        b'D' => Message::DataRow(DataRow {
            counted: Counted::new("DataRow", body)?,
        }),
        b'E' => Message::Error(error(body)?),
        b'G' => Message::CopyIn,
        b'H' => Message::CopyOut,
        b'I' => Message::EmptyQuery,
        b'N' => Message::Notice(ServerError::new(body)),
        b'S' => Message::ParameterStatus,
        b'T' => Message::RowDescription(RowDescription {
            counted: Counted::new("RowDescription", body)?,
        }),
        b'Z' => Message::ReadyForQuery(transaction_status(body)?),
        b'c' => Message::CopyDone,
        b'd' => Message::CopyData(body),
        b'n' => Message::NoData,
        b's' => Message::PortalSuspended,
        b't' => Message::ParameterDescription,
        tag => {
            return Err(WireError::UnexpectedMessage {
                tag,
                state: "during a query",
            });
        }
    })
}

fn transaction_status(body: &[u8]) -> Result<TransactionStatus, WireError> {
    match body {
        b"I" => Ok(TransactionStatus::Idle),
        b"T" => Ok(TransactionStatus::InTransaction),
        b"E" => Ok(TransactionStatus::Failed),
        _ => Err(WireError::Malformed {
            what: "ReadyForQuery",
            at: HEADER_BYTES,
        }),
    }
}

fn text<'a>(what: &'static str, body: &'a [u8]) -> Result<&'a [u8], WireError> {
    match body {
        [text @ .., 0] => Ok(text),
        _ => Err(WireError::Malformed {
            what,
            at: HEADER_BYTES + body.len(),
        }),
    }
}

/// An error of a statement. Every server gives it an SQLSTATE: without one the tag is wrong, and the message
/// may have been an acknowledgement.
fn error(body: &[u8]) -> Result<ServerError<'_>, WireError> {
    let found = ServerError::new(body);
    match found.field(b'C') {
        Some([_, _, _, _, _]) => Ok(found),
        _ => Err(WireError::Malformed {
            what: "ErrorResponse",
            at: HEADER_BYTES,
        }),
    }
}

/// Two NUL-terminated texts, as in `ParameterStatus`.
pub(crate) fn two_texts(body: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let malformed = WireError::Malformed {
        what: "ParameterStatus",
        at: HEADER_BYTES,
    };
    let mut parts = body.split(|byte| *byte == 0);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(value), Some(b""), None) => Ok((name, value)),
        _ => Err(malformed),
    }
}

/// A 16-bit count and what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted<'a> {
    count: u16,
    rest: &'a [u8],
}

impl<'a> Counted<'a> {
    #[expect(
        clippy::inline_always,
        reason = "a result passed by memory costs four times the decoding"
    )]
    #[inline(always)]
    fn new(what: &'static str, body: &'a [u8]) -> Result<Self, WireError> {
        let Some((count, rest)) = body.split_first_chunk() else {
            return Err(WireError::Malformed {
                what,
                at: HEADER_BYTES,
            });
        };
        Ok(Self {
            count: u16::from_be_bytes(*count),
            rest,
        })
    }
}

/// The columns of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowDescription<'a> {
    counted: Counted<'a>,
}

impl<'a> RowDescription<'a> {
    /// How many columns.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.counted.count)
    }

    /// Whether rows have no column at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.count == 0
    }

    /// The columns, in order.
    #[must_use]
    pub fn columns(&self) -> Columns<'a> {
        Columns { left: self.counted }
    }

    /// The columns' names, in the client encoding.
    pub fn names(&self) -> impl Iterator<Item = Result<&'a [u8], WireError>> + use<'a> {
        self.columns().map(|column| column.map(|c| c.name))
    }
}

/// One column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name, in the client encoding.
    pub name: &'a [u8],
    /// The type's number in `pg_type`.
    pub type_oid: u32,
    /// Its values come in the type's binary form, not as text.
    pub is_binary: bool,
}

/// A result's columns; ends after an error.
#[derive(Debug, Clone)]
pub struct Columns<'a> {
    left: Counted<'a>,
}

impl<'a> Iterator for Columns<'a> {
    type Item = Result<Column<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left.count = self.left.count.checked_sub(1)?;
        let column = column(self.left.rest);
        let Some((column, next)) = column else {
            self.left.count = 0;
            return Some(Err(WireError::Malformed {
                what: "RowDescription",
                at: HEADER_BYTES,
            }));
        };
        self.left.rest = next;
        Some(Ok(column))
    }
}

/// A column's description and what follows it.
fn column(input: &[u8]) -> Option<(Column<'_>, &[u8])> {
    let end = input.iter().position(|byte| *byte == 0)?;
    // table oid 4, column number 2, type oid 4, type size 2, type modifier 4, format 2
    let (fixed, rest) = input[end + 1..].split_first_chunk::<18>()?;
    let column = Column {
        name: &input[..end],
        type_oid: u32::from_be_bytes([fixed[6], fixed[7], fixed[8], fixed[9]]),
        is_binary: fixed[16..] == [0, 1],
    };
    Some((column, rest))
}

/// One row of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataRow<'a> {
    counted: Counted<'a>,
}

impl<'a> DataRow<'a> {
    /// How many values.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.counted.count)
    }

    /// Whether the row has no value at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counted.count == 0
    }

    /// The values, in the form that their column's description says; `None` is NULL.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        Values { left: self.counted }
    }
}

/// The values of a row; ends after an error.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    left: Counted<'a>,
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Option<&'a [u8]>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left.count = self.left.count.checked_sub(1)?;
        let value = value(self.left.rest);
        let Some((value, rest)) = value else {
            self.left.count = 0;
            return Some(Err(WireError::Malformed {
                what: "DataRow",
                at: HEADER_BYTES,
            }));
        };
        self.left.rest = rest;
        Some(Ok(value))
    }
}

/// A value and what follows it. A length of -1 is NULL.
#[inline]
fn value(input: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (len, rest) = input.split_first_chunk()?;
    match i32::from_be_bytes(*len) {
        -1 => Some((None, rest)),
        len => {
            let (value, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
            Some((Some(value), rest))
        }
    }
}
