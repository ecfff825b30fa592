//! One flight: when it was to be, and what came of it.

use super::super::number::{Fraction, Stream};
use super::alias_table::AliasTable;
use super::network::{NETWORK, Network};

/// What came of a flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FlightOutcome {
    Arrived,
    Diverted,
    Cancelled,
}

/// A row's numbers; minutes, if nothing else is said.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    /// Airports: from where, to where.
    pub(super) ends: [u16; 2],
    pub(super) carrier: u16,
    /// Its number in the network.
    pub(super) route: u16,
    /// Its number in the network; 0: not told.
    pub(super) plane: u16,
    /// Day of 2008, from 0.
    pub(super) day: u16,
    pub(super) outcome: FlightOutcome,
    /// 0: none, else which letter from A on.
    pub(super) code: u8,
    pub(super) number: i16,
    /// Of the day.
    pub(super) planned: [i16; 2],
    pub(super) planned_elapsed: i16,
    pub(super) air: i16,
    pub(super) taxi: [i16; 2],
    pub(super) delay: [i16; 2],
    /// From the begin of 2008, local: departure and arrival.
    pub(super) times: [i32; 2],
    /// Carrier, weather, air system, security, late aircraft.
    pub(super) causes: [i16; 5],
}

/// Arrivals from so many minutes on are late, and have causes.
pub(super) const LATE: i16 = 15;

