//! The airports: facts of a data file, checked and read once.

use std::f64::consts::PI;

/// `iata,name,city,state,latitude,longitude,utc_winter,utc_summer,weight`, the busiest first; hours from UTC in
/// January and July 2008.
const FILE: &str = include_str!("airports.csv");

/// Mean radius of the Earth, statute miles (IUGG: 6371.0088 km).
const EARTH_MILES: f64 = 3958.7613;
/// The radius that Web Mercator (EPSG:3857) gives the Earth, metres.
const MERCATOR_METRES: f64 = 6_378_137.0;

/// An airport with scheduled flights.
pub(super) struct Airport {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    pub(super) city: &'static str,
    pub(super) state: &'static str,
    /// Degrees, at most four decimals.
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    /// Minutes that local time is before UTC, in winter and in summer.
    pub(super) utc_minutes: [i16; 2],
    /// How many flights it has, in units that only compare.
    pub(super) weight: u64,
}

/// All of them, in the order of the file.
pub(super) fn airports() -> Vec<Airport> {
    FILE.lines().skip(1).filter_map(airport).collect()
}

fn airport(line: &'static str) -> Option<Airport> {
    let mut fields = line.split(',');
    let mut next = || fields.next();
    Some(Airport {
        code: next()?,
        name: next()?,
        city: next()?,
        state: next()?,
        latitude: next()?.parse().ok()?,
        longitude: next()?.parse().ok()?,
        utc_minutes: [hours(next()?)?, hours(next()?)?],
        weight: next()?.parse().ok()?,
    })
}

fn hours(text: &str) -> Option<i16> {
    text.parse::<i16>().ok().map(|hours| hours * 60)
}

impl Airport {
    /// The great circle's length to another one, statute miles (haversine formula).
    pub(super) fn miles_to(&self, other: &Self) -> f64 {
        let half = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin().powi(2);
        let parallels = self.latitude.to_radians().cos() * other.latitude.to_radians().cos();
        let h =
            half(self.latitude, other.latitude) + parallels * half(self.longitude, other.longitude);
        2.0 * EARTH_MILES * h.sqrt().asin()
    }

    /// How far east another one lies, as a share of the way: 1 due east, −1 due west.
    pub(super) fn eastward_to(&self, other: &Self) -> f64 {
        let degrees = (other.longitude - self.longitude + 540.0).rem_euclid(360.0) - 180.0;
        let middle = f64::midpoint(self.latitude, other.latitude).to_radians();
        let east = degrees.to_radians() * middle.cos();
        let north = (other.latitude - self.latitude).to_radians();
        east / east.hypot(north)
    }

    /// Web Mercator's coordinates, whole metres.
    pub(super) fn mercator(&self) -> (f64, f64) {
        let x = MERCATOR_METRES * self.longitude.to_radians();
        let y = MERCATOR_METRES * (PI / 4.0 + self.latitude.to_radians() / 2.0).tan().ln();
        (x.round(), y.round())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn find(code: &str) -> Airport {
        let mut all = airports().into_iter();
        all.find(|airport| airport.code == code).unwrap()
    }

    #[test]
    fn every_line_is_an_airport_of_its_own() {
        let all = airports();
        assert_eq!(all.len(), FILE.lines().count() - 1);
        assert!(all.len() > 290);
        let codes: BTreeSet<_> = all.iter().map(|airport| airport.code).collect();
        assert_eq!(codes.len(), all.len());
        for airport in &all {
            assert!(
                airport.code.len() == 3 && airport.state.len() == 2,
                "{}",
                airport.code
            );
            assert!(airport.latitude > 13.0 && airport.latitude < 72.0);
            assert!(airport.weight > 0 && !airport.city.is_empty());
        }
    }

    #[test]
    fn distances_are_those_of_published_flights() {
        // As the Bureau of Transportation Statistics publishes them: on an ellipsoid, which a sphere meets within 0.5 %.
        for (from, to, miles) in [
            ("IAD", "TPA", 810.0),
            ("IND", "BWI", 515.0),
            ("JFK", "LAX", 2475.0),
            ("HNL", "OGG", 100.3),
            ("ATL", "ORD", 606.0),
            ("EWR", "HNL", 4962.0),
        ] {
            let found = find(from).miles_to(&find(to));
            let error: f64 = found / miles - 1.0;
            assert!(error.abs() < 0.005, "{from}-{to}: {found}");
        }
        assert!(find("JFK").eastward_to(&find("LAX")) < -0.9);
        assert!(find("ADK").eastward_to(&find("ANC")) > 0.7);
    }

    #[test]
    fn mercator_is_epsg_3857() {
        // -84.4269 degrees are 84.4269 / 180 of half the equator.
        let (x, y) = find("ATL").mercator();
        assert!((x - (-84.4269 / 180.0 * 20_037_508.34)).abs() <= 1.0, "{x}");
        assert!((y - 3_980_000.0).abs() < 10_000.0, "{y}");
    }
}
