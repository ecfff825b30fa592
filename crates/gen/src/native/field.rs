//! How the fields move: each value from its place alone. The formulas are in the module's documentation.

use super::hash::{Place, UNIT, Use};

/// Epochs between two knots of what moves slowly, and of what moves fast.
const SLOW_EPOCHS: u64 = 2048;
const FAST_EPOCHS: u64 = 64;

/// A field of a table, or a state behind several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field {
    /// Wanders between 0 and `high`; whole.
    Gauge { high: f64 },
    /// The same in tenths.
    Tenths { high: f64 },
    /// Rises by `mean` for each epoch on average, never falls; whole.
    Counter { mean: f64 },
    /// As a counter, but may fall for a while; whole.
    Drift { mean: f64 },
    /// Wanders within one unit, somewhere between 0 and `span`; hundred thousandths.
    Position { span: f64 },
    /// Falls from 1 to 0 in 2,000 epochs, then begins again; tenths.
    Fuel,
    /// Keeps a level between 0 and 5,000 for 64 epochs; whole.
    Load,
}

/// Where a row is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    /// Number of the column among all columns of all use cases.
    pub(super) column: u64,
    pub(super) epoch: u64,
}

/// Two knots, and their weights at an epoch between them.
#[derive(Clone, Copy, Debug)]
struct Line {
    places: [Place; 2],
    weights: [f64; 2],
}

impl Line {
    /// A line through knots `every` so many epochs, from 0 to `height`.
    #[expect(clippy::cast_precision_loss, reason = "below 2048")]
    fn new(at: At, used: Use, every: u64, height: f64) -> Self {
        let first = Place::new(at.column, used, at.epoch / every);
        let passed = (at.epoch % every) as f64 / every as f64;
        Self {
            places: [first, first.next()],
            weights: [(1.0 - passed) * height * UNIT, passed * height * UNIT],
        }
    }

    #[inline]
    fn value(&self, key: u64) -> f64 {
        let [a, b] = self.places;
        self.between(a.number(key), b.number(key))
    }

    #[inline]
    fn pair(&self, key: u64) -> [f64; 2] {
        let [a, b] = self.places.map(|place| place.pair(key));
        [self.between(a[0], b[0]), self.between(a[1], b[1])]
    }

    #[inline]
    fn between(&self, a: f64, b: f64) -> f64 {
        let [weight_a, weight_b] = self.weights;
        a * weight_a + b * weight_b
    }
}

/// A walk from 0 to 1 that spends some time at its bounds: what a gauge is stretched from.
#[derive(Clone, Copy, Debug)]
struct Walk {
    slow: Line,
    fast: Line,
    noise: Place,
}

/// The parts of a walk that are slow, fast and noise, stretched by a quarter.
const SLOW: f64 = 1.25 * 0.80;
const FAST: f64 = 1.25 * 0.17;
const NOISE: f64 = 1.25 * 0.03;
const BELOW: f64 = 0.125;

impl Walk {
    fn new(at: At) -> Self {
        Self {
            slow: Line::new(at, Use::Slow, SLOW_EPOCHS, SLOW),
            fast: Line::new(at, Use::Fast, FAST_EPOCHS, FAST),
            noise: Place::new(at.column, Use::Noise, at.epoch),
        }
    }

    #[inline]
    fn value(&self, key: u64) -> f64 {
        let (slow, fast) = (self.slow.value(key), self.fast.value(key));
        Self::sum(slow, fast, self.noise.number(key))
    }

    /// The walks of this column, which has an even number, and of the next one.
    #[inline]
    fn pair(&self, key: u64) -> [f64; 2] {
        let (slow, fast) = (self.slow.pair(key), self.fast.pair(key));
        let noise = self.noise.pair(key);
        [0, 1].map(|i: usize| Self::sum(slow[i], fast[i], noise[i]))
    }

    #[inline]
    fn sum(slow: f64, fast: f64, noise: f64) -> f64 {
        let walk = slow + fast + noise * (NOISE * UNIT) - BELOW;
        let walk = if walk < 0.0 { 0.0 } else { walk };
        if walk > 1.0 { 1.0 } else { walk }
    }
}

