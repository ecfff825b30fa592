//! TSBS's stream as Arrow record batches.

pub(super) mod columns;
pub(super) mod schema;
pub(super) mod states;

use std::sync::Arc;

use arrow_schema::{ArrowError, DataType};

use self::columns::SeriesRows;
use self::schema::{HOST_TAGS, series_table, tags_table, trucks_table};
use self::states::{Ids, TagRows};
use super::block::{HostRows, NONE, TruckRow, TruckTable};
use super::fields::{self, as_double, whole};
use super::hosts::Hosts;
use super::strings::Strings;
use super::tables::Shape;
use super::{Block, Catalog, CatalogKind, Config, ConfigError, Simulation};
use crate::dataset::{Chunk, Dataset, Source, SourceError, Table, TableRows, check_chunk_rows};

/// A data set of TSBS as it is simulated: row for row what a reader of TSBS's own text finds.
///
/// All fields are doubles, as in the tables that TSBS makes: each is bit for bit what its text is read
/// back as. Ids count the states of tags: a truck that shows without its fleet is another row of `tags`
/// than the same truck with it.
#[derive(Clone, Debug)]
pub struct SimulationSource {
    simulation: Simulation,
    dataset: Arc<Dataset>,
    tags: TagRows,
    ids: Ids,
    /// By the number of the table in the data set.
    rows: Vec<SeriesRows>,
    /// The number in the data set of each table of the simulation.
    numbers: Vec<usize>,
    /// By the simulation's number: each host's own tags of this table as JSON, if it has any.
    additional: Vec<Option<Strings>>,
    block: Block,
    /// Rows of the block that are taken, and their values.
    taken: usize,
    taken_values: usize,
}

impl SimulationSource {
    /// Draws the devices.
    ///
    /// # Errors
    /// If the configuration cannot be generated.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let simulation = Simulation::new(config)?;
        let made = SeriesTables::of(simulation.catalog());
        let tags = TagRows::new(&made.tags.schema);
        let rows = made
            .tables
            .iter()
            .map(|table| SeriesRows::new(table.metrics));
        Ok(Self {
            simulation,
            tags,
            ids: made.ids,
            rows: rows.collect(),
            numbers: made.numbers,
            additional: made.additional,
            block: Block::default(),
            taken: 0,
            taken_values: 0,
            dataset: Arc::new(Dataset {
                tags: Some(made.tags),
                tables: made.tables,
            }),
        })
    }

    /// Takes up to so many rows of the present block; returns their metrics.
    fn take(&mut self, catalog: &Catalog, rows: usize) -> Result<u64, SourceError> {
        let first = self.taken;
        self.taken += rows;
        match &catalog.0 {
            CatalogKind::Hosts(hosts) => self.take_hosts(hosts, first, rows),
            CatalogKind::Trucks(lines) => self.take_trucks(lines, first, rows),
        }
    }

    fn take_hosts(&mut self, hosts: &Hosts, first: usize, rows: usize) -> Result<u64, SourceError> {
        let block = &self.block.hosts;
        let to = &mut self.rows[self.numbers[block.table]];
        let taken = &block.hosts[first..first + rows];
        for &host in taken {
            let id = self.ids.host(host as usize, &hosts.tags, &mut self.tags)?;
            to.tags.push(id);
        }
        to.times.resize(to.times.len() + rows, block.time_ns);
        if let Some(texts) = &self.additional[block.table] {
            for &host in taken {
                to.additional.push(texts.get(host as usize));
            }
        }
        let values = &block.values[self.taken_values..];
        let used = put_fields(hosts, block, taken, values, to);
        self.taken_values += used;
        let table = &hosts.schema.tables[block.table];
        Ok(match table.shape {
            Shape::Ragged => used as u64,
            _ => (rows * table.fields.len()) as u64,
        })
    }

    fn take_trucks(
        &mut self,
        lines: &Strings,
        first: usize,
        rows: usize,
    ) -> Result<u64, SourceError> {
        let mut metrics = 0;
        for row in &self.block.trucks[first..first + rows] {
            let id = self
                .ids
                .truck(row.truck, row.empty_tag, lines, &mut self.tags)?;
            let to = &mut self.rows[truck_table(row.table)];
            to.times.push(row.time_ns);
            to.tags.push(id);
            put_truck_fields(row, to);
            metrics += row.width() as u64;
        }
        Ok(metrics)
    }

    /// Rows of the block that are left, after it was filled again if there were none; 0 at the end.
    fn available(&mut self) -> usize {
        if self.taken == self.block.rows() {
            (self.taken, self.taken_values) = (0, 0);
            if !self.simulation.fill(&mut self.block) {
                self.block.clear();
            }
        }
        self.block.rows() - self.taken
    }

    fn finish(&mut self, rows: usize, metrics: u64) -> Result<Chunk, ArrowError> {
        let tags = match &self.dataset.tags {
            Some(table) => self.tags.take(&table.schema)?,
            None => None,
        };
        let mut tables = Vec::with_capacity(self.rows.len());
        for (number, columns) in self.rows.iter_mut().enumerate() {
            if columns.len() > 0 {
                let rows = columns.take(&self.dataset.tables[number].schema)?;
                tables.push(TableRows {
                    table: number,
                    rows: rows.into(),
                });
            }
        }
        Ok(Chunk {
            tags,
            tables,
            rows: rows as u64,
            metrics,
        })
    }
}

