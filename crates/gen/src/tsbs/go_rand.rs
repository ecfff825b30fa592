//! Go's `math/rand` (version 1), bit for bit: the stream that a Go program sees after
//! `rand.Seed(seed)`.
//!
//! The source is an additive lagged Fibonacci generator, x[n] = x[n-607] + x[n-273] modulo 2^64.
//! Go steps it one value at a time; here the whole ring is stepped at once and then read, which
//! gives the same values in a third of the time. Algorithms: Go's package documentation, which
//! freezes the streams under the Go 1 promise, and Marsaglia and Tsang, "The Ziggurat Method for
//! Generating Random Variables" (2000).

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "Go's conversions between widths are part of the algorithms"
)]

mod tables;

use tables::{COOKED, FN, KN, WN};

const LENGTH: usize = 607;
const TAP: usize = 273;
const MASK_63: u64 = (1 << 63) - 1;
/// Where the ziggurat's tail begins.
const TAIL: f64 = 3.442_619_855_899;

/// The widths of the strips, widened once: the product is taken in double precision.
const WIDTHS: [f64; 128] = {
    let mut widths = [0.0; 128];
    let mut i = 0;
    while i < 128 {
        widths[i] = WN[i] as f64;
        i += 1;
    }
    widths
};

/// A `math/rand` generator.
#[derive(Clone, Debug)]
pub struct GoRand {
    ring: [u64; LENGTH],
    position: usize,
}

impl GoRand {
    /// The generator after `rand.Seed(seed)`. Seeds that are equal modulo 2^31 - 1 give one stream.
    #[must_use]
    pub fn new(seed: i64) -> Self {
        let mut x = seed_to_state(seed);
        for _ in 0..20 {
            x = seed_step(x);
        }
        let mut state = [0; LENGTH];
        for (slot, cooked) in state.iter_mut().zip(COOKED) {
            let mut mixed = 0;
            for shift in [40, 20, 0] {
                x = seed_step(x);
                mixed ^= u64::from(x) << shift;
            }
            *slot = mixed ^ cooked;
        }
        // Go walks its ring downwards from index 333; ours is in the order of reading.
        let ring = std::array::from_fn(|i| state[(333 + LENGTH - i) % LENGTH]);
        Self {
            ring,
            position: LENGTH,
        }
    }

    /// `Uint64`.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if let Some(&value) = self.ring.get(self.position) {
            self.position += 1;
            return value;
        }
        self.refill()
    }

    /// Steps the whole ring and reads its first value.
    #[inline(never)]
    fn refill(&mut self) -> u64 {
        let (first, rest) = self.ring.split_at_mut(LENGTH - TAP);
        add(first, rest);
        let (first, rest) = self.ring.split_at_mut(TAP);
        add(rest, first);
        let (middle, last) = rest.split_at_mut(TAP);
        add(last, middle);
        self.position = 1;
        self.ring[0]
    }

    /// `Int63`.
    #[inline]
    pub fn int63(&mut self) -> i64 {
        (self.next_u64() & MASK_63) as i64
    }

    /// `Float64`, in [0, 1).
    #[inline]
    pub fn float64(&mut self) -> f64 {
        loop {
            let value = self.int63() as f64 * (1.0 / 9_223_372_036_854_775_808.0);
            if value < 1.0 {
                return value; // 2^63 - 1 and its near neighbours round up to 1: Go draws again
            }
        }
    }

    /// `Int31n`, in [0, n).
    fn int31n(&mut self, n: u32) -> u32 {
        let draw = |me: &mut Self| (me.int63() >> 32) as u32;
        if n.is_power_of_two() {
            return draw(self) & (n - 1);
        }
        let limit = (1 << 31) - 1 - (1 << 31) % n;
        loop {
            let value = draw(self);
            if value <= limit {
                return value % n;
            }
        }
    }

    /// `Int63n`, in [0, n). Not the same stream as [`Self::intn`].
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn int63n(&mut self, n: u64) -> u64 {
        if n.is_power_of_two() {
            return self.int63() as u64 & (n - 1);
        }
        let limit = MASK_63 - (1 << 63) % n;
        loop {
            let value = self.int63() as u64;
            if value <= limit {
                return value % n;
            }
        }
    }

    /// `Intn`, in [0, n): by 31 bits where `n` allows.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn intn(&mut self, n: u64) -> u64 {
        match u32::try_from(n) {
            Ok(small) if small < 1 << 31 => u64::from(self.int31n(small)),
            _ => self.int63n(n),
        }
    }

    /// `NormFloat64`: mean 0, standard deviation 1.
    #[inline]
    pub fn norm_float64(&mut self) -> f64 {
        let draw = (self.next_u64() >> 31) as i32;
        let strip = (draw & 0x7f) as usize;
        if draw.unsigned_abs() < KN[strip] {
            return f64::from(draw) * WIDTHS[strip];
        }
        self.norm_outside(draw)
    }

    /// Fills a slice as that many calls of [`Self::norm_float64`] would.
    #[inline]
    pub fn fill_norm(&mut self, out: &mut [f64]) {
        let mut position = self.position; // in a register, not in memory
        for slot in out {
            let value = if let Some(&value) = self.ring.get(position) {
                position += 1;
                value
            } else {
                let value = self.refill();
                position = self.position;
                value
            };
            let draw = (value >> 31) as i32;
            let strip = (draw & 0x7f) as usize;
            *slot = f64::from(draw) * WIDTHS[strip];
            if draw.unsigned_abs() >= KN[strip] {
                self.position = position;
                *slot = self.norm_outside(draw);
                position = self.position;
            }
        }
        self.position = position;
    }

    /// The 2.8 % of normal draws that do not fall wholly inside a strip.
    #[cold]
    #[inline(never)]
    fn norm_outside(&mut self, mut draw: i32) -> f64 {
        loop {
            let strip = (draw & 0x7f) as usize;
            let x = f64::from(draw) * WIDTHS[strip];
            if draw.unsigned_abs() < KN[strip] {
                return x;
            }
            if strip == 0 {
                let tail = TAIL + self.norm_tail();
                return if draw > 0 { tail } else { -tail };
            }
            let height = FN[strip] + self.float64() as f32 * (FN[strip - 1] - FN[strip]);
            if height < (-0.5 * x * x).exp() as f32 {
                return x;
            }
            draw = (self.next_u64() >> 31) as i32;
        }
    }

    /// How far beyond [`TAIL`] a draw of the tail lies.
    fn norm_tail(&mut self) -> f64 {
        loop {
            let x = -ln(self.float64()) * (1.0 / TAIL);
            let y = -ln(self.float64());
            if y + y >= x * x {
                return x;
            }
        }
    }
}

