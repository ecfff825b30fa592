//! How the states of a host become the fields of a row, for every format alike.

use super::tables::DISK_BYTES;

/// A state without its fraction, as TSBS cuts it off.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "fractions are cut off as TSBS does"
)]
pub(crate) fn whole(state: f64) -> i64 {
    state as i64
}

/// A whole number as the double that its text is read back as.
#[inline]
#[expect(
    clippy::cast_precision_loss,
    reason = "rounds to the nearest, as reading the text does"
)]
pub(crate) fn as_double(value: i64) -> f64 {
    value as f64
}

/// The fields of `disk`, from the free space.
pub(crate) fn disk(free: f64) -> [i64; 7] {
    let free = whole(free);
    let used = DISK_BYTES - free;
    let percent = whole(100.0 * (as_double(used) / as_double(DISK_BYTES)));
    let (inodes, inodes_free) = (DISK_BYTES / 4096, free / 4096);
    let inodes_used = inodes - inodes_free;
    [
        DISK_BYTES,
        free,
        used,
        percent,
        inodes,
        inodes_free,
        inodes_used,
    ]
}

/// The fields of `mem`: bytes, then per cents, from used, cached and buffered bytes.
///
/// TSBS shows the available bytes a second time as free, and computes the last per cent in another
/// order than the two before it.
pub(crate) fn memory(total: i64, states: &[f64]) -> ([i64; 6], [f64; 3]) {
    let [used, cached, buffered] = [0, 1, 2].map(|i| whole(states[i]));
    let available = total - used;
    let of_total = |part: i64| 100.0 * (as_double(part) / as_double(total));
    let buffered_percent = 100.0 * as_double(buffered) / as_double(total);
    (
        [total, available, used, available, cached, buffered],
        [of_total(used), of_total(available), buffered_percent],
    )
}
