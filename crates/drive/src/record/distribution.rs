//! A distribution over a whole drive, however long: counts of 64 bits, where those of an interval have 32.

use hdrhistogram::Histogram;
use serde_json::{Map, Value};

use super::Latency;

/// The percentiles that are given.
const PERCENTILES: [f64; 5] = [50.0, 90.0, 95.0, 99.0, 99.9];

/// Sums of the histograms of intervals.
#[derive(Debug)]
pub struct Distribution(Histogram<u64>);

impl Default for Distribution {
    fn default() -> Self {
        // The same buckets as an interval's.
        Self(Histogram::new_from(&Latency::new().histogram))
    }
}

impl Distribution {
    /// Add an interval's samples.
    pub fn add(&mut self, latency: &Latency) {
        for bucket in latency.histogram.iter_recorded() {
            let (value, count) = (
                bucket.value_iterated_to(),
                bucket.count_since_last_iteration(),
            );
            self.0.saturating_record_n(value, count);
        }
    }

    /// Percentile (as text) to nanoseconds, the middle of its bucket; nothing without samples.
    #[must_use]
    pub fn percentiles(&self) -> Map<String, Value> {
        let asked = PERCENTILES.iter().filter(|_| !self.0.is_empty());
        let value = |p: f64| {
            self.0
                .median_equivalent(self.0.value_at_quantile(quantile(p)))
        };
        asked.map(|&p| (p.to_string(), value(p).into())).collect()
    }
}

/// The rank of a percentile is a whole number where it should be one: of a thousand, p99.9 is the 999th.
fn quantile(percentile: f64) -> f64 {
    percentile / 100.0 - 1e-12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_s_samples_keep_their_places_and_more_than_32_bits_of_them() {
        let mut latency = Latency::new();
        latency.histogram.record_n(1_000, u32::MAX).unwrap();
        latency.histogram.record_n(5_000_000, 1).unwrap();
        let mut sum = Distribution::default();
        assert!(sum.percentiles().is_empty());
        for _ in 0..3 {
            sum.add(&latency);
        }
        assert_eq!(sum.0.len(), 3 * (u64::from(u32::MAX) + 1));
        assert_eq!(sum.0.count_at(1_000), 3 * u64::from(u32::MAX));
        let mut few = Distribution::default();
        let mut latency = Latency::new();
        (1..=1000_u64).for_each(|us| latency.record(us * 1_000));
        few.add(&latency);
        for (percentile, us) in [
            ("50", 500.0),
            ("90", 900.0),
            ("95", 950.0),
            ("99", 990.0),
            ("99.9", 999.0),
        ] {
            let found = few.percentiles()[percentile].as_f64().unwrap() / 1e3;
            assert!((found - us).abs() <= us * 1e-3, "p{percentile}: {found} µs");
        }
    }
}