impl Source for SimulationSource {
    fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError> {
        check_chunk_rows(rows)?;
        let catalog = Arc::clone(self.simulation.catalog());
        let (mut made, mut metrics) = (0, 0);
        while made < rows {
            let count = self.available().min(rows - made);
            if count == 0 {
                break;
            }
            metrics += self.take(&catalog, count)?;
            made += count;
        }
        if made == 0 {
            return Ok(None);
        }
        let chunk = self.finish(made, metrics);
        chunk
            .map(Some)
            .map_err(|error| SourceError::Refused(error.to_string()))
    }
}

/// What a source is made of, by use case.
pub(super) struct SeriesTables {
    pub(super) tags: Table,
    pub(super) tables: Vec<Table>,
    /// The number in the data set of each table of a simulation of hosts.
    pub(super) numbers: Vec<usize>,
    ids: Ids,
    /// By the simulation's number: each host's own tags of this table as JSON, if it has any.
    pub(super) additional: Vec<Option<Strings>>,
}

impl SeriesTables {
    pub(super) fn of(catalog: &Catalog) -> Self {
        match &catalog.0 {
            CatalogKind::Hosts(hosts) => Self::of_hosts(hosts),
            CatalogKind::Trucks(lines) => Self::of_trucks(lines),
        }
    }

    fn of_hosts(hosts: &Hosts) -> Self {
        let made = &hosts.schema.tables;
        let mut order: Vec<usize> = (0..made.len()).collect();
        order.sort_by_key(|&table| made[table].name);
        let mut numbers = vec![0; made.len()];
        for (number, &table) in order.iter().enumerate() {
            numbers[table] = number;
        }
        let table = |&table: &usize| {
            let table = &made[table];
            series_table(table.name, table.fields.iter().map(String::as_str))
        };
        Self {
            tags: tags_table(HOST_TAGS.iter().map(|&name| (name, DataType::Utf8))),
            tables: order.iter().map(table).collect(),
            numbers,
            ids: Ids::of_hosts(hosts.bounds.len() - 1),
            additional: hosts.leads.iter().map(additional_tags).collect(),
        }
    }

