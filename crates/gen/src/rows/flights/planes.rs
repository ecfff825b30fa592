//! The planes: a number at the tail, and what it stands for, the same in every row.

use crate::mix::{GAMMA, finalize};

/// `carrier,manufacturer,model,engine,first_tail,letters,count,from_year,to_year`: the planes of one model that a carrier
/// has, in the order of the carriers; those for long ways come last.
const FILE: &str = include_str!("fleets.csv");

/// A line of it.
pub(super) struct Model {
    pub(super) carrier: &'static str,
    pub(super) manufacturer: &'static str,
    pub(super) name: &'static str,
    pub(super) engine: &'static str,
    /// Tail numbers: the first number, the letters behind it, how many there are.
    tails: (u16, &'static str, u16),
    /// First and last year in which they were built.
    years: (u16, u16),
}

/// All models of all carriers.
pub(super) fn models() -> Vec<Model> {
    FILE.lines().skip(1).filter_map(model).collect()
}

fn model(line: &'static str) -> Option<Model> {
    let mut fields = line.split(',');
    let mut next = || fields.next();
    Some(Model {
        carrier: next()?,
        manufacturer: next()?,
        name: next()?,
        engine: next()?,
        tails: (next()?.parse().ok()?, next()?, next()?.parse().ok()?),
        years: (next()?.parse().ok()?, next()?.parse().ok()?),
    })
}

/// One plane.
pub(super) struct Plane {
    pub(super) tail: String,
    /// Number of the carrier whose it is.
    pub(super) carrier: u16,
    /// Its number among the kinds of planes; 0: the registry knows nothing of it.
    pub(super) kind: u16,
    pub(super) year: i16,
    /// Day on which its certificate was issued, since 1970.
    pub(super) issued: i32,
}

/// Of a hundred planes, so many are not in the registry.
const UNKNOWN_OF_100: u64 = 8;
/// Whose plane it is, with shares of a thousand.
pub(super) const OWNERS: [(&str, u64); OWNER_COUNT as usize] = [
    ("Corporation", 962),
    ("Foreign Corporation", 18),
    ("Co-Owner", 11),
    ("Individual", 6),
    ("Partnership", 3),
];
const OWNER_COUNT: u16 = 5;
const DAYS_OF_400_YEARS: i32 = 146_097;
/// Days from 1970 to 2000.
const DAYS_TO_2000: i32 = 10_957;
/// The last day on which a certificate can be from: the end of 2007.
const LAST_ISSUED: i32 = 13_878;

impl Model {
    /// All of them; `number` is that of the model over all carriers, `carrier` its carrier's.
    pub(super) fn planes(&self, number: u16, carrier: u16) -> impl Iterator<Item = Plane> {
        let (first, letters, count) = self.tails;
        let (from, to) = self.years;
        (0..count).map(move |index| {
            let word = finalize((u64::from(number) << 16 | u64::from(index)).wrapping_mul(GAMMA));
            // They are delivered one after the other.
            let year = from
                + u16::try_from(u32::from(to - from) * u32::from(index) / u32::from(count))
                    .unwrap_or(0);
            let built = day_of_new_year(year.into()) + below(word >> 40, 365);
            // Half of the certificates are the first ones.
            let later = if word & 1 == 0 {
                30
            } else {
                below(word >> 20, 4000)
            };
            let unknown = (word >> 8) % 100 < UNKNOWN_OF_100;
            Plane {
                tail: format!("N{}{letters}", first + index),
                carrier,
                kind: if unknown {
                    0
                } else {
                    kind(number, owner((word >> 16) % 1000))
                },
                year: i16::try_from(year).unwrap_or(0),
                issued: (built + later).min(LAST_ISSUED),
            }
        })
    }
}

fn below(word: u64, bound: u64) -> i32 {
    i32::try_from(word % bound).unwrap_or(0)
}

/// The number of the owner's kind that a number below 1000 stands for.
fn owner(mut number: u64) -> u16 {
    for (index, (_, share)) in (0..).zip(OWNERS) {
        if number < share {
            return index;
        }
        number -= share;
    }
    0
}

/// A kind is a model and a kind of owner.
fn kind(model: u16, owner: u16) -> u16 {
    1 + model * OWNER_COUNT + owner
}

/// Day of the first of January, since 1970.
fn day_of_new_year(year: i32) -> i32 {
    let before = year - 1;
    let days = 365 * before + before / 4 - before / 100 + before / 400;
    // Year 2000 began 1999 years after year 1.
    days - (5 * DAYS_OF_400_YEARS - 366) + DAYS_TO_2000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_begin_when_they_do() {
        for (year, day) in [
            (1970, 0),
            (1971, 365),
            (2000, 10_957),
            (2001, 11_323),
            (2008, 13_879),
        ] {
            assert_eq!(day_of_new_year(year), day, "{year}");
        }
    }

    #[test]
    fn every_line_is_a_model() {
        assert_eq!(models().len(), FILE.lines().count() - 1);
    }

    #[test]
    fn owners_have_their_shares() {
        assert_eq!(OWNERS.iter().map(|(_, share)| share).sum::<u64>(), 1000);
        assert_eq!((owner(0), owner(961), owner(962), owner(999)), (0, 0, 1, 4));
    }
}
