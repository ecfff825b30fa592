//! Draws from lists of weights, in one step each.

use super::super::number::Fraction;

/// Walker's alias method as M. D. Vose builds it (IEEE Transactions on Software Engineering 17, 1991): every place is
/// as likely as another, and holds two outcomes at most. All in integers, so every machine draws the same.
pub(super) struct AliasTable(Vec<Place>);

#[derive(Clone, Copy)]
struct Place {
    /// The place itself, if what is left of the fraction is below this, in units of 2^-32.
    below: u32,
    other: u16,
}

impl AliasTable {
    /// Outcome *n* is drawn in proportion to weight *n*, with an error below 2^-32 of a place; at most 65536 weights,
    /// of a sum below 2^64.
    pub(super) fn new(weights: &[u64]) -> Self {
        let count = weights.len() as u128;
        let total: u128 = weights.iter().copied().map(u128::from).sum();
        let mut left: Vec<u128> = weights.iter().map(|w| u128::from(*w) * count).collect();
        let mut places: Vec<_> = (0..weights.len()).map(Place::whole).collect();
        let (mut small, mut large): (Vec<_>, Vec<_>) =
            (0..weights.len()).partition(|n| left[*n] < total);
        while let (Some(little), Some(much)) = (small.pop(), large.last().copied()) {
            places[little].below = u32::try_from((left[little] << 32) / total).unwrap_or(u32::MAX);
            places[little].other = index(much);
            left[much] -= total - left[little];
            if left[much] < total {
                large.pop();
                small.push(much);
            }
        }
        Self(places)
    }

    #[inline]
    pub(super) fn draw(&self, mut fraction: Fraction) -> usize {
        let at = fraction.take(self.0.len() as u64);
        let place = self.0[at];
        if ((fraction.0 >> 32) as u32) < place.below {
            at
        } else {
            place.other.into()
        }
    }
}

impl Place {
    fn whole(number: usize) -> Self {
        Self {
            below: u32::MAX,
            other: index(number),
        }
    }
}

fn index(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn outcomes_have_their_shares(weights in prop::collection::vec(0..1000_u64, 1..40)) {
            prop_assume!(weights.iter().any(|weight| *weight > 0));
            let draw = AliasTable::new(&weights);
            let mut shares = vec![0_u128; weights.len()];
            for (at, place) in draw.0.iter().enumerate() {
                let own = if usize::from(place.other) == at { 1 << 32 } else { u128::from(place.below) };
                shares[at] += own;
                shares[usize::from(place.other)] += (1 << 32) - own;
            }
            let (count, total) = (weights.len() as u128, weights.iter().sum::<u64>());
            for (share, weight) in shares.iter().zip(&weights) {
                let expected = ((u128::from(*weight) * count) << 32) / u128::from(total);
                prop_assert!(share.abs_diff(expected) <= count, "{share} {expected}");
            }
        }

        #[test]
        fn what_weighs_nothing_is_never_drawn(word: u64) {
            let draw = AliasTable::new(&[0, 3, 0, 1, 0]);
            prop_assert!([1, 3].contains(&draw.draw(Fraction(word))));
        }
    }
}