const DAY: i32 = 1440;
/// What is planned beside the time in the air: mean minutes on the ground, and a little more.
const GROUND: i16 = 26;
/// Flights of each month, and of them those that were cancelled, as reported for 2008.
const MONTHS: [(u64, u64); 12] = [
    (605_765, 17_308),
    (569_236, 20_596),
    (616_090, 16_183),
    (598_126, 10_355),
    (606_293, 6_229),
    (608_665, 10_931),
    (627_931, 10_598),
    (612_279, 9_835),
    (540_908, 9_913),
    (556_205, 3_249),
    (523_272, 4_458),
    (544_958, 17_779),
];
const MONTH_DAYS: [u16; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/// Flights on the days of a week from Monday on, of a hundred.
const WEEK: [u64; 7] = [103, 101, 101, 102, 103, 86, 97];
/// The days of summer time: 9 March to 1 November.
const SUMMER: std::ops::Range<u16> = 68..306;
/// Departures of each hour, of a thousand.
const HOURS: [u64; 24] = [
    2, 1, 0, 0, 1, 12, 64, 68, 66, 62, 60, 64, 62, 62, 58, 60, 58, 66, 62, 58, 50, 38, 18, 8,
];
/// Minutes between two departures that can be planned.
const SLOT: i16 = 5;
const SLOTS_OF_HOUR: usize = 12;
/// The hours from which more are late, and how many of a hundred leave late then.
const DELAYED: [(i16, u64); 3] = [(0, 27), (9, 40), (16, 50)];
/// How early flights leave that leave early, from a minute on, and the last weight those in time.
const EARLY: [u64; 15] = [9, 11, 13, 13, 13, 9, 7, 5, 4, 3, 2, 1, 1, 1, 1];
const PUNCTUAL: u64 = 8;
/// No delay is longer: a day.
const DELAY_MAX: u64 = 1440;
/// Half of the delays are shorter than about 0.41 of this.
const DELAY_SCALE: u64 = 30;
/// Most frequent minutes on the ground, and the most: before and after the flight.
const TAXI: [(u64, u64); 2] = [(10, 180), (4, 90)];
/// Of ten thousand flights, so many land somewhere else.
const DIVERTED: usize = 25;
/// Of five thousand that are cancelled: A (carrier), B (weather), C (air system); D (security) are left.
const CODES: [usize; 3] = [2000, 4000, 4999];

/// What rows are drawn from.
pub(super) struct FlightDistributions {
    rows: Stream,
    day: AliasTable,
    slot: AliasTable,
    delays: [AliasTable; 3],
    taxi: [AliasTable; 2],
    /// Of each day of the year: month and day from 1, day of the week from Monday (1) on.
    calendar: Vec<[i16; 3]>,
    /// Of 2^32 flights of each month, those that are cancelled.
    cancelled: [u32; 12],
    pub(super) network: &'static Network,
}

impl FlightDistributions {
    pub(super) fn new(rows: Stream) -> Self {
        let calendar = calendar();
        Self {
            rows,
            day: AliasTable::new(&days(&calendar)),
            slot: AliasTable::new(&HOURS.map(|weight| [weight; SLOTS_OF_HOUR]).concat()),
            delays: DELAYED.map(|(_, late)| AliasTable::new(&delays(late))),
            taxi: TAXI.map(|(mode, most)| AliasTable::new(&taxi(mode, most))),
            calendar,
            cancelled: MONTHS.map(|(all, some)| u32::try_from((some << 32) / all).unwrap_or(0)),
            network: &NETWORK,
        }
    }

    /// The flight of a row.
    #[inline]
    pub(super) fn flight(&self, row: u64) -> Flight {
        let fraction = |number| self.rows.fraction(row, number);
        let day = self.day.draw(fraction(0));
        let number = self.network.draw.draw(fraction(1));
        let route = &self.network.routes[number];
        let slot = self.slot.draw(fraction(2));
        let departure = minutes(slot) * SLOT;
        let part = DELAYED
            .iter()
            .filter(|(hour, _)| departure >= hour * 60)
            .count()
            - 1;
        let late = minutes(self.delays[part].draw(fraction(3))) - EARLY_MAX;
        let halves = fraction(4).0;
        let taxi = [halves, halves << 32].map(Fraction);
        let taxi = [0, 1].map(|end: usize| 1 + minutes(self.taxi[end].draw(taxi[end])));
        let mut own = fraction(5);
        let plane = route.planes.0 + minutes(own.take(route.planes.1.into())).cast_unsigned();
        // The sum of three is bell-shaped, here with a standard deviation of 4.8 % of the time.
        let sum = minutes(own.take(64) + own.take(64) + own.take(64)) - 94;
        let air = route.air + minutes_of(i32::from(route.air) * 3 * i32::from(sum) / 2000);
        let jitter = minutes((slot * 7 + usize::from(route.ordinal)) % 9) - 4;
        let planned_elapsed = route.air + GROUND + jitter;
        let zone = route.zone[usize::from(SUMMER.contains(&minutes(day).cast_unsigned()))];
        let elapsed = taxi[0] + air + taxi[1];
        let begin = i32::from(minutes(day)) * DAY + i32::from(departure) + i32::from(late);
        let mut flight = Flight {
            ends: [route.origin, route.dest],
            carrier: route.carrier,
            route: minutes(number).cast_unsigned(),
            plane,
            day: minutes(day).cast_unsigned(),
            outcome: FlightOutcome::Arrived,
            code: 0,
            number: 1 + minutes((usize::from(route.ordinal) * 37 + slot / SLOTS_OF_HOUR) % 7829),
            planned: [
                departure,
                of_day((departure + planned_elapsed + zone).into()),
            ],
            planned_elapsed,
            air,
            taxi,
            delay: [late, late + elapsed - planned_elapsed],
            times: [begin, begin + i32::from(elapsed + zone)],
            causes: [0; 5],
        };
        self.decide(&mut flight, fraction(6));
        if flight.outcome == FlightOutcome::Arrived && flight.delay[1] >= LATE {
            flight.causes = causes(flight.delay, fraction(7));
        }
        flight
    }

    /// Whether it is cancelled or diverted.
    #[inline]
    fn decide(&self, flight: &mut Flight, mut fraction: Fraction) {
        let month = self.calendar[usize::from(flight.day)][0];
        let cancelled = self.cancelled[usize::from(month.unsigned_abs()) - 1];
        if ((fraction.0 >> 32) as u32) < cancelled {
            let mut left = Fraction(fraction.0 << 32);
            let reason = left.take(5000);
            let before = CODES.iter().filter(|end| reason >= **end).count();
            flight.outcome = FlightOutcome::Cancelled;
            flight.code = 1 + minutes(before).to_le_bytes()[0];
            // Which plane it would have been is known of one in two.
            flight.plane *= minutes(left.take(2)).cast_unsigned();
            return;
        }
        fraction = Fraction(fraction.0 << 32);
        if fraction.take(10_000) < DIVERTED {
            flight.outcome = FlightOutcome::Diverted;
        }
    }
}

const EARLY_MAX: i16 = 15;

/// A small number of anything.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "outcomes of draws are few"
)]
fn minutes(number: usize) -> i16 {
    number as i16
}

