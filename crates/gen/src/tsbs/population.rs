//! Which devices report in an epoch: the arithmetic that all of TSBS's simulators share.

use super::config::Settled;

/// The walk over epochs, and how many devices are active in the present one.
#[derive(Clone, Debug)]
pub(super) struct Population {
    devices: u32,
    initial: u64,
    epochs: u64,
    pub(super) epoch: u64,
    active: u64,
}

impl Population {
    pub(super) fn new(settled: &Settled) -> Self {
        let Settled {
            devices,
            initial,
            epochs,
            ..
        } = *settled;
        Self {
            devices,
            initial,
            epochs,
            epoch: 0,
            active: initial,
        }
    }

    /// Devices that report now: those of a lower index.
    pub(super) fn active(&self) -> u32 {
        u32::try_from(self.active)
            .unwrap_or(u32::MAX)
            .min(self.devices)
    }

    /// Goes to the next epoch. Devices start reporting at an even rate, so that all do in the last epoch.
    #[expect(
        clippy::cast_precision_loss,
        reason = "the proportion is TSBS's, in double precision"
    )]
    pub(super) fn next_epoch(&mut self) {
        self.epoch += 1;
        let missing = u64::from(self.devices).wrapping_sub(self.initial) as f64;
        let last = self.epochs.wrapping_sub(1) as f64;
        let started = go_uint64(missing * self.epoch as f64 / last);
        self.active = self.initial.wrapping_add(started);
    }
}

/// Go's `uint64(f)` on amd64: what is beyond 64 bits, or no number, becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion is what this function defines"
)]
fn go_uint64(value: f64) -> u64 {
    if value < 18_446_744_073_709_551_616.0 {
        value as u64
    } else {
        0
    }
}
