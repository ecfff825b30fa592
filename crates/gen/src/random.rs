//! PostgreSQL's random numbers, bit for bit as `pgbench` of PostgreSQL 15 and later draws them.
//!
//! A script that is run with the same `--random-seed` gives the same values here as there. The
//! formulas are those of PostgreSQL's `src/common/pg_prng.c` and `src/bin/pgbench/pgbench.c`; each
//! function below names its own. `exp`, `ln`, `sin` and `pow` come from the platform's C library,
//! as they do in `pgbench`.

mod hash;
mod permute;
mod seeds;

pub use hash::{hash_fnv1a, hash_murmur2};
pub use permute::permute;
pub use seeds::{SeedSequence, Streams, ThreadStreams};

/// Smallest parameter that [`Prng::gaussian`] takes.
pub const GAUSSIAN_PARAMETER_MIN: f64 = 2.0;
/// Smallest parameter that [`Prng::zipfian`] takes.
pub const ZIPFIAN_PARAMETER_MIN: f64 = 1.001;
/// Largest parameter that [`Prng::zipfian`] takes.
pub const ZIPFIAN_PARAMETER_MAX: f64 = 1000.0;

/// The generator xoroshiro128** 1.0 of Blackman and Vigna (<https://prng.di.unimi.it/>), seeded as
/// `pg_prng_seed` does. Copying it copies the stream, which is how a retried transaction gets the
/// values of its first try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prng {
    s0: u64,
    s1: u64,
}

impl Prng {
    /// Fills the state with two steps of `SplitMix64`; an all-zero state, which would never change,
    /// is replaced (`pg_prng_seed`, `pg_prng_seed_check`).
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        let (seed, s0) = splitmix64(seed);
        let (_, s1) = splitmix64(seed);
        if s0 == 0 && s1 == 0 {
            // Knuth's constants for a linear congruential generator.
            return Self {
                s0: 0x5851_F42D_4C95_7F2D,
                s1: 0x1405_7B7E_F767_814F,
            };
        }
        Self { s0, s1 }
    }

    /// The next 64 random bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let mixed = self.s1 ^ self.s0;
        let value = self.s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.s0 = self.s0.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.s1 = mixed.rotate_left(37);
        value
    }

    /// Uniform in `min..=max`; `min` where the range is empty (and then nothing is drawn).
    ///
    /// Takes as many leading bits as the range needs and rejects what is beyond it
    /// (`pg_prng_uint64_range`): fewer than two draws on average.
    #[inline]
    pub const fn range_u64(&mut self, min: u64, max: u64) -> u64 {
        if max <= min {
            return min;
        }
        let range = max - min;
        let shift = range.leading_zeros();
        loop {
            let value = self.next_u64() >> shift;
            if value <= range {
                return min + value;
            }
        }
    }

    /// Uniform in `min..=max`, as `random(min, max)` of a script (`getrand`).
    ///
    /// `max - min` must fit in an `i64`, which the script evaluator checks; where it does not, the
    /// value is still some number and nothing panics.
    #[inline]
    pub const fn uniform(&mut self, min: i64, max: i64) -> i64 {
        let range = max.wrapping_sub(min).cast_unsigned();
        min.wrapping_add(self.range_u64(0, range).cast_signed())
    }

    /// Uniform in `[0, 1)` with 52 random bits (`pg_prng_double`).
    #[inline]
    pub fn double(&mut self) -> f64 {
        // 2^-52 is f64::EPSILON.
        u64_to_f64(self.next_u64() >> 12) * f64::EPSILON
    }

    /// Normal with mean 0 and standard deviation 1: the sine half of the Box–Muller transform
    /// (`pg_prng_double_normal`).
    pub fn normal(&mut self) -> f64 {
        let u1 = 1.0 - self.double();
        let u2 = 1.0 - self.double();
        (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).sin()
    }

    /// Truncated exponential over `min..=max`: density falls to `exp(-parameter)` of the first
    /// value's at the end of the range (`getExponentialRand`). `parameter` must be above 0.
    pub fn exponential(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.double();
        let fraction = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        scale(min, max, fraction)
    }

    /// Truncated normal over `min..=max`: the range is `2 * parameter` standard deviations wide and
    /// draws outside it are rejected (`getGaussianRand`).
    ///
    /// `parameter` must be at least [`GAUSSIAN_PARAMETER_MIN`].
    pub fn gaussian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        loop {
            let deviation = self.normal();
            if deviation >= -parameter && deviation < parameter {
                return scale(min, max, (deviation + parameter) / (parameter * 2.0));
            }
        }
    }

    /// Zipf's law over `min..=max` with exponent `parameter` (`getZipfianRand`), by the rejection
    /// method of Devroye, "Non-Uniform Random Variate Generation", pages 550-551.
    ///
    /// `parameter` must be in [`ZIPFIAN_PARAMETER_MIN`]..=[`ZIPFIAN_PARAMETER_MAX`]; near 1 the
    /// method rejects most draws and is slow.
    pub fn zipfian(&mut self, min: i64, max: i64, parameter: f64) -> i64 {
        let count = max.wrapping_sub(min).wrapping_add(1);
        if count <= 1 {
            return min;
        }
        let limit = i64_to_f64(count);
        let exponent = parameter - 1.0;
        let base = 2.0_f64.powf(exponent);
        loop {
            let u = self.double();
            let v = self.double();
            let x = u.powf(-1.0 / exponent).floor();
            let t = (1.0 + 1.0 / x).powf(exponent);
            if v * x * (t - 1.0) / (base - 1.0) <= t / base && x <= limit {
                return (min - 1).wrapping_add(truncate(x));
            }
        }
    }

    /// A waiting time whose mean is `center`, rounded to an integer of the same unit: the gaps of
    /// a Poisson process, as `--rate` draws them (`getPoissonRand`).
    pub fn poisson_gap(&mut self, center: f64) -> i64 {
        let uniform = 1.0 - self.double();
        truncate(-uniform.ln() * center + 0.5)
    }
}

/// One step of `SplitMix64`: the new state and the value.
const fn splitmix64(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (state, value ^ (value >> 31))
}

/// `min` plus `fraction` of the width of `min..=max`.
fn scale(min: i64, max: i64, fraction: f64) -> i64 {
    let width = i64_to_f64(max.wrapping_sub(min).wrapping_add(1));
    min.wrapping_add(truncate(width * fraction))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rounds as the conversion in C does"
)]
const fn i64_to_f64(value: i64) -> f64 {
    value as f64
}

#[expect(clippy::cast_precision_loss, reason = "only 52 bits are set")]
const fn u64_to_f64(value: u64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "truncation towards zero is the formula's"
)]
const fn truncate(value: f64) -> i64 {
    value as i64
}
