//! Random numbers by their place: the same place has the same number, and no other place is needed for it.
//!
//! Numbers are those of wyrand (Wang Yi, <https://github.com/wangyi-fudan/wyhash>), whose state is a counter: it is
//! set to a device's key plus a multiple of wyrand's step. Keys come from the finalizer of `SplitMix64` (G. L.
//! Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), so that the counters of
//! two devices are far from each other.

use crate::mix::{GAMMA, STEP, finalize, mix};

/// Which of its numbers a field asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Use {
    /// What changes within hours.
    Slow = 0,
    /// What changes within minutes.
    Fast = 1,
    /// What each row has of its own.
    Noise = 2,
    /// What never changes.
    Fixed = 3,
}

/// The place of a number but for the device: what is added to the device's key, and which half of the result it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    state: u64,
    shift: u32,
}

impl Place {
    /// The `number`th (below 2^48) number for this use of a column (below 2^14). Two columns share a result.
    pub(super) fn new(column: u64, used: Use, number: u64) -> Self {
        let index = (4 * (column / 2) + used as u64) << 48 | number;
        Self {
            state: index.wrapping_mul(STEP),
            shift: if column.is_multiple_of(2) { 0 } else { 32 },
        }
    }

    /// The number that follows.
    pub(super) fn next(self) -> Self {
        Self {
            state: self.state.wrapping_add(STEP),
            ..self
        }
    }

    /// The random number at this place of a device, from 0 to 2^32 - 1.
    #[inline]
    pub(super) fn number(self, key: u64) -> f64 {
        half(mix(key.wrapping_add(self.state)) >> self.shift)
    }

    /// The same for this column, which has an even number, and the next one.
    #[inline]
    pub(super) fn pair(self, key: u64) -> [f64; 2] {
        let both = mix(key.wrapping_add(self.state));
        [half(both), half(both >> 32)]
    }
}

/// The lower half of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
fn half(word: u64) -> f64 {
    f64::from(word as u32)
}

/// What [`Place::number`] is multiplied by to be between 0 and 1.
pub(super) const UNIT: f64 = 1.0 / 4_294_967_296.0;

/// The keys of so many devices.
pub(super) fn keys(seed: i64, devices: u64) -> Vec<u64> {
    let seed = finalize(seed.cast_unsigned().wrapping_add(GAMMA));
    let key = |device: u64| finalize(seed.wrapping_add((device + 1).wrapping_mul(GAMMA)));
    (0..devices).map(key).collect()
}
