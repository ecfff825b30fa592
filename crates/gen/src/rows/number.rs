//! Random numbers by their place, and the digits that they become.

use crate::mix::{GAMMA, STEP, finalize, mix};

/// Numbers that each place has.
const NUMBERS: u64 = 8;

/// A stream of random numbers that begins anywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    key: u64,
}

impl Stream {
    pub(super) fn new(seed: i64) -> Self {
        Self {
            key: finalize(seed.cast_unsigned().wrapping_add(GAMMA)),
        }
    }

    /// Another stream of the same seed.
    pub(super) fn other(self, number: u64) -> Self {
        Self {
            key: finalize(self.key.wrapping_add(number.wrapping_mul(GAMMA))),
        }
    }

    /// Number `number`, below [`NUMBERS`], of this place.
    #[inline]
    pub(super) fn number(self, place: u64, number: u64) -> u64 {
        self.at(place.wrapping_mul(NUMBERS).wrapping_add(number))
    }

    /// Number `index` of the stream.
    #[inline]
    pub(super) fn at(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(STEP)))
    }

    /// The numbers from number `index` on.
    #[inline]
    pub(super) fn from(self, index: u64) -> Numbers {
        Numbers(self.key.wrapping_add(index.wrapping_mul(STEP)))
    }

    /// The same as a fraction.
    #[inline]
    pub(super) fn fraction(self, place: u64, number: u64) -> Fraction {
        Fraction(self.number(place, number))
    }
}

/// Numbers of a stream that follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        number
    }
}

/// What is left of a number from 0 to 1, in units of 2^-64.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fraction(pub(super) u64);

impl Fraction {
    /// The next whole number below `bound`.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the upper half is below the bound, the lower half is what is left"
    )]
    pub(super) fn take(&mut self, bound: u64) -> usize {
        let product = u128::from(self.0) * u128::from(bound);
        self.0 = product as u64;
        (product >> 64) as usize
    }

    /// A number below `bound`, small ones more often: the first of a hundred a tenth of the time.
    #[inline]
    pub(super) fn take_skewed(&mut self, bound: u64) -> usize {
        let number = self.take(SKEW) as u64;
        usize::try_from(number * number * bound / (SKEW * SKEW)).unwrap_or(0)
    }

    /// Three decimal digits, and a byte that the next ones overwrite.
    #[inline]
    pub(super) fn three(&mut self) -> [u8; 4] {
        THREE_DIGITS[self.take(1000)]
    }

    /// One decimal digit.
    #[inline]
    pub(super) fn one(&mut self) -> u8 {
        THREE_DIGITS[self.take(10)][2]
    }

    /// A digit from 1 to 9.
    #[inline]
    pub(super) fn leading(&mut self) -> u8 {
        THREE_DIGITS[1 + self.take(9)][2]
    }
}

const SKEW: u64 = 1 << 16;

/// 000 to 999, with a byte behind them.
#[expect(clippy::cast_possible_truncation, reason = "digits")]
pub(super) static THREE_DIGITS: [[u8; 4]; 1000] = {
    let mut table = [[b'0'; 4]; 1000];
    let mut n = 0;
    while n < 1000 {
        let digits = [n / 100, n / 10 % 10, n % 10];
        let mut place = 0;
        while place < 3 {
            table[n][place] += digits[place] as u8;
            place += 1;
        }
        n += 1;
    }
    table
};

/// Two of these characters after each other, for every pair.
pub(super) const fn pairs<const N: usize>(characters: &[u8]) -> [[u8; 2]; N] {
    let mut table = [[0; 2]; N];
    let mut n = 0;
    while n < N {
        table[n] = [
            characters[n / characters.len()],
            characters[n % characters.len()],
        ];
        n += 1;
    }
    table
}

/// Eight hexadecimal digits, the most significant first.
#[inline]
pub(super) fn hexadecimal(word: u32) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 255;
    // Halves of halves move apart until each digit has a byte of its own.
    let mut digits = u64::from(word);
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    let letters = ((digits + 6 * ONES) >> 4) & ONES;
    let text = digits + ONES * u64::from(b'0') + letters * u64::from(b'a' - b'0' - 10);
    text.to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hexadecimal_digits_are_those_of_the_standard_library(word: u32) {
            prop_assert_eq!(hexadecimal(word).to_vec(), format!("{word:08x}").into_bytes());
        }

        #[test]
        fn a_fraction_is_used_up_from_the_front(word: u64) {
            let mut fraction = Fraction(word);
            let taken = (fraction.take(1000), fraction.take(7));
            let whole = (u128::from(word) * 7000) >> 64;
            prop_assert_eq!(taken.0 as u128 * 7 + taken.1 as u128, whole);
            prop_assert!(Fraction(word).take_skewed(100) < 100);
        }
    }

    #[test]
    fn three_digits_are_padded() {
        for (number, digits) in THREE_DIGITS.iter().enumerate() {
            assert_eq!(digits, format!("{number:03}0").as_bytes());
        }
    }
}
