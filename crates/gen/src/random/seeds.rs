//! Who gets which random stream of a pgbench run.

use super::Prng;

/// The base sequence from which pgbench seeds every other stream of a run, in a fixed order.
///
/// [`Streams::new`] hands them out in that order; use this directly only to add streams after it.
#[derive(Clone, Debug)]
pub struct SeedSequence {
    base: Prng,
}

impl SeedSequence {
    /// The sequence of `--random-seed=seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            base: Prng::from_seed(seed),
        }
    }

    /// The next stream (`initRandomState` of pgbench).
    pub const fn next_prng(&mut self) -> Prng {
        Prng::from_seed(self.base.next_u64())
    }

    /// The value of the automatic variable `default_seed`, drawn after the clients' streams and
    /// only where the user did not define that variable.
    pub const fn default_seed(&mut self) -> i64 {
        self.base.next_u64().cast_signed()
    }
}

/// The three streams of one worker thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStreams {
    /// Chooses the next script by weight: `uniform(0, total_weight - 1)`.
    pub choose: Prng,
    /// Draws the waits of a fixed rate: [`Prng::poisson_gap`].
    pub throttle: Prng,
    /// Decides which transactions are logged under a sampling rate.
    pub sample: Prng,
}

/// All streams of a run, as pgbench seeds them: clients in their order, then `default_seed`, then
/// the threads in theirs.
#[derive(Clone, Debug)]
pub struct Streams {
    /// One stream per client, for the random functions of its scripts.
    pub clients: Vec<Prng>,
    /// Value of the automatic variable `default_seed`; `None` where the user defines it.
    pub default_seed: Option<i64>,
    /// The streams of each thread.
    pub threads: Vec<ThreadStreams>,
}

impl Streams {
    /// Seeds a run of `clients` clients on `threads` threads. `default_seed_defined` says that the
    /// user gave `-D default_seed=…`: pgbench then draws no value for it.
    #[must_use]
    pub fn new(seed: u64, clients: usize, threads: usize, default_seed_defined: bool) -> Self {
        let mut sequence = SeedSequence::new(seed);
        let clients = (0..clients).map(|_| sequence.next_prng()).collect();
        let default_seed = (!default_seed_defined).then(|| sequence.default_seed());
        let threads = (0..threads)
            .map(|_| ThreadStreams {
                choose: sequence.next_prng(),
                throttle: sequence.next_prng(),
                sample: sequence.next_prng(),
            })
            .collect();
        Self {
            clients,
            default_seed,
            threads,
        }
    }
}