/// Appends the values of two gauges, of an even column and the next one: for the price of little more than one.
pub(super) fn extend_gauges(at: At, keys: &[u64], high: [f64; 2], values: [&mut Vec<f64>; 2]) {
    let walk = Walk::new(at);
    let [first, second] = values.map(|values| {
        let start = values.len();
        values.resize(start + keys.len(), 0.0);
        &mut values[start..]
    });
    for ((&key, first), second) in keys.iter().zip(first).zip(second) {
        let [a, b] = walk.pair(key);
        (*first, *second) = (whole(high[0] * a), whole(high[1] * b));
    }
}

/// Without the fraction, for numbers from 0 to 2^51.
///
/// So near to 2^52 doubles are whole: the sum rounds to the nearest. Unlike a conversion, this is done for
/// several numbers at once.
#[inline]
fn whole(value: f64) -> f64 {
    const WHOLE: f64 = 4_503_599_627_370_496.0;
    let nearest = (value + WHOLE) - WHOLE;
    nearest - if nearest > value { 1.0 } else { 0.0 }
}

/// The share of its range that a gauge has, from 0 to 1, of the devices with these keys.
pub(super) fn extend_shares(at: At, keys: &[u64], values: &mut Vec<f64>) {
    let walk = Walk::new(at);
    values.extend(keys.iter().map(|&key| walk.value(key)));
}

impl Field {
    /// Appends the values of the devices with these keys.
    pub(super) fn extend(self, at: At, keys: &[u64], values: &mut Vec<f64>) {
        match self {
            Self::Gauge { high } => {
                let walk = Walk::new(at);
                values.extend(keys.iter().map(|&key| whole(high * walk.value(key))));
            }
            Self::Tenths { high } => {
                let (walk, high) = (Walk::new(at), 10.0 * high);
                values.extend(keys.iter().map(|&key| whole(high * walk.value(key)) / 10.0));
            }
            Self::Counter { mean } => extend_counter(at, keys, values, mean, 0.25 * mean),
            Self::Drift { mean } => extend_counter(at, keys, values, mean, 4.0 * mean),
            Self::Position { span } => extend_position(at, keys, values, span),
            Self::Fuel => extend_fuel(at, keys, values),
            Self::Load => {
                let place = Place::new(at.column, Use::Fast, at.epoch / FAST_EPOCHS);
                values.extend(
                    keys.iter()
                        .map(|&key| whole(place.number(key) * (5000.0 * UNIT))),
                );
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "epochs are below 2^48")]
fn extend_counter(at: At, keys: &[u64], values: &mut Vec<f64>, mean: f64, noise: f64) {
    let line = Line::new(at, Use::Fast, FAST_EPOCHS, 32.0 * mean);
    let place = Place::new(at.column, Use::Noise, at.epoch);
    let (base, noise) = (mean * at.epoch as f64, noise * UNIT);
    let value = |&key: &u64| whole(base + line.value(key) + place.number(key) * noise);
    values.extend(keys.iter().map(value));
}

fn extend_position(at: At, keys: &[u64], values: &mut Vec<f64>, span: f64) {
    const STEPS: f64 = 100_000.0;
    let (walk, home) = (Walk::new(at), Place::new(at.column, Use::Fixed, 0));
    let span = (span - 1.0) * STEPS * UNIT;
    let value = |&key: &u64| whole(home.number(key) * span + walk.value(key) * STEPS) / STEPS;
    values.extend(keys.iter().map(value));
}

#[expect(clippy::cast_precision_loss, reason = "below 2000")]
fn extend_fuel(at: At, keys: &[u64], values: &mut Vec<f64>) {
    const TANK_EPOCHS: u64 = 2000;
    let first = Place::new(at.column, Use::Fixed, 0);
    let used = (at.epoch % TANK_EPOCHS) as f64 / TANK_EPOCHS as f64;
    let value = |&key: &u64| {
        let used = used + first.number(key) * UNIT;
        whole((1.0 - (used - whole(used))) * 10.0) / 10.0
    };
    values.extend(keys.iter().map(value));
}
