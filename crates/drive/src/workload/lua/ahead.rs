//! A script that goes on while the server stores the rows of its bulk insert.

use loadstone_lua::Request;

/// How far the script of one client is ahead of its server.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// It may go on before the answer.
    allowed: bool,
    /// What it asked for when it did.
    asked: Option<Request>,
    /// The statement that is not answered yet, or memory for one.
    sql: Vec<u8>,
}

impl Ahead {
    pub(super) fn allow(&mut self, allowed: bool) {
        self.allowed = allowed;
    }

    pub(super) fn may_begin(&self) -> bool {
        self.allowed && self.asked.is_none()
    }

    /// The script goes on: the statement that was sent is kept here.
    pub(super) fn begin(&mut self) -> &mut Vec<u8> {
        &mut self.sql
    }

    /// It wants something of the server, which comes after the answer.
    pub(super) fn end(&mut self, asked: Request) {
        self.asked = Some(asked);
    }

    pub(super) fn is_ahead(&self) -> bool {
        self.asked.is_some()
    }

    /// The answer has come: what the script wants.
    pub(super) fn take(&mut self) -> Request {
        self.allowed = false;
        self.asked.take().unwrap_or(Request::Ended)
    }

    /// The statement that was sent, where the client's is a later one.
    pub(super) fn sent(&self) -> Option<&[u8]> {
        self.is_ahead().then_some(&self.sql)
    }
}
