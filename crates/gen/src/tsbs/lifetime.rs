//! How many fields a `devops-generic` host has and how long it lives: both follow Zipf's law.

use super::go_rand::{GoRand, Zipf};

/// TSBS draws these from generators of their own, always with this seed.
const SEED: i64 = 1234;

/// `count` draws from 1 to `max`. A draw of `max` stays, every other one is raised by one.
fn draws(count: u32, max: u64) -> Vec<u64> {
    let zipf = Zipf::new(1.01, 1.0, max);
    let mut rng = GoRand::new(SEED);
    let mut draw = || zipf.draw(&mut rng);
    (0..count)
        .map(|_| draw())
        .map(|value| {
            if value == max {
                value
            } else {
                value.wrapping_add(1)
            }
        })
        .collect()
}

/// Number of fields of each host; the last one has all.
pub(super) fn metric_counts(hosts: u32, metrics: usize) -> Vec<usize> {
    let counts = draws(hosts - 1, metrics as u64);
    let counts = counts
        .into_iter()
        .map(|count| usize::try_from(count).unwrap_or(metrics));
    counts.chain([metrics]).collect()
}

/// When a host starts reporting and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    /// The epoch of the first report.
    started: Option<u64>,
    /// Number of epochs; 0 is for ever.
    epochs: u64,
}

impl Lifetime {
    /// Lifetimes of all hosts: half live for ever, the others the shorter the higher their index.
    pub(super) fn all(hosts: u32, epochs: u64) -> Vec<Self> {
        let mut short = draws(hosts / 2, epochs);
        short.sort_unstable_by(|a, b| b.cmp(a));
        let lasting = std::iter::repeat_n(0, (hosts - hosts / 2) as usize);
        lasting
            .chain(short)
            .map(|epochs| Self {
                started: None,
                epochs,
            })
            .collect()
    }

    /// Whether an active host reports in this epoch. The first call starts its life.
    pub(super) fn reports(&mut self, epoch: u64) -> bool {
        let started = *self.started.get_or_insert(epoch);
        self.epochs == 0 || started.wrapping_add(self.epochs) > epoch
    }
}
