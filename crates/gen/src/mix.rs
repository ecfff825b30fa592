//! Words mixed until they look random: what makes a number a function of its place.

/// wyrand's step and its mask (Wang Yi, <https://github.com/wangyi-fudan/wyhash>).
pub(crate) const STEP: u64 = 0xa076_1d64_78bd_642f;
const MASK: u64 = 0xe703_7ed1_a0b4_28db;

/// The odd integer nearest to 2^64 divided by the golden ratio.
pub(crate) const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// `SplitMix64`'s finalizer.
pub(crate) fn finalize(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// wyrand's number for a state: both halves of a product.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
pub(crate) fn mix(state: u64) -> u64 {
    let product = u128::from(state) * u128::from(state ^ MASK);
    (product >> 64) as u64 ^ product as u64
}
