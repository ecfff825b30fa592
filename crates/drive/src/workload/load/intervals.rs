//! TSBS's insert intervals: least times between the starts of a client's batches.

use loadstone_gen::random::Prng;

use crate::error::DriveError;

const SECOND_NS: u64 = 1_000_000_000;
/// Beyond a week nobody waits.
const SECONDS_MAX: u64 = 7 * 86_400;

/// Whole seconds, from a range that has its begin and not its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    from_s: u64,
    to_s: u64,
}

impl Interval {
    /// `a,b-c`: the first for the first client and so on, the last for all that are left; empty: none at all.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, DriveError> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        text.split(',')
            .map(|one| {
                Self::parse(one).ok_or_else(|| {
                    DriveError::bad_spec(
                        format!("{one:?} in insert_intervals {text:?} is not an interval"),
                        "write whole seconds or ranges, separated by commas: 2 or 0-3",
                    )
                })
            })
            .collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let seconds = |text: &str| text.parse().ok().filter(|&s: &u64| s <= SECONDS_MAX);
        match text.split_once('-') {
            None => seconds(text).map(|s| Self { from_s: s, to_s: s }),
            Some((from, to)) => {
                let (from_s, to_s) = (seconds(from)?, seconds(to)?);
                (from_s < to_s).then_some(Self { from_s, to_s })
            }
        }
    }

    /// Nanoseconds to the next start.
    pub(crate) fn draw_ns(self, prng: &mut Prng) -> u64 {
        if self.from_s == self.to_s {
            return self.from_s * SECOND_NS;
        }
        let bound = |s: u64| i64::try_from(s).unwrap_or(i64::MAX);
        let drawn = prng.uniform(bound(self.from_s), bound(self.to_s - 1));
        u64::try_from(drawn).unwrap_or(0) * SECOND_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_tsbs_reads_them() {
        assert_eq!(Interval::parse_all("").unwrap(), Vec::new());
        let both = Interval::parse_all("1,2-4").unwrap();
        let mut prng = Prng::from_seed(1);
        assert_eq!(both[0].draw_ns(&mut prng), SECOND_NS);
        let drawn: std::collections::BTreeSet<u64> =
            (0..100).map(|_| both[1].draw_ns(&mut prng)).collect();
        assert_eq!(Vec::from_iter(drawn), vec![2 * SECOND_NS, 3 * SECOND_NS]);
        for wrong in ["x", "3-3", "4-2", "1,", "-1", "1.5", "1-2-3", "999999999"] {
            let error = Interval::parse_all(wrong).unwrap_err();
            assert!(error.to_string().contains("is not an interval"), "{wrong}");
        }
    }
}
