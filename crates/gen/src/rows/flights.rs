//! The set `flights`: flights in the United States in 2008, 56 columns, about 400 bytes a row as text.
//!
//! The table is `MapD`'s `flights` (`flights_2008_…` of its tutorials), its columns in their order with the same types. The
//! rows are drawn, each for itself: what is said of shares below holds for any slice, and no row needs another. Every
//! row is made of the eight numbers `r(i, n)`.
//!
//! | columns | hold | drawn by |
//! |---|---|---|
//! | `flight_year` to `flight_dayofweek` | a day of 2008; months have the shares of the flights reported for 2008 (October 7.93 %), Saturdays fewer; Monday is 1 | `r(i, 0)` |
//! | `origin`, `dest`, `uniquecarrier` | a route: one of 20 carriers, which have the shares of the flights that they reported, between one of its hubs and another of 297 airports, heavy ones first | `r(i, 1)` |
//! | `crsdeptime`, `crsarrtime`, `crselapsedtime` | planned local times, hhmm: every five minutes, most between 6 and 20 h; minutes in the air on average, 26 on the ground, and −4 to 4 | `r(i, 2)` |
//! | `flightnum` | 1 to 7829: the same carrier, route and hour has the same | |
//! | `depdelay` | before 9 h 27 %, from 16 h 50 %, else 40 % leave late, beyond *d* minutes about (30 / (30 + *d*))² of them, a day at most; the others in time or up to 15 minutes early | `r(i, 3)` |
//! | `taxiout`, `taxiin` | minutes on the ground, weights t⁴ / (t² + m²)⁴ with *m* = 10 and 4, at most 180 and 90 | `r(i, 4)` |
//! | `distance` | statute miles of the great circle | |
//! | `airtime` | 10 minutes, and the distance at 385 to 482 miles an hour, up to 6 % faster eastwards and slower westwards; a bell of 4.8 % deviation about it | `r(i, 5)` |
//! | `actualelapsedtime`, `arrdelay` | `taxiout` + `airtime` + `taxiin`; `depdelay` and how much longer that is than planned | |
//! | `deptime`, `arrtime`, `dep_timestamp`, `arr_timestamp` | what came of it, local, summer time observed: the same moments as hhmm and as times | |
//! | `tailnum`, `plane_…` | one of the carrier's planes, those for long ways from 2500 miles on; the same plane has the same values in every row | `r(i, 5)` |
//! | `cancelled`, `cancellationcode` | of each month as many as reported (1.96 % of the year); A carrier 40 %, B weather 40 %, C air system 20 %, D security 0.02 % | `r(i, 6)` |
//! | `diverted` | 0.25 % | `r(i, 6)` |
//! | `carrierdelay` to `lateaircraftdelay` | of arrivals 15 minutes late or more: they add up to `arrdelay` | `r(i, 7)` |
//! | `origin_…`, `dest_…` | the airport: name, city, state, country, degrees to four decimals, Web Mercator in whole metres | |
//!
//! Null are: actual times, delays, `taxiout` and `dep_timestamp` of cancelled flights; `arrtime`, `actualelapsedtime`,
//! `airtime`, `arrdelay`, `taxiin` and `arr_timestamp` also of diverted ones; `cancellationcode` of all that were not cancelled; the
//! causes of arrivals that were not late; `tailnum` of one in two of the cancelled flights; what is said of the
//! plane also where the registry does not know it (8 % of the planes). `origin_country` and `dest_country` are `USA` in all rows, as
//! of every airport of the published data that is in a state or territory.
//!
//! So `origin_country = 'USA'` finds every row, `flight_month = 10` finds 7.93 %, `distance < 175` finds 6.8 %; a million rows
//! have 4,900 pairs of cities and 1,280 pairs of states, and 105 pairs of states below 175 miles. Published were the columns
//! and that a row has about 400 bytes; airports, carriers and the numbers of flights by month are facts of 2008, and all else is
//! our choice.

mod airports;
mod alias_table;
mod carriers;
mod dictionaries;
mod flight;
mod network;
mod planes;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{Int16Type, TimestampMicrosecondType};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{DataType, Field, Schema};

use super::columns::{TIME, field, nullable, numbers, numbers_or_null};
use super::number::Stream;
use super::{ROWS_MAX, Set, SetSpec};
use crate::dataset::{Plain, Table};
use crate::dictionary_batch::{ColumnGroup, Dictionary, KeyedColumns};
use dictionaries::{DICTIONARIES, outcome, plane};
use flight::{Flight, FlightDistributions, FlightOutcome, LATE, of_day};

