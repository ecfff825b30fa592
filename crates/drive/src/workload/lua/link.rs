//! Lost connections of a script to MySQL, as sysbench's client library tells of them.
//!
//! A statement that loses its connection, or has none any more, fails by one of the library's own errors. Where the
//! run ignores that error the client connects again, and the script gets the error after that.

use crate::protocol::SqlState;

/// The connection ended before the answer.
pub(super) const SERVER_LOST: (u16, &str) = (2013, "Lost connection to server during query");
/// It had ended before the statement.
pub(super) const SERVER_GONE: (u16, &str) = (2006, "Server has gone away");
/// What the library calls errors of its own.
pub(super) const GENERAL: SqlState = *b"HY000";

/// Errors after which sysbench connects again, if they are ignored.
pub(super) fn ends_connection(number: u16) -> bool {
    matches!(number, 2006 | 2011 | 2013 | 2055)
}

/// The SQLSTATE that the server sent: where that was the general one, the error is counted by its number instead.
pub(super) fn as_sent(state: &SqlState, number: u16) -> &SqlState {
    if number > 0 && str::from_utf8(state).is_ok_and(|digits| digits.parse() == Ok(number)) {
        &GENERAL
    } else {
        state
    }
}

/// What a client knows of its connections.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// The number of the one in use.
    current: u32,
    /// Those that are lost, and not made again.
    lost: Vec<u32>,
    /// The one in use is to be made again before the script goes on.
    returns: bool,
}

impl Link {
    /// The script goes on with another one.
    pub(super) fn switch(&mut self, to: u32) {
        self.current = to;
    }

    pub(super) fn lose(&mut self) {
        if !self.is_lost() {
            self.lost.push(self.current);
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.contains(&self.current)
    }

    pub(super) fn connect_again(&mut self) {
        self.returns = true;
    }

    /// The script waits until there is a connection.
    pub(super) fn returns(&self) -> bool {
        self.returns
    }

    /// There is a new one, or the script wants none any more.
    pub(super) fn forget(&mut self) {
        self.returns = false;
        self.lost.retain(|&number| number != self.current);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_wait_timeout_has_the_general_state() {
        assert_eq!(as_sent(b"01205", 1205), b"HY000");
        assert_eq!(as_sent(b"40001", 1213), b"40001");
        assert_eq!(as_sent(b"23000", 1062), b"23000");
        assert_eq!(as_sent(b"01000", 0), b"01000");
    }

    #[test]
    fn of_several_connections_one_may_be_lost() {
        let mut link = Link::default();
        link.switch(1);
        link.lose();
        link.switch(0);
        assert!(!link.is_lost());
        link.switch(1);
        assert!(link.is_lost() && !link.returns());
        link.connect_again();
        assert!(link.returns());
        link.forget();
        assert!(!link.is_lost() && !link.returns());
    }
}
