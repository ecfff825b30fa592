//! The shortest protocol: every message is a line whose first byte says what it is, and results have one column.

use crate::error::DriveError;
use crate::protocol::value::Form;
use crate::protocol::{
    Bulk, Column, Columns, Completed, Failure, Frontend, Message, Protocol, Row, ServerError,
    Session, Unencodable,
};
use crate::spec::Connection;

#[derive(Debug)]
pub(super) struct Lines;

/// What arrived of a line, and what is to be sent.
pub(super) struct Link(Vec<u8>, Vec<u8>);

/// The name of the column, or its value.
pub(super) struct Field<'a>(&'a [u8]);

impl Bulk for Lines {}

impl Protocol for Lines {
    type Session = Link;
    type Frontend<'a> = &'a mut Link;
    type Columns<'a> = Field<'a>;
    type Row<'a> = Field<'a>;
    type CancelKey = ();

    fn new(_: &Connection, _: bool) -> Result<Self, DriveError> {
        Ok(Self)
    }

    fn session(&self) -> Result<Link, Failure> {
        Ok(Link(Vec::new(), b"hello\n".to_vec()))
    }
}

impl Session<Lines> for Link {
    fn receive(
        &mut self,
        bytes: &[u8],
        on_message: &mut impl FnMut(Message<'_, Lines>),
    ) -> Result<(), Failure> {
        self.0.extend_from_slice(bytes);
        while let Some(end) = self.0.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            let (kind, text) = (line[0], &line[1..end]);
            let in_transaction = false;
            on_message(match kind {
                b'l' => Message::LoggedIn,
                b'p' => Message::Prepared,
                b'c' => Message::Columns(Field(text)),
                b'r' => Message::Row(Field(text)),
                b'd' => Message::Done(Completed::Rows(1)),
                b'a' => Message::Answered { in_transaction },
                b'e' => Message::Error(ServerError::new(*b"40001", text)),
                _ => Message::Other,
            });
        }
        Ok(())
    }

    fn frontend(&mut self) -> &mut Self {
        self
    }

    fn pending(&mut self) -> Result<&[u8], Failure> {
        Ok(&self.1)
    }

    fn consumed(&mut self, count: usize) {
        self.1.drain(..count);
    }
}

impl Link {
    fn line(&mut self, kind: u8, parts: &[&[u8]]) {
        self.1.push(kind);
        self.1.extend(parts.join(&b'\t'));
        self.1.push(b'\n');
    }
}

impl Frontend for &mut Link {
    fn query(&mut self, sql: &[u8]) -> Result<(), Unencodable> {
        self.line(b'Q', &[sql]);
        Ok(())
    }

    fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), Unencodable> {
        self.line(b'P', &[name.as_bytes(), sql]);
        Ok(())
    }

    fn execute<'p>(
        &mut self,
        name: &str,
        values: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), Unencodable> {
        let mut parts = vec![name.as_bytes()];
        for value in values.flatten() {
            parts.push(value);
        }
        self.line(b'E', &parts);
        Ok(())
    }

    fn sync(&mut self) {
        self.line(b'S', &[]);
    }
}

impl Columns for Field<'_> {
    fn columns(&self) -> impl Iterator<Item = Column<'_>> {
        std::iter::once(Column {
            name: self.0,
            form: Form::Text,
            type_oid: 0,
            is_binary: false,
        })
    }
}

impl Row for Field<'_> {
    fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        std::iter::once(Some(self.0))
    }
}