/// Adds `from` to `to`, value by value, as far as the shorter goes.
fn add(to: &mut [u64], from: &[u64]) {
    for (a, b) in to.iter_mut().zip(from) {
        *a = a.wrapping_add(*b);
    }
}

fn seed_to_state(seed: i64) -> u32 {
    match seed.rem_euclid(i64::from(i32::MAX)) {
        0 => 89_482_311,
        state => state as u32,
    }
}

/// Lehmer's generator 48271 * x mod 2^31 - 1.
fn seed_step(x: u32) -> u32 {
    (u64::from(x) * 48_271 % 0x7fff_ffff) as u32
}

/// Go's `math.Log` for finite positive arguments, without fused operations. Series: FreeBSD's `e_log.c`,
/// as Go documents it; the C library's logarithm may differ in the last bit.
pub(super) fn ln(value: f64) -> f64 {
    const LN2_HI: f64 = 6.931_471_803_691_238e-1;
    const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;
    let bits = value.to_bits();
    let mut exponent = ((bits >> 52) & 0x7ff) as i64 - 1022;
    let mut fraction = f64::from_bits((bits & ((1 << 52) - 1)) | (1022 << 52));
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        fraction *= 2.0;
        exponent -= 1;
    }
    let f = fraction - 1.0;
    let k = exponent as f64;
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let odd = s2
        * (6.666_666_666_666_735e-1
            + s4 * (2.857_142_874_366_239e-1
                + s4 * (1.818_357_216_161_805e-1 + s4 * 1.479_819_860_511_658_6e-1)));
    let even = s4
        * (3.999_999_999_940_942e-1
            + s4 * (2.222_219_843_214_978_4e-1 + s4 * 1.531_383_769_920_937_3e-1));
    let half_square = 0.5 * f * f;
    k * LN2_HI - ((half_square - (s * (half_square + (odd + even)) + k * LN2_LO)) - f)
}

/// Go's `rand.Zipf`: integers k in [0, max] with probability in proportion to (v + k)^-s.
#[derive(Clone, Debug)]
pub(super) struct Zipf {
    v: f64,
    q: f64,
    s: f64,
    one_minus_q: f64,
    one_minus_q_inverse: f64,
    h_max: f64,
    h_range: f64,
}

impl Zipf {
    /// `NewZipf` without its generator; `s` > 1 and `v` >= 1.
    pub(super) fn new(s: f64, v: f64, max: u64) -> Self {
        let one_minus_q = 1.0 - s;
        let one_minus_q_inverse = 1.0 / one_minus_q;
        let mut zipf = Self {
            v,
            q: s,
            s: 0.0,
            one_minus_q,
            one_minus_q_inverse,
            h_max: 0.0,
            h_range: 0.0,
        };
        zipf.h_max = zipf.h(max as f64 + 0.5);
        zipf.h_range = zipf.h(0.5) - (ln(v) * -s).exp() - zipf.h_max;
        zipf.s = 1.0 - zipf.h_inverse(zipf.h(1.5) - (-s * ln(v + 1.0)).exp());
        zipf
    }

    fn h(&self, x: f64) -> f64 {
        (self.one_minus_q * ln(self.v + x)).exp() * self.one_minus_q_inverse
    }

    fn h_inverse(&self, x: f64) -> f64 {
        (self.one_minus_q_inverse * ln(self.one_minus_q * x)).exp() - self.v
    }

    /// `Uint64`.
    pub(super) fn draw(&self, rng: &mut GoRand) -> u64 {
        loop {
            let u = self.h_max + rng.float64() * self.h_range;
            let x = self.h_inverse(u);
            let k = (x + 0.5).floor();
            if k - x <= self.s || u >= self.h(k + 0.5) - (-ln(k + self.v) * self.q).exp() {
                return k as u64;
            }
        }
    }
}
