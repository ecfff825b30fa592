//! pgbench's pseudo-random permutation.

use super::Prng;

const ROUNDS: u32 = 6;

/// The place of `value` in a pseudo-random permutation of `0..size` that `seed` selects
/// (`permute()` of pgbench 14 and later).
///
/// `value` is taken modulo `size` as an unsigned number, so every input has a place; a size below
/// 2 gives 0. Each round stirs the lower and the upper part of the range, each as long as the
/// largest power of two that fits, with an odd multiplier, an exclusive or and a rotation (all
/// bijections), then shifts the whole range by a random offset.
#[must_use]
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut prng = Prng::from_seed(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let bits = size.ilog2();
    let mut place = value.cast_unsigned() % size;
    for _ in 0..ROUNDS {
        place = stir(place, bits, &mut prng);
        place = size - 1 - stir(size - 1 - place, bits, &mut prng);
        place = (place + prng.range_u64(0, size - 1)) % size;
    }
    place.cast_signed()
}

/// A random bijection of `0..2^bits`; larger places stay. Draws the same either way, so that all
/// places of one permutation see the same numbers.
fn stir(place: u64, bits: u32, prng: &mut Prng) -> u64 {
    let mask = (1_u64 << bits) - 1;
    let multiplier = (prng.next_u64() & mask) | 1;
    let pattern = prng.next_u64() & mask;
    if place > mask {
        return place;
    }
    let mixed = (place.wrapping_mul(multiplier) ^ pattern) & mask;
    ((mixed << 1) & mask) | (mixed >> (bits - 1))
}
