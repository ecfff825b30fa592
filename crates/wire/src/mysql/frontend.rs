//! Messages to the server.

use super::{MysqlError, Session, frames};

/// Appends what a session is to do, and lets it begin where nothing is under way.
#[derive(Debug)]
pub struct Frontend<'a> {
    session: &'a mut Session,
}

impl<'a> Frontend<'a> {
    pub(super) fn new(session: &'a mut Session) -> Self {
        Self { session }
    }

    /// A text of SQL, of several statements too, run as it is; answered by itself.
    pub fn query(&mut self, sql: &[u8]) -> Result<(), MysqlError> {
        frames::query(sql, self.session.queue())?;
        self.session.advance();
        Ok(())
    }

    /// Prepares a statement under a name; parameters are `$1` and so on. A name may be used again.
    pub fn prepare(&mut self, name: &str, sql: &[u8]) -> Result<(), MysqlError> {
        self.session.prepare(name, sql)?;
        self.session.advance();
        Ok(())
    }

    /// Runs a prepared statement: parameters as text, rows in binary form or as text.
    pub fn execute<'p>(
        &mut self,
        name: &str,
        binary: bool,
        parameters: impl Iterator<Item = Option<&'p [u8]>>,
    ) -> Result<(), MysqlError> {
        frames::execute(name, binary, parameters, self.session.queue())?;
        self.session.advance();
        Ok(())
    }

    /// Forgets a prepared statement.
    pub fn close_statement(&mut self, name: &str) -> Result<(), MysqlError> {
        frames::close(name, self.session.queue())?;
        self.session.advance();
        Ok(())
    }

    /// Ends what one [`super::Event::Answered`] is for.
    pub fn sync(&mut self) {
        frames::sync(self.session.queue());
        self.session.advance();
    }

    /// After [`super::Event::DataWanted`]: there is no data. The statement ends as if the data were empty.
    pub fn refuse_data(&mut self) {
        self.session.refuse_data();
    }

    /// Takes leave.
    pub fn terminate(&mut self) {
        frames::quit(self.session.queue());
        self.session.advance();
    }

    /// Appends [`frames`] that were made before; they may be cut anywhere.
    pub fn encoded(&mut self, frames: &[u8]) {
        self.session.queue().extend_from_slice(frames);
        self.session.advance();
    }
}
