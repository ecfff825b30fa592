//! Random numbers as sysbench 1.0.20 draws them: the same generator, seeded in the same way, and the same
//! distributions, so that a client with a seed draws the numbers of sysbench's thread.
//!
//! Sources: D. Blackman and S. Vigna, "xoroshiro128+" (2016; constants 55, 14, 36); the GNU C library's `random()`
//! (additive feedback, degree 31) as described in its manual and by P. Selinger, "The GLIBC random number
//! generator"; J. Preshing, "How to Generate a Sequence of Unique Random Integers"; W. Hörmann and G. Derflinger,
//! "Rejection-inversion to generate variates from monotone discrete distributions" (1996) for Zipf's law.

mod zipf;

use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;

use self::zipf::Zipf;

/// The C library's `random()`, from which streams are seeded.
#[derive(Debug)]
pub(crate) struct LibraryRandom {
    state: [i32; 34],
    at: usize,
}

impl LibraryRandom {
    pub(crate) fn new(seed: u32) -> Self {
        let mut state = [0_i32; 34];
        state[0] = seed.max(1).cast_signed();
        for i in 1..31 {
            let next = (16_807 * i64::from(state[i - 1])) % 2_147_483_647;
            let next = if next < 0 { next + 2_147_483_647 } else { next };
            state[i] = i32::try_from(next).unwrap_or(0);
        }
        for i in 31..34 {
            state[i] = state[i - 31];
        }
        let mut random = Self { state, at: 34 };
        for _ in 0..310 {
            random.next();
        }
        random
    }

    /// 31 bits.
    pub(crate) fn next(&mut self) -> u32 {
        let back = |n: usize| (self.at + 34 - n) % 34;
        let sum = self.state[back(31)].wrapping_add(self.state[back(3)]);
        self.state[self.at % 34] = sum;
        self.at = (self.at + 1) % 34;
        sum.cast_unsigned() >> 1
    }

    fn pair(&mut self) -> u64 {
        let high = u64::from(self.next());
        (high << 32) | u64::from(self.next())
    }

    pub(crate) fn stream(&mut self) -> Stream {
        Stream([self.pair(), self.pair()])
    }
}

/// One client's numbers: xoroshiro128+.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream([u64; 2]);

impl Stream {
    /// Streams of so many clients, in the order of their numbers.
    #[must_use]
    pub fn of_clients(seed: u64, clients: usize) -> Vec<Self> {
        let mut random = LibraryRandom::new(folded(seed));
        (0..clients).map(|_| random.stream()).collect()
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b] = self.0;
        let mixed = a ^ b;
        self.0 = [
            a.rotate_left(55) ^ mixed ^ (mixed << 14),
            mixed.rotate_left(36),
        ];
        a.wrapping_add(b)
    }

    /// In [0, 1), 52 bits.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from_bits(0x3FF0_0000_0000_0000 | (self.next() >> 12)) - 1.0
    }
}

/// sysbench's seeds are 32 bits; more of them count, too.
pub(crate) fn folded(seed: u64) -> u32 {
    let bytes = seed.to_le_bytes();
    let half =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    half(0) ^ half(4)
}

/// Which numbers are drawn where a script names no distribution.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// All alike.
    Uniform,
    /// The mean of some uniform ones.
    Gaussian,
    /// Most of them from a small part in the middle.
    #[default]
    Special,
    /// Small numbers most often, by a power.
    Pareto,
    /// Small numbers most often, by rank.
    Zipfian,
}

/// Settings of the distributions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where none is named.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Uniform numbers for one of `gaussian` and `special`.
    pub spec_iter: u32,
    /// Percent of the range that special numbers come from.
    pub spec_pct: u32,
    /// Percent of all numbers that are special.
    pub spec_res: u32,
    /// Shape of `pareto`, between 0 and 1.
    pub pareto_h: f64,
    /// Exponent of `zipfian`.
    pub zipfian_exp: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            kind: Kind::Special,
            spec_iter: 12,
            spec_pct: 1,
            spec_res: 75,
            pareto_h: 0.2,
            zipfian_exp: 0.8,
        }
    }
}

impl Settings {
    /// What is wrong with them.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.spec_iter == 0 {
            return Err("spec_iter is 0: one number is the mean of at least one".to_owned());
        }
        if self.spec_pct > 100 || self.spec_res >= 100 {
            return Err("spec_pct is a percentage, and spec_res one below 100".to_owned());
        }
        if !(self.pareto_h > 0.0 && self.pareto_h < 1.0) {
            return Err(format!(
                "pareto_h is {}: use a number between 0 and 1",
                self.pareto_h
            ));
        }
        if !self.zipfian_exp.is_finite() || self.zipfian_exp < 0.0 {
            return Err(format!(
                "zipfian_exp is {}: use 0 or more",
                self.zipfian_exp
            ));
        }
        Ok(())
    }
}

/// The distributions, with what is computed once.
#[derive(Debug)]
pub(crate) struct Distributions {
    kind: Kind,
    iterations: u32,
    iteration_share: f64,
    special_share: f64,
    special_half: f64,
    widening: f64,
    pareto_power: f64,
    zipf: Zipf,
}

