//! Who flies from where to where, how far, how long, and with which planes: the same for every seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use super::airports::{Airport, airports};
use super::alias_table::AliasTable;
use super::carriers::{CARRIERS, Carrier, REGIONAL, keeper};
use super::planes::{Plane, models};

/// One carrier's flights in one direction.
pub(super) struct Route {
    pub(super) carrier: u16,
    pub(super) origin: u16,
    pub(super) dest: u16,
    /// Statute miles.
    pub(super) distance: i16,
    /// Minutes in the air, on average.
    pub(super) air: i16,
    /// Minutes that local time is later at the end, in winter and in summer.
    pub(super) zone: [i16; 2],
    /// Its number among those of the carrier.
    pub(super) ordinal: u16,
    /// The planes that fly it: the first, and how many.
    pub(super) planes: (u16, u16),
}

/// Everything that does not depend on the row.
pub(super) struct Network {
    pub(super) airports: Vec<Airport>,
    pub(super) routes: Vec<Route>,
    /// Which route a flight is on.
    pub(super) draw: AliasTable,
    /// Plane 0 is none.
    pub(super) planes: Vec<Plane>,
}

pub(super) static NETWORK: LazyLock<Network> = LazyLock::new(Network::new);

/// Of a pair of airports, in no direction.
struct Pair {
    ends: [usize; 2],
    miles: f64,
    weight: u64,
}

/// Weights of routes are made this large, so that rounding them does not matter.
const FLIGHT_WEIGHT: u128 = 1 << 20;
/// Shorter ways than this are driven, but over water.
const DRIVEN_MILES: f64 = 60.0;
/// From so many miles on only planes for long ways fly.
const LONG_MILES: i16 = 2500;

/// How many fly up to so many miles, against the busiest middle ones as 1000.
const TASTE: [(f64, u64); 7] = [
    (100.0, 2000),
    (175.0, 3000),
    (300.0, 2000),
    (800.0, 1000),
    (1500.0, 600),
    (2600.0, 400),
    (f64::INFINITY, 250),
];

impl Network {
    fn new() -> Self {
        let airports = airports();
        let (planes, fleets) = planes();
        let mut pairs: Vec<_> = CARRIERS
            .iter()
            .map(|carrier| flown(carrier, &airports))
            .collect();
        add_left_over(&mut pairs, &airports);
        let (mut routes, mut weights) = (Vec::new(), Vec::new());
        for ((number, carrier), pairs) in (0..).zip(CARRIERS).zip(&pairs) {
            let total: u128 = pairs.iter().map(|pair| 2 * u128::from(pair.weight)).sum();
            let mut ordinal = 0;
            for pair in pairs {
                let share = u128::from(pair.weight) * u128::from(carrier.flights) * FLIGHT_WEIGHT;
                for [from, to] in [pair.ends, [pair.ends[1], pair.ends[0]]] {
                    let ends = [&airports[from], &airports[to]];
                    let mut route = Route::new(pair.miles, ends);
                    (route.carrier, route.ordinal) = (number, ordinal);
                    (route.origin, route.dest) = (small(from), small(to));
                    route.planes = fleets[usize::from(number)].planes(route.distance);
                    routes.push(route);
                    weights.push(u64::try_from(share / total).unwrap_or(u64::MAX));
                    ordinal += 1;
                }
            }
        }
        let draw = AliasTable::new(&weights);
        Self {
            airports,
            routes,
            draw,
            planes,
        }
    }
}

/// The planes of a carrier: all of them, and where those for long ways begin.
struct Fleet {
    all: Range<u16>,
    long: u16,
}

impl Fleet {
    fn planes(&self, distance: i16) -> (u16, u16) {
        let first = if distance < LONG_MILES {
            self.all.start
        } else {
            self.long
        };
        (first, self.all.end - first)
    }
}

/// All planes, after one that is none, and those of each carrier.
fn planes() -> (Vec<Plane>, Vec<Fleet>) {
    let nothing = Plane {
        tail: String::new(),
        carrier: 0,
        kind: 0,
        year: 0,
        issued: 0,
    };
    let (mut planes, mut fleets) = (vec![nothing], Vec::new());
    let models = models();
    for (carrier, Carrier { code, .. }) in (0..).zip(CARRIERS) {
        let first = small(planes.len());
        let mut long = first;
        let models = (0..).zip(&models);
        for (number, model) in models.filter(|(_, model)| model.carrier == *code) {
            long = small(planes.len());
            planes.extend(model.planes(number, carrier));
        }
        fleets.push(Fleet {
            all: first..small(planes.len()),
            long,
        });
    }
    (planes, fleets)
}