pub(super) const SPEC: SetSpec = SetSpec {
    name: "flights",
    about: "flights in the United States in 2008, 56 columns, about 400 bytes a row",
    options: &[],
    rows_max: ROWS_MAX,
    make: |seed, _| Box::new(Flights::new(seed)),
};

/// The columns that are asked for by the usual queries; all others come after them.
const USUAL_INDEXES: [&str; 7] = [
    "flight_month",
    "distance",
    "origin_state",
    "dest_state",
    "origin_city",
    "dest_city",
    "origin_country",
];
/// Average logical bytes: texts, and the width of every number that is not null.
const ROW_BYTES: f64 = 260.9;
/// 2008-01-01 00:00, microseconds since 1970.
const START_US: i64 = 1_199_145_600_000_000;
const MINUTE_US: i64 = 60_000_000;

struct Flights {
    distributions: FlightDistributions,
    /// Of one batch; kept for their memory.
    batch: Vec<Flight>,
}

/// Which rows of a batch have which values.
struct Given {
    departed: NullBuffer,
    arrived: NullBuffer,
    late: NullBuffer,
}

impl Flights {
    fn new(seed: i64) -> Self {
        Self {
            distributions: FlightDistributions::new(Stream::new(seed)),
            batch: Vec::new(),
        }
    }
}

impl Set for Flights {
    fn table(&self) -> Table {
        let columns = schema();
        let names = || columns.iter().map(|column| column.name().as_str());
        let others = names().filter(|name| !USUAL_INDEXES.contains(name));
        let usual = USUAL_INDEXES.into_iter().chain(others);
        Table {
            name: "flights".to_owned(),
            metrics: columns.len(),
            plain: Some(Plain {
                usual_indexes: usual.map(str::to_owned).collect(),
                sequence: None,
                row_bytes: ROW_BYTES,
            }),
            schema: Arc::new(Schema::new(columns)),
        }
    }

    fn text_bytes_max(&self) -> usize {
        40
    }

    fn column_groups(&mut self, rows: Range<u64>) -> Vec<ColumnGroup> {
        self.batch.clear();
        self.batch
            .extend(rows.map(|row| self.distributions.flight(row)));
        let batch = Batch(&self.batch);
        let given = Given::new(&self.batch);
        let mut groups = Vec::with_capacity(29);
        batch.put_plan(&given, &mut groups);
        batch.put_course(&given, &mut groups);
        batch.put_keyed(&mut groups);
        groups
    }
}

/// The columns in the order of the table.
fn schema() -> Vec<Field> {
    use DataType::{Date32, Float32, Int16, Utf8};
    let small = |name| field(name, Int16);
    let text = |name| field(name, Utf8);
    let small_or_null = |name| nullable(name, Int16);
    let text_or_null = |name| nullable(name, Utf8);
    let mut columns: Vec<Field> = vec![
        small("flight_year"),
        small("flight_month"),
        small("flight_dayofmonth"),
        small("flight_dayofweek"),
        small_or_null("deptime"),
        small("crsdeptime"),
        small_or_null("arrtime"),
        small("crsarrtime"),
        text("uniquecarrier"),
        small("flightnum"),
        text_or_null("tailnum"),
        small_or_null("actualelapsedtime"),
        small("crselapsedtime"),
        small_or_null("airtime"),
        small_or_null("arrdelay"),
        small_or_null("depdelay"),
        text("origin"),
        text("dest"),
        small("distance"),
        small_or_null("taxiin"),
        small_or_null("taxiout"),
        small("cancelled"),
        text_or_null("cancellationcode"),
        small("diverted"),
    ];
    let causes = ["carrier", "weather", "nas", "security", "lateaircraft"];
    columns.extend(causes.map(|cause| nullable(&format!("{cause}delay"), Int16)));
    columns.extend(["dep", "arr"].map(|end| nullable(&format!("{end}_timestamp"), TIME)));
    columns.push(text("carrier_name"));
    let plane = |name: &str, kind| nullable(&format!("plane_{name}"), kind);
    columns.extend([
        plane("type", Utf8),
        plane("manufacturer", Utf8),
        plane("issue_date", Date32),
        plane("model", Utf8),
        plane("status", Utf8),
        plane("aircraft_type", Utf8),
        plane("engine_type", Utf8),
        plane("year", Int16),
    ]);
    for end in ["origin", "dest"] {
        let texts = ["name", "city", "state", "country"];
        columns.extend(texts.map(|what| field(&format!("{end}_{what}"), Utf8)));
        columns.extend(["lat", "lon"].map(|what| field(&format!("{end}_{what}"), Float32)));
    }
    for end in ["origin", "dest"] {
        columns.extend(["x", "y"].map(|axis| field(&format!("{end}_merc_{axis}"), Float32)));
    }
    columns
}