impl Distributions {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            kind: settings.kind,
            iterations: settings.spec_iter,
            iteration_share: 1.0 / f64::from(settings.spec_iter),
            special_share: f64::from(settings.spec_pct) / 100.0,
            special_half: f64::from(settings.spec_pct) / 200.0,
            widening: 100.0 / (100.0 - f64::from(settings.spec_res)),
            pareto_power: settings.pareto_h.ln() / (1.0 - settings.pareto_h).ln(),
            zipf: Zipf::new(settings.zipfian_exp),
        }
    }

    /// By the distribution of the settings, from `low` to `high`.
    pub(crate) fn default(&self, stream: &mut Stream, low: u32, high: u32) -> u32 {
        match self.kind {
            Kind::Uniform => Self::uniform(stream, low, high),
            Kind::Gaussian => self.gaussian(stream, low, high),
            Kind::Special => self.special(stream, low, high),
            Kind::Pareto => self.pareto(stream, low, high),
            Kind::Zipfian => self.zipfian(stream, low, high),
        }
    }

    #[inline]
    pub(crate) fn uniform(stream: &mut Stream, low: u32, high: u32) -> u32 {
        whole(f64::from(low) + stream.fraction() * width(low, high))
    }

    pub(crate) fn gaussian(&self, stream: &mut Stream, low: u32, high: u32) -> u32 {
        let width = width(low, high);
        let sum = self.sum(|| stream.fraction() * width);
        low.wrapping_add(whole(sum * self.iteration_share))
    }

    /// One draw decides: most results lie evenly in the middle `special_share` of the range, the others are gaussian.
    pub(crate) fn special(&self, stream: &mut Stream, low: u32, high: u32) -> u32 {
        let span = f64::from(high.wrapping_sub(low));
        let first = stream.fraction();
        if first * (span * self.widening) < span {
            let sum = self.sum(|| stream.fraction());
            return whole(f64::from(low) + sum * span * self.iteration_share);
        }
        let middle = first * (span * self.special_share + 1.0);
        low.wrapping_add(whole(middle + (span / 2.0 - span * self.special_half)))
    }

    pub(crate) fn pareto(&self, stream: &mut Stream, low: u32, high: u32) -> u32 {
        let share = stream.fraction().powf(self.pareto_power);
        low.wrapping_add(whole(width(low, high) * share))
    }

    pub(crate) fn zipfian(&self, stream: &mut Stream, low: u32, high: u32) -> u32 {
        let count = high.wrapping_sub(low).wrapping_add(1).max(1);
        low.wrapping_add(self.zipf.rank(stream, count) - 1)
    }

    /// Added up one by one: another order gives other roundings.
    fn sum(&self, mut draw: impl FnMut() -> f64) -> f64 {
        (0..self.iterations).fold(0.0, |sum, _| sum + draw())
    }
}

/// How many numbers there are, by the arithmetic of 32 bits.
fn width(low: u32, high: u32) -> f64 {
    f64::from(high.wrapping_sub(low).wrapping_add(1))
}

/// As C converts on this processor: by way of 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as sysbench does it"
)]
fn whole(number: f64) -> u32 {
    number as i64 as u32
}

/// Put random digits for `#` and letters from a to z for `@`.
pub(crate) fn fill(stream: &mut Stream, format: &[u8], out: &mut Vec<u8>) {
    out.extend(format.iter().map(|&byte| match byte {
        b'#' => drawn(stream, b'0', b'9'),
        b'@' => drawn(stream, b'a', b'z'),
        other => other,
    }));
}

fn drawn(stream: &mut Stream, low: u8, high: u8) -> u8 {
    u8::try_from(Distributions::uniform(stream, low.into(), high.into())).unwrap_or(high)
}

/// Numbers of 32 bits of which none comes twice, for all clients of a drive together.
#[derive(Debug)]
pub(crate) struct Unique {
    index: AtomicU32,
    offset: u32,
    step: u32,
}

impl Unique {
    /// Of so many hosts that share a drive, each draws its own of them in turn.
    pub(crate) fn new(seed: u64, host: u32, hosts: u32) -> Self {
        let mut random = LibraryRandom::new(folded(seed) ^ 0x5EED);
        let (first, second) = (random.next(), random.next());
        let index = permuted(permuted(first).wrapping_add(0x682F_0161));
        let offset = permuted(permuted(second).wrapping_add(0x4679_0905));
        Self {
            index: AtomicU32::new(index.wrapping_add(host)),
            offset,
            step: hosts.max(1),
        }
    }

    pub(crate) fn next(&self) -> u32 {
        let index = self.index.fetch_add(self.step, Ordering::Relaxed);
        permuted(permuted(index).wrapping_add(self.offset) ^ 0x5BF0_3635)
    }
}

/// A permutation of 32 bits: quadratic residues of a prime that is 3 mod 4.
fn permuted(x: u32) -> u32 {
    const PRIME: u32 = 4_294_967_291;
    if x >= PRIME {
        return x;
    }
    let square = u64::from(x) * u64::from(x) % u64::from(PRIME);
    let residue = u32::try_from(square).unwrap_or(0);
    if x <= PRIME / 2 {
        residue
    } else {
        PRIME - residue
    }
}

#[cfg(test)]
mod tests;
