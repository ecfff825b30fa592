//! The rows of pgbench's tables, as the lines that `COPY … FROM STDIN` reads.
//!
//! Rows are numbered from 0, as pgbench numbers them; their keys begin with 1. Any range can be made on its own.

const DIGITS_MAX: usize = 20;

/// One of pgbench's tables that are filled; `pgbench_history` begins empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// `pgbench_branches`: one row for each unit of scale.
    Branches,
    /// `pgbench_tellers`
    Tellers,
    /// `pgbench_accounts`
    Accounts,
}

impl Table {
    /// The table of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "pgbench_branches" => Some(Self::Branches),
            "pgbench_tellers" => Some(Self::Tellers),
            "pgbench_accounts" => Some(Self::Accounts),
            _ => None,
        }
    }

    /// Rows for each unit of scale.
    #[must_use]
    pub const fn rows_per_branch(self) -> u64 {
        match self {
            Self::Branches => 1,
            Self::Tellers => 10,
            Self::Accounts => 100_000,
        }
    }

    /// What follows the key in the rows of a branch. The filler is NULL, but for accounts, where it is blank.
    fn tail(self, branch: u64) -> String {
        match self {
            Self::Branches => "\t0\t\\N\n".to_owned(),
            Self::Tellers => format!("\t{branch}\t0\t\\N\n"),
            Self::Accounts => format!("\t{branch}\t0\t\n"),
        }
    }
}

/// Return `count` lines, beginning with row `first`.
#[must_use]
pub fn copy_lines(table: Table, first: u64, count: u64) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut key = Key::new(first + 1);
    let (mut row, end) = (first, first + count);
    while row < end {
        let branch = row / table.rows_per_branch();
        let branch_end = end.min((branch + 1) * table.rows_per_branch());
        append(
            &mut lines,
            &mut key,
            branch_end - row,
            table.tail(branch + 1).as_bytes(),
        );
        row = branch_end;
    }
    lines
}

fn append(lines: &mut Vec<u8>, key: &mut Key, count: u64, tail: &[u8]) {
    for _ in 0..count {
        lines.extend_from_slice(key.digits());
        lines.extend_from_slice(tail);
        key.advance();
    }
}

/// A number that is written again and again, one more each time: cheaper than dividing it into digits.
struct Key {
    digits: [u8; DIGITS_MAX],
    begin: usize,
}

impl Key {
    fn new(value: u64) -> Self {
        let text = value.to_string();
        let begin = DIGITS_MAX - text.len();
        let mut digits = [b'0'; DIGITS_MAX];
        digits[begin..].copy_from_slice(text.as_bytes());
        Self { digits, begin }
    }

    fn digits(&self) -> &[u8] {
        &self.digits[self.begin..]
    }

    fn advance(&mut self) {
        let mut at = DIGITS_MAX - 1;
        while self.digits[at] == b'9' {
            self.digits[at] = b'0';
            at -= 1;
        }
        self.digits[at] += 1;
        self.begin = self.begin.min(at);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::{Table, copy_lines};

    fn plainly(table: Table, first: u64, count: u64) -> String {
        (first..first + count).fold(String::new(), |mut lines, row| {
            let (key, branch) = (row + 1, row / table.rows_per_branch() + 1);
            let _ = match table {
                Table::Branches => writeln!(lines, "{key}\t0\t\\N"),
                Table::Tellers => writeln!(lines, "{key}\t{branch}\t0\t\\N"),
                Table::Accounts => writeln!(lines, "{key}\t{branch}\t0\t"),
            };
            lines
        })
    }

    proptest! {
        #[test]
        fn every_range_of_every_table_is_as_pgbench_writes_it(
            table in prop::sample::select(&[Table::Branches, Table::Tellers, Table::Accounts][..]),
            branch in 0_u64..(1 << 31),
            behind in 0_u64..200_000,
            count in 0_u64..3000,
        ) {
            let first = (branch * table.rows_per_branch() + behind).saturating_sub(1500);
            let made = String::from_utf8(copy_lines(table, first, count)).unwrap();
            prop_assert_eq!(made, plainly(table, first, count));
        }
    }

    #[test]
    fn keys_grow_by_a_digit_where_they_must() {
        assert_eq!(
            copy_lines(Table::Accounts, 99_998, 3),
            b"99999\t1\t0\t\n100000\t1\t0\t\n100001\t2\t0\t\n"
        );
    }

    #[test]
    fn tables_have_their_names() {
        assert_eq!(Table::named("pgbench_tellers"), Some(Table::Tellers));
        assert_eq!(Table::named("pgbench_history"), None);
    }
}
