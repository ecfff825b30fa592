//! One of several hosts that share a drive: which clients and which starts are its own.

use std::ops::Range;

use serde::Deserialize;

/// Host `number` of `of`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Its number.
    pub number: u64,
    /// How many hosts there are.
    pub of: u64,
}

impl Share {
    /// A drive on one host.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// The global numbers of its clients: one contiguous segment, as long as any other's or one longer.
    #[must_use]
    pub fn segment(self, clients: usize) -> Range<usize> {
        let begin = |number: u64| {
            let place = clients as u128 * u128::from(number) / u128::from(self.of.max(1));
            usize::try_from(place).unwrap_or(clients)
        };
        begin(self.number)..begin(self.number + 1)
    }

    /// Whether this one of many things in a row is its own: each host has every `of`-th.
    #[must_use]
    pub fn owns(self, thing: u64) -> bool {
        thing % self.of.max(1) == self.number
    }

    /// There are other hosts, or might be: the drive waits for their owner's word.
    #[must_use]
    pub fn is_part(self) -> bool {
        self.of > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_client_has_one_host_and_no_host_has_two_more_than_another(
            clients in 1_usize..10_000, of in 1_u64..200,
        ) {
            let segments: Vec<_> = (0..of).map(|number| Share { number, of }.segment(clients)).collect();
            prop_assert_eq!(segments[0].start, 0);
            prop_assert_eq!(segments[segments.len() - 1].end, clients);
            prop_assert!(segments.windows(2).all(|pair| pair[0].end == pair[1].start));
            let fair = clients / usize::try_from(of).unwrap();
            prop_assert!(segments.iter().all(|s| s.len() == fair || s.len() == fair + 1));
        }

        #[test]
        fn every_batch_has_one_host(batch in 0_u64..1_000_000, of in 1_u64..200) {
            let owners = (0..of).filter(|&number| Share { number, of }.owns(batch));
            prop_assert_eq!(owners.count(), 1);
        }
    }
}