/// One batch of rows, about to become columns.
struct Batch<'a>(&'a [Flight]);

/// hhmm.
#[inline]
fn clock(minute: i16) -> i16 {
    minute + 40 * (minute / 60)
}

impl Batch<'_> {
    fn small(&self, value: impl Fn(&Flight) -> i16) -> ColumnGroup {
        numbers::<Int16Type>(self.0.iter().map(value)).into()
    }

    fn small_if(&self, given: &NullBuffer, value: impl Fn(&Flight) -> i16) -> ColumnGroup {
        numbers_or_null::<Int16Type>(self.0.iter().map(value), Some(given)).into()
    }

    /// Minutes of 2008 as times.
    fn time_if(&self, given: &NullBuffer, minutes: impl Fn(&Flight) -> i32) -> ColumnGroup {
        let times = self.0.iter().map(minutes);
        let times = times.map(|minutes| START_US + MINUTE_US * i64::from(minutes));
        numbers_or_null::<TimestampMicrosecondType>(times, Some(given)).into()
    }

    fn keyed(&self, dictionary: &Arc<Dictionary>, key: impl Fn(&Flight) -> u16) -> ColumnGroup {
        KeyedColumns::new(dictionary, self.0.iter().map(key).collect()).into()
    }

    /// From `flight_year` to `tailnum`.
    fn put_plan(&self, given: &Given, groups: &mut Vec<ColumnGroup>) {
        let known = &*DICTIONARIES;
        groups.extend([
            self.keyed(&known.days, |flight| flight.day),
            self.small_if(&given.departed, |flight| clock(of_day(flight.times[0]))),
            self.small(|flight| clock(flight.planned[0])),
            self.small_if(&given.arrived, |flight| clock(of_day(flight.times[1]))),
            self.small(|flight| clock(flight.planned[1])),
            self.keyed(&known.carriers, |flight| flight.carrier),
            self.small(|flight| flight.number),
            self.keyed(&known.tails, |flight| flight.plane),
        ]);
    }

    /// From `actualelapsedtime` to `arr_timestamp`.
    fn put_course(&self, given: &Given, groups: &mut Vec<ColumnGroup>) {
        let Given {
            departed,
            arrived,
            late,
        } = given;
        let known = &*DICTIONARIES;
        groups.extend([
            self.small_if(arrived, |flight| {
                flight.taxi[0] + flight.air + flight.taxi[1]
            }),
            self.small(|flight| flight.planned_elapsed),
            self.small_if(arrived, |flight| flight.air),
            self.small_if(arrived, |flight| flight.delay[1]),
            self.small_if(departed, |flight| flight.delay[0]),
            self.keyed(&known.routes, |flight| flight.route),
            self.small_if(arrived, |flight| flight.taxi[1]),
            self.small_if(departed, |flight| flight.taxi[0]),
            self.keyed(&known.outcomes, |flight| {
                outcome(flight.outcome, flight.code)
            }),
        ]);
        let cause = |cause: usize| self.small_if(late, move |flight| flight.causes[cause]);
        groups.extend([0, 1, 2, 3, 4].map(cause));
        groups.extend([
            self.time_if(departed, |flight| flight.times[0]),
            self.time_if(arrived, |flight| flight.times[1]),
        ]);
    }

    /// From `carrier_name` to `dest_merc_y`.
    fn put_keyed(&self, groups: &mut Vec<ColumnGroup>) {
        let known = &*DICTIONARIES;
        groups.push(self.keyed(&known.planes, |flight| plane(flight.plane, flight.carrier)));
        for places in [&known.places, &known.metres] {
            let end = |end: usize| self.keyed(places, move |flight| flight.ends[end]);
            groups.extend([0, 1].map(end));
        }
    }
}

impl Given {
    fn new(flights: &[Flight]) -> Self {
        let arrived = |flight: &Flight| flight.outcome == FlightOutcome::Arrived;
        Self {
            departed: given(flights, |flight| flight.outcome != FlightOutcome::Cancelled),
            arrived: given(flights, arrived),
            late: given(flights, |flight| arrived(flight) && flight.delay[1] >= LATE),
        }
    }
}

fn given(flights: &[Flight], is: impl Fn(&Flight) -> bool) -> NullBuffer {
    BooleanBuffer::collect_bool(flights.len(), |row| is(&flights[row])).into()
}
