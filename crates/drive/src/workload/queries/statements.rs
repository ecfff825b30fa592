//! Which texts are prepared on a connection: the most recently used ones.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A text by its hash: 128 bits, so that two texts never meet.
pub(super) type Key = u128;

/// The key of a text.
pub(super) fn key(sql: &str) -> Key {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, sql).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}

#[derive(Debug)]
struct Statement {
    number: u32,
    used: u64,
    /// The server has said that it is prepared.
    is_parsed: bool,
}

/// How to run a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Name of the statement; empty when it is not kept.
    pub(super) name: String,
    /// It has to be parsed first.
    pub(super) parse: bool,
}

/// The statements of one connection.
#[derive(Debug)]
pub(super) struct Statements {
    max: usize,
    known: BTreeMap<Key, Statement>,
    next: u32,
    clock: u64,
    /// Names that the server still holds and that are not needed any more.
    closing: Vec<String>,
}

fn name(number: u32) -> String {
    format!("q{number}")
}

impl Statements {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            known: BTreeMap::new(),
            next: 0,
            clock: 0,
            closing: Vec::new(),
        }
    }

    /// The text is to be run now.
    pub(super) fn plan(&mut self, key: Key) -> Plan {
        if self.max == 0 {
            return Plan {
                name: String::new(),
                parse: true,
            };
        }
        self.clock += 1;
        if let Some(statement) = self.known.get_mut(&key) {
            statement.used = self.clock;
            let (name, parse) = (name(statement.number), !statement.is_parsed);
            return Plan { name, parse };
        }
        if self.known.len() >= self.max {
            self.forget_oldest();
        }
        self.next += 1;
        let statement = Statement {
            number: self.next,
            used: self.clock,
            is_parsed: false,
        };
        self.known.insert(key, statement);
        let name = name(self.next);
        Plan { name, parse: true }
    }

    /// Names to close, once.
    pub(super) fn closing(&mut self) -> std::vec::Drain<'_, String> {
        self.closing.drain(..)
    }

    /// The server has parsed it.
    pub(super) fn parsed(&mut self, key: Key) {
        if let Some(statement) = self.known.get_mut(&key) {
            statement.is_parsed = true;
        }
    }

    /// It has failed: a plan that was kept may be the cause.
    pub(super) fn forget(&mut self, key: Key) {
        if let Some(statement) = self.known.remove(&key).filter(|s| s.is_parsed) {
            self.closing.push(name(statement.number));
        }
    }

    fn forget_oldest(&mut self) {
        let oldest = self
            .known
            .iter()
            .min_by_key(|(_, statement)| statement.used);
        if let Some((&key, _)) = oldest {
            self.forget(key);
        }
    }

    /// A new connection: nothing is prepared on it.
    pub(super) fn clear(&mut self) {
        self.known.clear();
        self.closing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_parsed_once_and_the_least_recently_used_makes_room() {
        let mut statements = Statements::new(2);
        let [a, b, c] = ["a", "b", "c"].map(key);
        for (at, want) in [(a, ("q1", true)), (b, ("q2", true)), (a, ("q1", false))] {
            let plan = statements.plan(at);
            assert_eq!((plan.name.as_str(), plan.parse), want);
            statements.parsed(at);
        }
        assert!(statements.plan(c).parse);
        assert_eq!(statements.closing().collect::<Vec<_>>(), ["q2"]);
        statements.parsed(c);
        assert!(!statements.plan(a).parse);
        assert!(statements.plan(b).parse, "it had to make room");
    }

    #[test]
    fn what_failed_is_parsed_again_under_another_name() {
        let mut statements = Statements::new(2);
        let a = key("a");
        statements.plan(a);
        statements.forget(a); // its Parse failed: the server holds nothing
        assert_eq!(statements.closing().count(), 0);
        statements.plan(a);
        statements.parsed(a);
        statements.forget(a);
        assert_eq!(statements.closing().collect::<Vec<_>>(), ["q2"]);
        assert_eq!(statements.plan(a).name, "q3");
        statements.clear();
        assert!(statements.plan(a).parse);
    }
}
