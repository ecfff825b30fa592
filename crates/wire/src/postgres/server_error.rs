//! `ErrorResponse` and `NoticeResponse`.

use std::fmt;

/// An error or notice of the server, still in the bytes it came in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ServerError<'a> {
    fields: &'a [u8],
}

impl<'a> ServerError<'a> {
    pub(crate) fn new(fields: &'a [u8]) -> Self {
        Self { fields }
    }

    /// The field of this type (`b'M'`, `b'C'`, …), as the server sent it.
    #[must_use]
    pub fn field(&self, wanted: u8) -> Option<&'a [u8]> {
        let mut rest = self.fields;
        while let [kind, tail @ ..] = rest {
            if *kind == 0 {
                return None;
            }
            let end = tail.iter().position(|byte| *byte == 0)?;
            if *kind == wanted {
                return Some(&tail[..end]);
            }
            rest = &tail[end + 1..];
        }
        None
    }

    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, …: untranslated where the server says so (since 9.6).
    #[must_use]
    pub fn severity(&self) -> &'a [u8] {
        self.field(b'V')
            .or_else(|| self.field(b'S'))
            .unwrap_or(b"ERROR")
    }

    /// SQLSTATE; `XX000` (internal error) when the server sent none.
    #[must_use]
    pub fn sqlstate(&self) -> [u8; 5] {
        self.field(b'C')
            .and_then(|code| code.try_into().ok())
            .unwrap_or(*b"XX000")
    }

    /// The primary message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.field(b'M').unwrap_or(b"(no message)")
    }

    /// The detail, where there is one.
    #[must_use]
    pub fn detail(&self) -> Option<&'a [u8]> {
        self.field(b'D')
    }

    /// The server's hint, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'a [u8]> {
        self.field(b'H')
    }

    /// Where in the statement, in characters from 1.
    #[must_use]
    pub fn position(&self) -> Option<u32> {
        std::str::from_utf8(self.field(b'P')?).ok()?.parse().ok()
    }

    /// Whether the server ends the connection with this error.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity(), b"FATAL" | b"PANIC")
    }

    /// A copy that outlives the bytes.
    #[must_use]
    pub fn to_owned(&self) -> ServerErrorOwned {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ServerErrorOwned {
            severity: text(self.severity()),
            sqlstate: self.sqlstate(),
            message: text(self.message()),
            detail: self.detail().map(text),
            hint: self.hint().map(text),
            position: self.position(),
        }
    }
}

impl fmt::Debug for ServerError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_owned().fmt(f)
    }
}

/// An error or notice of the server that owns its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerErrorOwned {
    /// `ERROR`, `FATAL`, `PANIC`, …
    pub severity: String,
    /// SQLSTATE.
    pub sqlstate: [u8; 5],
    /// The primary message.
    pub message: String,
    /// The detail, where there is one.
    pub detail: Option<String>,
    /// The server's hint, where there is one.
    pub hint: Option<String>,
    /// Where in the statement, in characters from 1.
    pub position: Option<u32>,
}

impl fmt::Display for ServerErrorOwned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sqlstate = String::from_utf8_lossy(&self.sqlstate);
        write!(
            f,
            "{}: {} (SQLSTATE {sqlstate})",
            self.severity, self.message
        )?;
        for extra in [&self.detail, &self.hint].into_iter().flatten() {
            write!(f, "; {extra}")?;
        }
        Ok(())
    }
}
