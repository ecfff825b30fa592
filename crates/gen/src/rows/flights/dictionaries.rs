//! What a row's numbers stand for, in all columns that say no more than them.

use std::sync::{Arc, LazyLock};

use arrow_array::{Date32Array, Float32Array, Int16Array, StringArray};
use arrow_buffer::NullBuffer;

use super::airports::Airport;
use super::carriers::CARRIERS;
use super::flight::{FlightOutcome, calendar};
use super::network::{NETWORK, Network};
use super::planes::{Model, OWNERS, Plane, models};
use crate::dictionary_batch::{Dictionary, Entries};

/// The dictionaries, each of columns that stand side by side.
pub(super) struct Dictionaries {
    /// By day of 2008, from 0: `flight_year` to `flight_dayofweek`.
    pub(super) days: Arc<Dictionary>,
    /// By carrier: `uniquecarrier`.
    pub(super) carriers: Arc<Dictionary>,
    /// By plane: `tailnum`.
    pub(super) tails: Arc<Dictionary>,
    /// By route: `origin`, `dest`, `distance`.
    pub(super) routes: Arc<Dictionary>,
    /// By [`outcome`]: `cancelled`, `cancellationcode`, `diverted`.
    pub(super) outcomes: Arc<Dictionary>,
    /// By [`plane`]: `carrier_name` to `plane_year`.
    pub(super) planes: Arc<Dictionary>,
    /// By airport: its name to its longitude.
    pub(super) places: Arc<Dictionary>,
    /// By airport: Web Mercator's coordinates.
    pub(super) metres: Arc<Dictionary>,
}

pub(super) static DICTIONARIES: LazyLock<Dictionaries> =
    LazyLock::new(|| Dictionaries::new(&NETWORK));

const YEAR: i16 = 2008;
const COUNTRY: &str = "USA";
/// Why flights are cancelled.
const CODES: [&str; 4] = ["A", "B", "C", "D"];

/// What came of a flight, as one number: `code` counts its reason from 1.
#[inline]
pub(super) fn outcome(outcome: FlightOutcome, code: u8) -> u16 {
    match outcome {
        FlightOutcome::Arrived => 0,
        FlightOutcome::Diverted => 1,
        FlightOutcome::Cancelled => 1 + u16::from(code),
    }
}

/// A plane and its carrier, as one number: planes that are not told come first, by carrier.
#[inline]
pub(super) fn plane(plane: u16, carrier: u16) -> u16 {
    match plane {
        0 => carrier,
        _ => CARRIER_COUNT - 1 + plane,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "carriers are few")]
const CARRIER_COUNT: u16 = CARRIERS.len() as u16;

impl Dictionaries {
    fn new(network: &Network) -> Self {
        let tails = network.planes.iter().map(|plane| plane.tail.as_str());
        let tails = tails.map(|tail| (!tail.is_empty()).then_some(tail));
        let codes = CARRIERS.iter().map(|carrier| Some(carrier.code));
        Self {
            days: days(),
            carriers: dictionary(vec![texts(codes)]),
            tails: dictionary(vec![texts(tails)]),
            routes: routes(network),
            outcomes: outcomes(),
            planes: planes(&network.planes),
            places: places(&network.airports),
            metres: metres(&network.airports),
        }
    }
}

fn dictionary(columns: Vec<Entries>) -> Arc<Dictionary> {
    Arc::new(Dictionary::new(columns))
}

fn small(values: impl Iterator<Item = i16>) -> Entries {
    Entries::Small(Int16Array::from_iter_values(values))
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> Entries {
    Entries::Text(values.collect::<StringArray>())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "four decimals of a degree, and metres, are what a single holds"
)]
fn singles(values: impl Iterator<Item = f64>) -> Entries {
    let values = values.map(|value| value as f32);
    Entries::Single(Float32Array::from_iter_values(values))
}

fn days() -> Arc<Dictionary> {
    let days = calendar();
    let part = |part: usize| small(days.iter().map(move |day| day[part]));
    let year = small(days.iter().map(|_| YEAR));
    dictionary(vec![year, part(0), part(1), part(2)])
}

fn routes(network: &Network) -> Arc<Dictionary> {
    let code = |airport: u16| Some(network.airports[usize::from(airport)].code);
    let routes = || network.routes.iter();
    dictionary(vec![
        texts(routes().map(|route| code(route.origin))),
        texts(routes().map(|route| code(route.dest))),
        small(routes().map(|route| route.distance)),
    ])
}

fn outcomes() -> Arc<Dictionary> {
    let codes = || [None, None].into_iter().chain(CODES.map(Some));
    let diverted = [0, 1, 0, 0, 0, 0];
    dictionary(vec![
        small(codes().map(|code| code.is_some().into())),
        texts(codes()),
        small(diverted.into_iter()),
    ])
}

fn planes(planes: &[Plane]) -> Arc<Dictionary> {
    let models = models();
    // Kind 0 is none.
    let kinds: Vec<_> = models
        .iter()
        .flat_map(|model| OWNERS.map(|(owner, _)| (model, owner)))
        .collect();
    let untold = (0..CARRIER_COUNT).map(|carrier| (carrier, None));
    let told = planes.iter().skip(1);
    let entries: Vec<_> = untold
        .chain(told.map(|plane| (plane.carrier, Some(plane))))
        .collect();
    let plane = || {
        entries
            .iter()
            .map(|(_, plane)| plane.filter(|plane| plane.kind > 0))
    };
    let text = |of: &dyn Fn(&(&Model, &'static str)) -> &'static str| {
        let kind = |plane: &Plane| of(&kinds[usize::from(plane.kind) - 1]);
        texts(plane().map(|plane| plane.map(kind)))
    };
    let registered: NullBuffer = plane().map(|plane| plane.is_some()).collect();
    let year = plane().map(|plane| plane.map_or(0, |plane| plane.year));
    let issued = plane().map(|plane| plane.map_or(0, |plane| plane.issued));
    let names = entries
        .iter()
        .map(|(carrier, _)| Some(CARRIERS[usize::from(*carrier)].name));
    dictionary(vec![
        texts(names),
        text(&|(_, owner)| owner),
        text(&|(model, _)| model.manufacturer),
        Entries::Days(Date32Array::new(issued.collect(), Some(registered.clone()))),
        text(&|(model, _)| model.name),
        text(&|_| "Valid"),
        text(&|_| "Fixed Wing Multi-Engine"),
        text(&|(model, _)| model.engine),
        Entries::Small(Int16Array::new(year.collect(), Some(registered))),
    ])
}

fn places(airports: &[Airport]) -> Arc<Dictionary> {
    let all = || airports.iter();
    dictionary(vec![
        texts(all().map(|airport| Some(airport.name))),
        texts(all().map(|airport| Some(airport.city))),
        texts(all().map(|airport| Some(airport.state))),
        texts(all().map(|_| Some(COUNTRY))),
        singles(all().map(|airport| airport.latitude)),
        singles(all().map(|airport| airport.longitude)),
    ])
}

fn metres(airports: &[Airport]) -> Arc<Dictionary> {
    let axes = || airports.iter().map(Airport::mercator);
    dictionary(vec![
        singles(axes().map(|(x, _)| x)),
        singles(axes().map(|(_, y)| y)),
    ])
}
