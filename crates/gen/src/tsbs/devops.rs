//! The simulation of hosts: `devops`, `cpu-only`, `cpu-single` and `devops-generic`.

use std::sync::Arc;

use super::block::{Block, Groups, ROWS_MAX, VALUES_MAX};
use super::config::{Config, Settled};
use super::go_rand::GoRand;
use super::hosts::{Hosts, as_double};
use super::lifetime::Lifetime;
use super::population::Population;
use super::walk::Walks;
use super::{Catalog, CatalogKind, UseCase};

/// Hosts in motion.
#[derive(Clone, Debug)]
pub(super) struct Simulation {
    catalog: Arc<Catalog>,
    rng: GoRand,
    population: Population,
    groups: Groups,
    /// The states of all hosts, host after host.
    states: Vec<f64>,
    walks: Walks,
    draws: Vec<f64>,
    /// Empty where hosts live for ever.
    lifetimes: Vec<Lifetime>,
    start_ns: i64,
    interval_ns: i64,
    made: u64,
    max_points: u64,
    /// The table and the host that come next.
    table: usize,
    host: u32,
}

impl Simulation {
    pub(super) fn new(config: &Config, settled: &Settled, mut rng: GoRand) -> Self {
        let metrics = usize::try_from(config.max_metrics).unwrap_or(0);
        let (hosts, states) = Hosts::draw(config.use_case, settled, metrics, &mut rng);
        let lifetimes = match config.use_case {
            UseCase::DevopsGeneric => Lifetime::all(settled.devices, settled.epochs),
            _ => Vec::new(),
        };
        let points = settled
            .epochs
            .wrapping_mul(u64::from(settled.devices))
            .wrapping_mul(hosts.schema.tables.len() as u64);
        Self {
            rng,
            population: Population::new(settled),
            groups: Groups::new(config.group, config.groups),
            draws: vec![0.0; hosts.schema.walks.len()],
            walks: hosts.schema.walks.clone(),
            states,
            lifetimes,
            start_ns: config.start_ns,
            interval_ns: config.interval_ns,
            made: 0,
            max_points: points.min(settled.limit),
            table: 0,
            host: 0,
            catalog: Arc::new(Catalog(CatalogKind::Hosts(Box::new(hosts)))),
        }
    }

    pub(super) fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The next rows of one table at one time; false when there are none.
    pub(super) fn fill(&mut self, block: &mut Block) -> bool {
        let catalog = Arc::clone(&self.catalog);
        let CatalogKind::Hosts(hosts) = &catalog.0 else {
            return false;
        };
        block.clear();
        while block.hosts.hosts.is_empty() {
            if self.made >= self.max_points {
                return false;
            }
            self.enter_next(hosts);
            self.take_rows(hosts, block);
        }
        true
    }

    /// After the last host goes to the next table, after the last table to the next epoch.
    fn enter_next(&mut self, hosts: &Hosts) {
        let devices = hosts.bounds.len() - 1;
        if self.host as usize == devices {
            self.host = 0;
            self.table += 1;
        }
        if self.table == hosts.schema.tables.len() {
            self.table = 0;
            self.tick(hosts);
            self.population.next_epoch();
        }
    }

    /// Moves every state of every host, also of those that do not report.
    fn tick(&mut self, hosts: &Hosts) {
        let memory = hosts
            .schema
            .index("mem")
            .map_or(0, |table| hosts.schema.tables[table].first);
        for (host, bounds) in hosts.bounds.windows(2).enumerate() {
            if let Some(&total) = hosts.memory_bytes.get(host) {
                let total = as_double(total.unsigned_abs());
                self.walks.rescale(memory, 3, total / 64.0, total);
            }
            let states = &mut self.states[bounds[0]..bounds[1]];
            let draws = &mut self.draws[..states.len()];
            self.rng.fill_norm(draws);
            self.walks.step(states, draws);
        }
    }

    /// Takes rows of the present table until the block is full or the table's hosts end.
    fn take_rows(&mut self, hosts: &Hosts, block: &mut Block) {
        let table = &hosts.schema.tables[self.table];
        let epoch = self.population.epoch;
        let elapsed_ns = self.interval_ns.wrapping_mul(epoch.cast_signed());
        let rows = &mut block.hosts;
        rows.table = self.table;
        rows.time_ns = self.start_ns.wrapping_add(elapsed_ns);
        rows.uptime_s = go_seconds(elapsed_ns);
        let devices = u32::try_from(hosts.bounds.len() - 1).unwrap_or(u32::MAX);
        let left = u32::try_from(self.max_points - self.made).unwrap_or(u32::MAX);
        let end = self.host.saturating_add(left).min(devices);
        let active_end = self.population.active().min(end);
        let first = self.host;
        while self.host < active_end {
            if rows.hosts.len() >= ROWS_MAX || rows.values.len() >= VALUES_MAX {
                break;
            }
            let host = self.host as usize;
            self.host += 1;
            let alive = self
                .lifetimes
                .get_mut(host)
                .is_none_or(|life| life.reports(epoch));
            if alive && self.groups.take() {
                let start = hosts.bounds[host] + table.first;
                let width = table.width.min(hosts.bounds[host + 1] - start);
                rows.hosts.push(self.host - 1);
                rows.values
                    .extend_from_slice(&self.states[start..start + width]);
            }
        }
        if self.host == active_end.max(first) {
            self.host = end;
        }
        self.made += u64::from(self.host - first);
    }
}

/// Go's `int64(duration.Seconds())`: through a double, as TSBS does.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the double is part of the definition"
)]
fn go_seconds(duration_ns: i64) -> i64 {
    let (whole, part) = (duration_ns / 1_000_000_000, duration_ns % 1_000_000_000);
    (whole as f64 + part as f64 / 1e9) as i64
}