    fn of_trucks(lines: &Strings) -> Self {
        let fields = [
            ("diagnostics", "fuel_state current_load status"),
            (
                "readings",
                "latitude longitude elevation velocity heading grade fuel_consumption",
            ),
        ];
        let table =
            |(name, fields): (&str, &'static str)| series_table(name, fields.split_whitespace());
        Self {
            tags: trucks_table(),
            tables: fields.into_iter().map(table).collect(),
            numbers: Vec::new(),
            ids: Ids::of_trucks(lines.len()),
            additional: Vec::new(),
        }
    }
}

/// The number of a truck's table in the data set: tables are sorted by name.
#[inline]
fn truck_table(table: TruckTable) -> usize {
    match table {
        TruckTable::Diagnostics => 0,
        TruckTable::Readings => 1,
    }
}

/// The tags in the leads of a table, `,path=/dev/sda1,fstype=ext3⏎disk`, as JSON objects.
fn additional_tags(leads: &Strings) -> Option<Strings> {
    let mut objects = Strings::new();
    for index in 0..leads.len() {
        let lead = String::from_utf8_lossy(leads.get(index));
        let pairs = lead.lines().next()?.strip_prefix(',')?;
        let pairs: Vec<_> = pairs
            .split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| format!("\"{name}\":\"{value}\""))
            .collect();
        objects.push(&format!("{{{}}}", pairs.join(",")));
    }
    Some(objects)
}

/// Appends the fields of rows of one table, from their states; returns how many states were used.
fn put_fields(
    hosts: &Hosts,
    block: &HostRows,
    taken: &[u32],
    values: &[f64],
    to: &mut SeriesRows,
) -> usize {
    let table = &hosts.schema.tables[block.table];
    if table.shape == Shape::Ragged {
        return put_ragged(hosts, taken, values, to);
    }
    let values = &values[..taken.len() * table.width];
    let rows = || values.chunks_exact(table.width);
    let (constants, states) = to.fields.split_at_mut(table.fields.len() - table.width);
    match table.shape {
        Shape::Disk => rows().for_each(|row| {
            let fields = fields::disk(row[0]);
            push_all(&mut to.fields, fields.map(as_double));
        }),
        Shape::Memory => rows().zip(taken).for_each(|(row, &host)| {
            let (bytes, percents) = fields::memory(hosts.memory_bytes[host as usize], row);
            push_all(&mut to.fields, bytes.map(as_double));
            push_all(&mut to.fields[6..], percents);
        }),
        _ => {
            for field in constants {
                let constant = |&host: &u32| match table.shape {
                    Shape::Kernel => as_double(hosts.boot_times[host as usize]),
                    _ => as_double(block.uptime_s),
                };
                field.values.extend(taken.iter().map(constant));
            }
            for (index, field) in states.iter_mut().enumerate() {
                let column = rows().map(|row| as_double(whole(row[index])));
                field.values.extend(column);
            }
        }
    }
    values.len()
}

/// One value more for each of the first fields.
#[inline]
fn push_all<const N: usize>(fields: &mut [columns::Doubles], values: [f64; N]) {
    for (field, value) in fields.iter_mut().zip(values) {
        field.values.push(value);
    }
}

/// Rows whose width is the host's own: the fields beyond it stay without a value.
fn put_ragged(hosts: &Hosts, taken: &[u32], values: &[f64], to: &mut SeriesRows) -> usize {
    let first = to.tags.len() - taken.len();
    let mut used = 0;
    for (row, &host) in (first..).zip(taken) {
        let host = host as usize;
        let width = hosts.bounds[host + 1] - hosts.bounds[host];
        for (field, &state) in to.fields.iter_mut().zip(&values[used..used + width]) {
            field.skip_to(row);
            field.values.push(as_double(whole(state)));
        }
        used += width;
    }
    used
}

/// The fields of a truck: whole numbers of the last decimal place, divided exactly as reading does.
#[inline]
fn put_truck_fields(row: &TruckRow, to: &mut SeriesRows) {
    let units: &[f64] = match row.table {
        TruckTable::Readings => &[100_000.0, 100_000.0, 1.0, 1.0, 1.0, 1.0, 10.0],
        TruckTable::Diagnostics => &[10.0, 1.0, 1.0],
    };
    for ((index, field), unit) in to.fields.iter_mut().enumerate().zip(units) {
        if row.empty_field != NONE && index == usize::from(row.empty_field) {
            field.push_null();
        } else {
            field.values.push(f64::from(row.fields[index]) / unit);
        }
    }
}
