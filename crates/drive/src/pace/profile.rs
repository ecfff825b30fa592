//! A rate that changes: ramps and steps, and when the n-th start is expected under it.

use serde::{Deserialize, Serialize};

use crate::error::DriveError;

/// A time in which the rate goes evenly from one value to another; a step has the same value twice.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Starts per second at its begin, over all clients.
    pub from_per_s: f64,
    /// The same at its end.
    pub to_per_s: f64,
    /// How long it lasts.
    pub length_s: f64,
}

impl Piece {
    /// Starts expected within it: the integral of the rate.
    fn starts(&self) -> f64 {
        f64::midpoint(self.from_per_s, self.to_per_s) * self.length_s
    }

    /// Seconds from its begin until so many starts are expected.
    fn time_of(&self, starts: f64) -> f64 {
        let slope = (self.to_per_s - self.from_per_s) / self.length_s;
        // The root of from·t + slope·t²/2 = starts, in the form that does not cancel, nor divide by a slope of 0.
        let root = (self.from_per_s * self.from_per_s + 2.0 * slope * starts)
            .max(0.0)
            .sqrt();
        let time_s = 2.0 * starts / (self.from_per_s + root);
        if time_s.is_finite() {
            time_s.clamp(0.0, self.length_s)
        } else {
            0.0 // 0/0: nothing is expected before the begin of a ramp from 0
        }
    }
}

/// Refuse pieces that are no rate.
pub(crate) fn check(pieces: &[Piece]) -> Result<(), DriveError> {
    let refuse = |message: &str, hint: &str| Err(DriveError::bad_spec(message.to_owned(), hint));
    let Some(last) = pieces.last() else {
        return refuse("a varying pace has no pieces", "give at least one");
    };
    let is_rate = |rate: f64| rate.is_finite() && rate >= 0.0;
    if !pieces
        .iter()
        .all(|p| is_rate(p.from_per_s) && is_rate(p.to_per_s))
    {
        return refuse("a rate of the pace is below 0", "use 0 or more");
    }
    if !pieces
        .iter()
        .all(|p| p.length_s.is_finite() && p.length_s > 0.0)
    {
        return refuse(
            "a piece of the pace lasts no time",
            "give length_s above zero",
        );
    }
    if last.to_per_s <= 0.0 {
        return refuse(
            "the last rate of the pace is 0",
            "it goes on to the end: use a rate above zero",
        );
    }
    Ok(())
}

/// Where the expected starts of a changing rate lie. After the last piece its last rate goes on.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    pieces: Vec<Piece>,
    /// The piece that the latest answer was in.
    at: usize,
    /// When it begins, seconds.
    begin_s: f64,
    /// Starts that are expected before it.
    before: f64,
}

impl Profile {
    /// From the begin of the first piece.
    pub(super) fn new(pieces: Vec<Piece>) -> Self {
        Self {
            pieces,
            at: 0,
            begin_s: 0.0,
            before: 0.0,
        }
    }

    /// Seconds after the begin at which so many starts are expected; `starts` must never decrease.
    pub(super) fn time_of(&mut self, starts: f64) -> f64 {
        while let Some(piece) = self.pieces.get(self.at) {
            let within = piece.starts();
            let left = (starts - self.before).max(0.0);
            if left < within {
                return self.begin_s + piece.time_of(left);
            }
            self.begin_s += piece.length_s;
            self.before += within;
            self.at += 1;
        }
        let rate = self.pieces.last().map_or(1.0, |last| last.to_per_s);
        self.begin_s + (starts - self.before).max(0.0) / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let piece = (0.0_f64..5_000.0, 0.0_f64..5_000.0, 0.01_f64..100.0).prop_map(
            |(from_per_s, to_per_s, length_s)| Piece {
                from_per_s,
                to_per_s,
                length_s,
            },
        );
        prop::collection::vec(piece, 1..6).prop_map(|mut pieces| {
            pieces.last_mut().unwrap().to_per_s += 0.01;
            pieces
        })
    }

    /// The integral of the rate from the begin up to `time_s`, summed piece by piece.
    fn expected(pieces: &[Piece], time_s: f64) -> f64 {
        let (mut begin_s, mut sum) = (0.0, 0.0);
        for piece in pieces {
            let t = (time_s - begin_s).clamp(0.0, piece.length_s);
            let slope = (piece.to_per_s - piece.from_per_s) / piece.length_s;
            sum += t * (piece.from_per_s + slope * t / 2.0);
            begin_s += piece.length_s;
        }
        sum + (time_s - begin_s).max(0.0) * pieces.last().unwrap().to_per_s
    }

    proptest! {
        #[test]
        fn the_integral_up_to_a_start_s_time_is_its_number(pieces in pieces(), shares in prop::collection::vec(0.0_f64..1.5, 1..20)) {
            let whole: f64 = pieces.iter().map(Piece::starts).sum();
            let mut numbers: Vec<f64> = shares.iter().map(|share| share * whole).collect();
            numbers.sort_by(f64::total_cmp);
            let mut profile = Profile::new(pieces.clone());
            let mut last_s = 0.0;
            for number in numbers {
                let time_s = profile.time_of(number);
                prop_assert!(time_s >= last_s, "{time_s} after {last_s}");
                last_s = time_s;
                let found = expected(&pieces, time_s);
                prop_assert!((found - number).abs() <= 1e-6 * (1.0 + whole), "{found} for {number} at {time_s}");
            }
        }
    }

    #[test]
    fn a_pause_and_a_ramp_from_nothing_have_their_times() {
        let piece = |from_per_s, to_per_s, length_s| Piece {
            from_per_s,
            to_per_s,
            length_s,
        };
        let mut profile = Profile::new(vec![
            piece(10.0, 10.0, 1.0),
            piece(0.0, 0.0, 5.0),
            piece(0.0, 20.0, 2.0),
        ]);
        let times: Vec<f64> = [0.0, 5.0, 10.0, 15.0, 30.0, 50.0]
            .map(|starts| profile.time_of(starts))
            .into();
        let root = 6.0 + 2.0_f64.sqrt() / 2.0_f64.sqrt(); // 5 t² = 5
        assert_eq!(times, [0.0, 0.5, 6.0, root, 8.0, 9.0]);
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        let piece = |from_per_s, to_per_s, length_s| Piece {
            from_per_s,
            to_per_s,
            length_s,
        };
        for (pieces, words) in [
            (vec![], "no pieces"),
            (vec![piece(-1.0, 5.0, 1.0)], "below 0"),
            (vec![piece(1.0, f64::NAN, 1.0)], "below 0"),
            (vec![piece(1.0, 5.0, 0.0)], "no time"),
            (vec![piece(1.0, 0.0, 1.0)], "last rate"),
        ] {
            let said = check(&pieces).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        assert!(check(&[piece(0.0, 1.0, 1.0)]).is_ok());
    }
}
