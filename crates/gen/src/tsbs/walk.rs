//! Random walks by normal steps: how every field of a host moves.

/// The parameters of a run of fields, each kind in an array of its own, so that a whole host is
/// stepped by vector instructions.
#[derive(Clone, Debug, Default)]
pub(super) struct Walks {
    mean: Vec<f64>,
    deviation: Vec<f64>,
    /// Without the sign bit for the walks that only rise.
    mask: Vec<u64>,
    min: Vec<f64>,
    max: Vec<f64>,
    start: Vec<f64>,
}

const ALL_BITS: u64 = u64::MAX;
const NO_SIGN: u64 = u64::MAX >> 1;

impl Walks {
    pub(super) fn len(&self) -> usize {
        self.mean.len()
    }

    /// The states before the first step.
    pub(super) fn start(&self) -> &[f64] {
        &self.start
    }

    fn push(&mut self, mean: f64, mask: u64, (min, max): (f64, f64), start: f64) {
        self.mean.push(mean);
        self.deviation.push(1.0);
        self.mask.push(mask);
        self.min.push(min);
        self.max.push(max);
        self.start.push(start);
    }

    /// `count` walks that only rise, by steps around `mean`.
    pub(super) fn rising(mut self, count: usize, mean: f64) -> Self {
        (0..count).for_each(|_| self.push(mean, NO_SIGN, (f64::NEG_INFINITY, f64::INFINITY), 0.0));
        self
    }

    /// `count` walks without bounds.
    pub(super) fn free(mut self, count: usize, mean: f64) -> Self {
        (0..count).for_each(|_| self.push(mean, ALL_BITS, (f64::NEG_INFINITY, f64::INFINITY), 0.0));
        self
    }

    /// `count` walks between 0 and `max`, from `start`.
    pub(super) fn bounded(mut self, count: usize, mean: f64, max: f64, start: f64) -> Self {
        (0..count).for_each(|_| self.push(mean, ALL_BITS, (0.0, max), start));
        self
    }

    /// Gives the walks from `first` on another deviation and upper bound.
    pub(super) fn rescale(&mut self, first: usize, count: usize, deviation: f64, max: f64) {
        self.deviation[first..first + count].fill(deviation);
        self.max[first..first + count].fill(max);
    }

    /// One step of each state by its draw of the standard normal distribution.
    #[inline]
    pub(super) fn step(&self, states: &mut [f64], draws: &[f64]) {
        let n = states.len();
        let (mean, deviation, mask) = (&self.mean[..n], &self.deviation[..n], &self.mask[..n]);
        let (min, max, draws) = (&self.min[..n], &self.max[..n], &draws[..n]);
        for i in 0..n {
            let step = draws[i] * deviation[i] + mean[i];
            let moved = states[i] + f64::from_bits(step.to_bits() & mask[i]);
            let moved = if moved > max[i] { max[i] } else { moved };
            states[i] = if moved < min[i] { min[i] } else { moved };
        }
    }
}
