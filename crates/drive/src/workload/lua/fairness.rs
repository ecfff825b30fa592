//! How evenly the clients of a script got on.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Events of each client, and the time that they took; the warm-up's are among them.
#[derive(Debug)]
pub(super) struct Fairness {
    /// Number of the first client.
    first: usize,
    shares: Vec<Share>,
}

#[derive(Debug, Default)]
struct Share {
    events: AtomicU64,
    busy_ns: AtomicU64,
}

impl Fairness {
    /// Of the clients with these numbers.
    pub(super) fn new(clients: Range<usize>) -> Self {
        Self {
            first: clients.start,
            shares: clients.map(|_| Share::default()).collect(),
        }
    }

    /// A client's event has ended.
    pub(super) fn book(&self, client: usize, busy_ns: u64) {
        self.add(client, 1, busy_ns);
    }

    fn add(&self, client: usize, events: u64, busy_ns: u64) {
        let share = client.checked_sub(self.first);
        if let Some(share) = share.and_then(|place| self.shares.get(place)) {
            share.events.fetch_add(events, Ordering::Relaxed);
            share.busy_ns.fetch_add(busy_ns, Ordering::Relaxed);
        }
    }

    /// Number, events and busy nanoseconds of each client.
    pub(super) fn clients(&self) -> Vec<(usize, u64, u64)> {
        let read = |value: &AtomicU64| value.load(Ordering::Relaxed);
        (self.first..)
            .zip(&self.shares)
            .map(|(client, share)| (client, read(&share.events), read(&share.busy_ns)))
            .collect()
    }

    /// Add what clients of another host have done.
    pub(super) fn join(&self, clients: &[(usize, u64, u64)]) {
        for &(client, events, busy_ns) in clients {
            self.add(client, events, busy_ns);
        }
    }

    /// Means and standard deviations over the clients.
    pub(super) fn account(&self) -> Value {
        let (events, events_spread) = moments(self.shares.iter().map(|share| &share.events));
        let (busy_ns, busy_spread_ns) = moments(self.shares.iter().map(|share| &share.busy_ns));
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
        let fairness = Fairness::new(0..2);
        fairness.book(0, 10);
        fairness.book(0, 20);
        fairness.book(0, 30);
        fairness.book(1, 40);
        let account = fairness.account();
        assert_eq!(account["events_mean"], 2.0);
        assert_eq!(account["events_stddev"], 1.0);
        assert_eq!(account["busy_mean_ns"], 50.0);
        assert_eq!(account["busy_stddev_ns"], 10.0);
        let joined = Fairness::new(0..2);
        for (client, busy_ns) in [(0, [10, 20, 30].as_slice()), (1, [40].as_slice())] {
            let of_host = Fairness::new(client..client + 1);
            for &ns in busy_ns {
                of_host.book(client, ns);
            }
            joined.join(&of_host.clients());
        }
        assert_eq!(joined.account(), account);
    }
}
