//! Zipf's law: rank k of n with a probability proportional to k to the power of minus an exponent.

use super::{Stream, whole};

/// Draws by rejection from an inverted hat function, at any n without a table.
#[derive(Debug)]
pub(crate) struct Zipf {
    exponent: f64,
    /// The share of the hat below which a rank is taken without a look at its probability.
    sure: f64,
}

impl Zipf {
    pub(crate) fn new(exponent: f64) -> Self {
        let mut zipf = Self {
            exponent,
            sure: 0.0,
        };
        zipf.sure = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    /// From 1 to `count`.
    pub(crate) fn rank(&self, stream: &mut Stream, count: u32) -> u32 {
        let last = self.area(f64::from(count) + 0.5);
        let first = self.area(1.5) - 1.0;
        loop {
            let under = last + stream.fraction() * (first - last);
            let at = self.inverse(under);
            let rank = whole(at + 0.5).clamp(1, count);
            let k = f64::from(rank);
            if k - at <= self.sure || under >= self.area(k + 0.5) - self.weight(k) {
                return rank;
            }
        }
    }

    /// Of a rank, without the norm.
    fn weight(&self, rank: f64) -> f64 {
        (-self.exponent * rank.ln()).exp()
    }

    /// The integral of the weight.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        grown((1.0 - self.exponent) * log) * log
    }

    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.exponent)).max(-1.0);
        (shrunk(scaled) * area).exp()
    }
}

/// (exp(x) - 1) / x
fn grown(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0
    }
}

/// ln(1 + x) / x
fn shrunk(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x / 2.0
    }
}
