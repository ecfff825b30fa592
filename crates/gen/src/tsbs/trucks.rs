//! Trucks as TSBS draws and moves them: two tables, one point after the other.

use super::block::{NONE, TruckRow, TruckTable};
use super::config::{Config, Settled};
use super::go_rand::GoRand;
use super::population::Population;
use super::strings::Strings;

const MODELS: [(&str, u32, u32, u32); 3] = [
    ("F-150", 2000, 200, 15),
    ("G-2000", 5000, 300, 19),
    ("H-2", 1500, 150, 12),
];
const FLEETS: [&str; 4] = ["East", "West", "North", "South"];
const DRIVERS: [&str; 6] = ["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"];
const VERSIONS: [&str; 4] = ["v1.0", "v1.5", "v2.0", "v2.3"];
/// A truck takes on a new load when a uniform draw reaches this.
const LOAD_KEPT: f64 = 0.95;

/// A walk by uniform steps from `low` to `low + range`, between two bounds.
struct Walk {
    low: f64,
    range: f64,
    min: f64,
    max: f64,
}

impl Walk {
    const fn new(low: f64, high: f64, min: f64, max: f64) -> Self {
        Self {
            low,
            range: high - low,
            min,
            max,
        }
    }
}

/// latitude, longitude, elevation, velocity, heading, grade, fuel consumption; then the fuel state.
const WALKS: [Walk; 8] = [
    Walk::new(-0.005, 0.005, -90.0, 90.0),
    Walk::new(-0.005, 0.005, -180.0, 180.0),
    Walk::new(-10.0, 10.0, 0.0, 5000.0),
    Walk::new(-10.0, 10.0, 0.0, 100.0),
    Walk::new(-5.0, 5.0, 0.0, 360.0),
    Walk::new(-5.0, 5.0, 0.0, 100.0),
    Walk::new(-5.0, 5.0, 0.0, 50.0),
    Walk::new(-0.001, 0.0, 0.0, 1.0),
];
const FUEL: usize = 7;
/// What each field of `readings` is multiplied by before its fraction is cut off.
const READINGS_UNITS: [f64; 7] = [100_000.0, 100_000.0, 1.0, 1.0, 1.0, 1.0, 10.0];

/// What moves in one truck.
#[derive(Clone, Debug)]
struct State {
    walks: [f64; 8],
    status: f64,
}

impl State {
    /// Draws what a truck starts with.
    fn draw(rng: &mut GoRand) -> Self {
        let mut at = |range: f64| rng.float64() * range;
        let (latitude, longitude) = (at(90.0), at(180.0));
        let (elevation, heading) = (at(500.0), at(360.0));
        let walks = [latitude, longitude, elevation, 0.0, heading, 0.0, 25.0, 1.0];
        Self { walks, status: 0.0 }
    }

    #[inline]
    fn tick(&mut self, load: &mut f64, rng: &mut GoRand) {
        for (state, walk) in self.walks.iter_mut().zip(&WALKS) {
            let moved = *state + (rng.float64() * walk.range + walk.low);
            *state = moved.min(walk.max).max(walk.min);
        }
        if self.walks[FUEL] <= 0.0 {
            self.walks[FUEL] = 1.0; // refuelled
        }
        if rng.float64() >= LOAD_KEPT {
            *load = rng.float64() * 5000.0;
        }
        self.status = (self.status + rng.norm_float64()).clamp(0.0, 5.0);
    }
}

/// All trucks in motion.
#[derive(Clone, Debug)]
pub(super) struct Trucks {
    pub(super) rng: GoRand,
    population: Population,
    states: Vec<State>,
    /// The load of every truck: TSBS's trucks share one variable.
    load: f64,
    time_ns: i64,
    interval_ns: i64,
    made: u64,
    max_points: u64,
    table: TruckTable,
    truck: usize,
}

impl Trucks {
    /// Draws all trucks; their tags come second.
    pub(super) fn draw(config: &Config, settled: &Settled, mut rng: GoRand) -> (Self, Strings) {
        let mut tags = Strings::new();
        let mut states = Vec::new();
        for id in 0..settled.devices {
            states.push(State::draw(&mut rng));
            tags.push(&draw_tags(id, &mut rng));
        }
        let points = settled
            .epochs
            .wrapping_mul(u64::from(settled.devices))
            .wrapping_mul(2);
        let trucks = Self {
            rng,
            population: Population::new(settled),
            states,
            load: 0.0,
            time_ns: config.start_ns,
            interval_ns: config.interval_ns,
            made: 0,
            max_points: points.min(settled.limit),
            table: TruckTable::Readings,
            truck: 0,
        };
        (trucks, tags)
    }

    #[inline]
    pub(super) fn finished(&self) -> bool {
        self.made >= self.max_points
    }

    /// The next point, none if its truck does not report yet. Goes on beyond the end when asked.
    #[inline]
    pub(super) fn next(&mut self) -> Option<TruckRow> {
        if self.truck == self.states.len() {
            self.end_table();
        }
        let truck = self.truck;
        self.made += 1;
        self.truck += 1;
        let truck_number = u32::try_from(truck).ok()?;
        (truck_number < self.population.active()).then(|| self.row(truck_number))
    }

    fn end_table(&mut self) {
        self.truck = 0;
        if self.table == TruckTable::Readings {
            self.table = TruckTable::Diagnostics;
            return;
        }
        self.table = TruckTable::Readings;
        for state in &mut self.states {
            state.tick(&mut self.load, &mut self.rng);
        }
        self.time_ns = self.time_ns.wrapping_add(self.interval_ns);
        self.population.next_epoch();
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fractions are cut off as TSBS does"
    )]
    fn row(&self, truck: u32) -> TruckRow {
        let state = &self.states[truck as usize];
        let mut fields = [0; 7];
        if self.table == TruckTable::Readings {
            for (i, field) in fields.iter_mut().enumerate() {
                *field = (state.walks[i] * READINGS_UNITS[i]) as i32;
            }
        } else {
            let values = [state.walks[FUEL] * 10.0, self.load, state.status];
            fields[..3].copy_from_slice(&values.map(|value| value as i32));
        }
        TruckRow {
            time_ns: self.time_ns,
            truck,
            table: self.table,
            empty_field: NONE,
            empty_tag: NONE,
            fields,
        }
    }
}

fn draw_tags(id: u32, rng: &mut GoRand) -> String {
    let mut below = |n: usize| usize::try_from(rng.intn(n as u64)).unwrap_or(0);
    let (model, load, fuel, consumption) = MODELS[below(MODELS.len())];
    let fleet = FLEETS[below(FLEETS.len())];
    let driver = DRIVERS[below(DRIVERS.len())];
    let version = VERSIONS[below(VERSIONS.len())];
    format!(
        "tags,name=truck_{id},fleet={fleet},driver={driver},model={model},device_version={version},\
         load_capacity={load},fuel_capacity={fuel},nominal_fuel_consumption={consumption}"
    )
}