#[inline]
fn minutes_of(number: i32) -> i16 {
    i16::try_from(number).unwrap_or(i16::MAX)
}

/// The minute of the day.
#[inline]
pub(super) fn of_day(minutes: i32) -> i16 {
    minutes_of(minutes.rem_euclid(DAY))
}

/// Why an arrival is late, in minutes that add up to its delay: what it lost under way is the air system's, and what it
/// had lost before has one cause, or two.
#[inline]
fn causes([departure, arrival]: [i16; 2], mut fraction: Fraction) -> [i16; 5] {
    let lost = (arrival - departure.max(0)).clamp(0, arrival);
    let before = arrival - lost;
    let mut causes = [0, 0, lost, 0, 0];
    match fraction.take(1000) {
        0..60 => causes[1] = before,
        60..320 => causes[0] = before,
        320..660 => causes[4] = before,
        660..780 => causes[2] += before,
        780..782 => causes[3] = before,
        _ => {
            let some = minutes(fraction.take(1 + u64::from(before.unsigned_abs())));
            causes[0] = some;
            causes[4] = before - some;
        }
    }
    causes
}

pub(super) fn calendar() -> Vec<[i16; 3]> {
    let months = (1..).zip(MONTH_DAYS);
    let days =
        months.flat_map(|(month, days)| (1..=days.cast_signed()).map(move |day| [month, day]));
    // The year began on a Tuesday.
    (1..)
        .zip(days)
        .map(|(number, [month, day])| [month, day, number % 7 + 1])
        .collect()
}

/// Weights of the days: each month has its share, and weekends less of it.
fn days(calendar: &[[i16; 3]]) -> Vec<u64> {
    let week = |day: &[i16; 3]| WEEK[usize::from(day[2].unsigned_abs()) - 1];
    let month = |day: &[i16; 3]| usize::from(day[0].unsigned_abs()) - 1;
    let mut totals = [0; 12];
    for day in calendar {
        totals[month(day)] += week(day);
    }
    let weight = |day| (MONTHS[month(day)].0 << 20) * week(day) / totals[month(day)];
    calendar.iter().map(weight).collect()
}

/// Weights of departures from 15 minutes early on; `late` of a hundred are late, their share beyond *d* minutes being
/// about (s / (s + d))^2 with *s* = [`DELAY_SCALE`].
fn delays(late: u64) -> Vec<u64> {
    let late_weight = |delay: u64| 1_000_000_000_000 / (delay + DELAY_SCALE).pow(3);
    let early: Vec<u64> = EARLY.iter().rev().copied().chain([PUNCTUAL]).collect();
    let positive: Vec<u64> = (1..=DELAY_MAX).map(late_weight).collect();
    let (all_early, all_late) = (early.iter().sum::<u64>(), positive.iter().sum::<u64>());
    let early = early.iter().map(|weight| weight * (100 - late) * all_late);
    let positive = positive.iter().map(|weight| weight * late * all_early);
    early.chain(positive).collect()
}

/// Weights of minutes on the ground from 1 on: t^4 / (t^2 + m^2)^4, so that *m* is the most frequent, and few are long.
fn taxi(mode: u64, most: u64) -> Vec<u64> {
    let weight = |t: u64| {
        let whole = u128::from(t).pow(4) << 64;
        u64::try_from(whole / u128::from(t * t + mode * mode).pow(4)).unwrap_or(u64::MAX)
    };
    (1..=most).map(weight).collect()
}
