//! How evenly the clients of a script got on.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Events of each client, and the time that they took; the warm-up's are among them.
#[derive(Debug)]
pub(super) struct Fairness(Vec<Share>);

#[derive(Debug, Default)]
struct Share {
    events: AtomicU64,
    busy_ns: AtomicU64,
}

impl Fairness {
    pub(super) fn new(clients: usize) -> Self {
        Self((0..clients).map(|_| Share::default()).collect())
    }

    /// A client's event has ended.
    pub(super) fn book(&self, client: usize, busy_ns: u64) {
        let share = &self.0[client];
        share.events.fetch_add(1, Ordering::Relaxed);
        share.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
    }

    /// Means and standard deviations over the clients.
    pub(super) fn account(&self) -> Value {
        let (events, events_spread) = moments(self.0.iter().map(|share| &share.events));
        let (busy_ns, busy_spread_ns) = moments(self.0.iter().map(|share| &share.busy_ns));
        json!({
            "events_mean": events,
            "events_stddev": events_spread,
            "busy_mean_ns": busy_ns,
            "busy_stddev_ns": busy_spread_ns,
        })
    }
}

fn moments<'s>(values: impl Iterator<Item = &'s AtomicU64> + Clone) -> (f64, f64) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "figures are shown with a few digits"
    )]
    let values = values.map(|value| value.load(Ordering::Relaxed) as f64);
    let (count, sum) =
        (values.clone()).fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    if count == 0.0 {
        return (0.0, 0.0);
    }
    let mean: f64 = sum / count;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_compared_with_their_mean() {
        let fairness = Fairness::new(2);
        fairness.book(0, 10);
        fairness.book(0, 20);
        fairness.book(0, 30);
        fairness.book(1, 40);
        let account = fairness.account();
        assert_eq!(account["events_mean"], 2.0);
        assert_eq!(account["events_stddev"], 1.0);
        assert_eq!(account["busy_mean_ns"], 50.0);
        assert_eq!(account["busy_stddev_ns"], 10.0);
    }
}
