//! A set of numbers that are nearly consecutive, as ranges.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Numbers, kept as first → last of each range, and written down as the list of ranges.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// From ranges with both ends included, in any order, which may overlap.
    pub(crate) fn new(ranges: &[(u64, u64)]) -> Self {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        let mut set: BTreeMap<u64, u64> = BTreeMap::new();
        for (first, last) in sorted {
            match set.last_entry() {
                Some(mut entry) if first <= entry.get().saturating_add(1) => {
                    let joined = last.max(*entry.get());
                    entry.insert(joined);
                }
                _ => drop(set.insert(first, last)),
            }
        }
        Self(set)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        let before = self.0.range(..=number).next_back();
        before.is_some_and(|(_, &last)| number <= last)
    }

    /// Add a number; joins what it connects.
    pub(crate) fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let next = number
            .checked_add(1)
            .and_then(|next| self.0.remove(&next))
            .unwrap_or(number);
        match self.0.range_mut(..number).next_back() {
            Some((_, last)) if *last + 1 == number => *last = next,
            _ => drop(self.0.insert(number, next)),
        }
    }

    /// Add all numbers of another set.
    pub(crate) fn add(&mut self, more: &Self) {
        *self = Self::new(&[self.list(), more.list()].concat());
    }

    /// The ranges, both ends included, ascending.
    pub(crate) fn list(&self) -> Vec<(u64, u64)> {
        self.0.iter().map(|(&first, &last)| (first, last)).collect()
    }
}

impl From<Vec<(u64, u64)>> for Ranges {
    fn from(ranges: Vec<(u64, u64)>) -> Self {
        Self::new(&ranges)
    }
}

impl From<Ranges> for Vec<(u64, u64)> {
    fn from(ranges: Ranges) -> Self {
        ranges.list()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn ranges_hold_what_a_set_holds(numbers in prop::collection::vec(0_u64..60, 0..80)) {
            let mut ranges = Ranges::default();
            let set: BTreeSet<u64> = numbers.iter().copied().collect();
            for &number in &numbers {
                ranges.insert(number);
            }
            for number in 0..61 {
                prop_assert_eq!(ranges.contains(number), set.contains(&number));
            }
            let list = ranges.list();
            prop_assert!(list.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{:?}", list);
            let pairs: Vec<(u64, u64)> = numbers.iter().rev().map(|&n| (n, n)).collect();
            prop_assert_eq!(Ranges::new(&pairs).list(), list);
        }
    }

    #[test]
    fn the_last_number_of_all_is_a_number_too() {
        let mut ranges = Ranges::new(&[(5, u64::MAX), (2, 3)]);
        ranges.insert(u64::MAX);
        ranges.insert(4);
        assert_eq!(ranges.list(), vec![(2, u64::MAX)]);
    }
}