fn small(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// The pairs that a carrier flies: the heaviest.
fn flown(carrier: &Carrier, airports: &[Airport]) -> Vec<Pair> {
    let mut found: BTreeMap<[usize; 2], Pair> = BTreeMap::new();
    for (code, share) in carrier.hubs {
        let Some(hub) = place(airports, code) else {
            continue;
        };
        for (other, airport) in airports.iter().enumerate() {
            if other == hub || !carrier.serves(airport) {
                continue;
            }
            let miles = airports[hub].miles_to(airport);
            let is_near = miles < DRIVEN_MILES || miles > f64::from(carrier.miles_max);
            let strange =
                |airport: &Airport| keeper(airport.state).is_some() && airport.weight < 1000;
            let foreign = strange(airport)
                && keeper(airport.state).is_some_and(|(code, _)| code != carrier.code);
            if is_near || foreign {
                continue;
            }
            let ends = [hub.min(other), hub.max(other)];
            let weight = share * airport.weight * taste(miles);
            let pair = found.entry(ends).or_insert(Pair {
                ends,
                miles,
                weight: 0,
            });
            pair.weight += weight;
        }
    }
    let mut pairs: Vec<_> = found.into_values().collect();
    pairs.sort_by_key(|pair| (u64::MAX - pair.weight, pair.ends));
    pairs.truncate(carrier.pairs);
    pairs
}

fn taste(miles: f64) -> u64 {
    let found = TASTE.iter().find(|(most, _)| miles < *most);
    found.map_or(0, |(_, share)| *share)
}

fn place(airports: &[Airport], code: &str) -> Option<usize> {
    airports.iter().position(|airport| airport.code == code)
}

/// Gives each airport to which nobody flies one pair.
fn add_left_over(pairs: &mut [Vec<Pair>], airports: &[Airport]) {
    let served: BTreeSet<_> = pairs.iter().flatten().flat_map(|pair| pair.ends).collect();
    for (left, airport) in airports.iter().enumerate() {
        if served.contains(&left) {
            continue;
        }
        let hubs = CARRIERS
            .iter()
            .zip(0_usize..)
            .flat_map(|(carrier, number)| {
                let hubs = carrier
                    .hubs
                    .iter()
                    .filter_map(|(code, share)| Some((place(airports, code)?, *share)));
                hubs.map(move |(hub, share)| (carrier, number, hub, share))
            });
        let may = |carrier: &Carrier, hub: usize| match keeper(airport.state) {
            Some((code, from)) => (code, from) == (carrier.code, airports[hub].code),
            None => REGIONAL.contains(&carrier.code),
        };
        let near = hubs
            .filter(|(carrier, _, hub, _)| may(carrier, *hub))
            .map(|(_, number, hub, share)| (airport.miles_to(&airports[hub]), number, hub, share))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((miles, number, hub, share)) = near {
            let pairs: &mut Vec<Pair> = &mut pairs[number];
            pairs.push(Pair {
                ends: [hub.min(left), hub.max(left)],
                miles,
                weight: share * airport.weight * 1000,
            });
        }
    }
}

/// Miles an hour on a way of no length, and what each mile adds, up to a length.
const SPEED: (f64, f64, f64) = (385.0, 0.065, 1500.0);
/// How much faster planes are that fly due east, and slower west.
const WIND: f64 = 0.06;
/// Minutes for climbing and landing.
const CLIMB_MINUTES: f64 = 10.0;

impl Route {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most a quarter of the Earth, in miles and minutes"
    )]
    fn new(miles: f64, [from, to]: [&Airport; 2]) -> Self {
        let still = SPEED.0 + SPEED.1 * miles.min(SPEED.2);
        let speed = still * (1.0 + WIND * from.eastward_to(to));
        let zone = [0, 1].map(|season: usize| to.utc_minutes[season] - from.utc_minutes[season]);
        Self {
            carrier: 0,
            origin: 0,
            dest: 0,
            distance: miles.round() as i16,
            air: (CLIMB_MINUTES + 60.0 * miles / speed).round() as i16,
            zone,
            ordinal: 0,
            planes: (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_airport_is_flown_to_by_planes_of_a_carrier() {
        let network = &*NETWORK;
        let served: BTreeSet<_> = network.routes.iter().map(|route| route.dest).collect();
        assert_eq!(served.len(), network.airports.len());
        assert_eq!(network.airports.len(), 297);
        for route in &network.routes {
            let (first, count) = route.planes;
            assert!(first > 0 && count > 0 && usize::from(first + count) <= network.planes.len());
            assert!(route.distance > 0 && route.air > 10 && route.air < 700);
        }
        let tails: BTreeSet<_> = network.planes.iter().map(|plane| &plane.tail).collect();
        assert_eq!(tails.len(), network.planes.len());
    }
}
