//! TSBS's text format for `TimescaleDB`: for each row a line of tags and a line of values.

use super::block::{HostRows, NONE, TruckRow, TruckTable};
use super::fields::{self, whole};
use super::hosts::Hosts;
use super::strings::Strings;
use super::tables::Shape;
use crate::number::{
    FLOAT_BYTES_MAX, INTEGER_BYTES_MAX, put_float, put_hundred_thousandths, put_integer, put_tenths,
};

/// Text under construction. It keeps its memory when cleared, so that formatting allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Text {
    bytes: Vec<u8>,
    length: usize,
}

impl Text {
    /// The text.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Removes the text and keeps the memory.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Lets `write` append at most `most` bytes: it gets the memory and the position, and returns the
    /// new position.
    pub(super) fn append(&mut self, most: usize, write: impl FnOnce(&mut [u8], usize) -> usize) {
        if self.bytes.len() < self.length + most {
            self.bytes.resize(self.length + most, 0);
        }
        self.length = write(&mut self.bytes, self.length);
    }
}

/// A time with the comma before it and room for what overwrites it.
pub(super) const TIME_BYTES: usize = INTEGER_BYTES_MAX + 3;
/// A constant of a table, boot time or uptime, and six sizes: what fields can come to without states.
pub(super) const CONSTANT_FIELDS: usize = 8;

#[inline]
pub(super) fn put(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    out[at..at + text.len()].copy_from_slice(text);
    at + text.len()
}

#[inline]
pub(super) fn put_line_end(out: &mut [u8], at: usize) -> usize {
    out[at] = b'\n';
    at + 1
}

/// A comma and a time as text, padded so that it is copied by one store.
#[derive(Clone, Copy)]
pub(super) struct Time {
    bytes: [u8; TIME_BYTES],
    length: usize,
}

impl Time {
    pub(super) fn new(time_ns: i64) -> Self {
        let mut bytes = [0; TIME_BYTES];
        let length = put_integer(&mut bytes, 0, time_ns);
        Self { bytes, length }
    }

    #[inline]
    pub(super) fn put(&self, out: &mut [u8], at: usize) -> usize {
        out[at..at + TIME_BYTES].copy_from_slice(&self.bytes);
        at + self.length
    }
}

/// The header of the host tables.
pub(super) fn hosts_header(hosts: &Hosts) -> String {
    let mut tables: Vec<_> = hosts.schema.tables.iter().collect();
    tables.sort_by_key(|table| table.name);
    let mut text = String::from(
        "tags,hostname string,region string,datacenter string,rack string,os string,arch string,\
         team string,service string,service_version string,service_environment string\n",
    );
    for table in tables {
        text.push_str(table.name);
        text.push(',');
        text.push_str(&table.fields.join(","));
        text.push('\n');
    }
    text.push('\n');
    text
}

/// The header of the truck tables.
pub(super) const TRUCKS_HEADER: &str = "tags,name string,fleet string,driver string,model string,\
    device_version string,load_capacity float32,fuel_capacity float32,\
    nominal_fuel_consumption float32\n\
    diagnostics,fuel_state,current_load,status\n\
    readings,latitude,longitude,elevation,velocity,heading,grade,fuel_consumption\n\n";

/// Appends a block of host rows.
pub(super) fn format_hosts(hosts: &Hosts, rows: &HostRows, text: &mut Text) {
    let leads = &hosts.leads[rows.table];
    let fixed = hosts.tags.longest()
        + leads.longest()
        + Strings::SLACK
        + TIME_BYTES
        + 1
        + CONSTANT_FIELDS * FLOAT_BYTES_MAX;
    let most = rows.hosts.len() * fixed + rows.values.len() * INTEGER_BYTES_MAX;
    text.append(most, |out, at| {
        match hosts.schema.tables[rows.table].shape {
            Shape::States => put_rows(hosts, rows, out, at, |out, at, _, states| {
                put_states(out, at, states)
            }),
            Shape::Kernel => put_rows(hosts, rows, out, at, |out, at, host, states| {
                let at = put_integer(out, at, hosts.boot_times[host]);
                put_states(out, at, states)
            }),
            Shape::Redis => put_rows(hosts, rows, out, at, |out, at, _, states| {
                let at = put_integer(out, at, rows.uptime_s);
                put_states(out, at, states)
            }),
            Shape::Disk => put_rows(hosts, rows, out, at, |out, at, _, states| {
                put_disk(out, at, states[0])
            }),
            Shape::Memory => {
                let mut ryu = ryu::Buffer::new();
                put_rows(hosts, rows, out, at, |out, at, host, states| {
                    put_memory(out, at, hosts.memory_bytes[host], states, &mut ryu)
                })
            }
            Shape::Ragged => put_ragged(hosts, rows, out, at),
        }
    });
}

/// Rows of one width; `fields` writes what follows the time.
#[inline]
fn put_rows(
    hosts: &Hosts,
    rows: &HostRows,
    out: &mut [u8],
    mut at: usize,
    mut fields: impl FnMut(&mut [u8], usize, usize, &[f64]) -> usize,
) -> usize {
    let time = Time::new(rows.time_ns);
    let width = hosts.schema.tables[rows.table].width;
    for (&host, states) in rows.hosts.iter().zip(rows.values.chunks_exact(width)) {
        at = put_lead(hosts, rows.table, host as usize, out, at);
        at = time.put(out, at);
        at = fields(out, at, host as usize, states);
        at = put_line_end(out, at);
    }
    at
}

/// Rows whose width is the host's own.
fn put_ragged(hosts: &Hosts, rows: &HostRows, out: &mut [u8], mut at: usize) -> usize {
    let time = Time::new(rows.time_ns);
    let mut rest = &rows.values[..];
    for &host in &rows.hosts {
        let host = host as usize;
        let (states, after) = rest.split_at(hosts.bounds[host + 1] - hosts.bounds[host]);
        rest = after;
        at = put_lead(hosts, rows.table, host, out, at);
        at = time.put(out, at);
        at = put_states(out, at, states);
        at = put_line_end(out, at);
    }
    at
}

/// The tags, the end of their line and the name of the table.
#[inline]
fn put_lead(hosts: &Hosts, table: usize, host: usize, out: &mut [u8], at: usize) -> usize {
    let leads = &hosts.leads[table];
    let at = hosts.tags.put(host, out, at);
    leads.put(if leads.is_single() { 0 } else { host }, out, at)
}

#[inline]
fn put_states(out: &mut [u8], mut at: usize, states: &[f64]) -> usize {
    for &state in states {
        at = put_integer(out, at, whole(state));
    }
    at
}

fn put_disk(out: &mut [u8], at: usize, free: f64) -> usize {
    put_integers(out, at, &fields::disk(free))
}

fn put_memory(
    out: &mut [u8],
    at: usize,
    total: i64,
    states: &[f64],
    ryu: &mut ryu::Buffer,
) -> usize {
    let (bytes, percents) = fields::memory(total, states);
    let at = put_integers(out, at, &bytes);
    let put = |at, percent: &f64| put_float(out, at, *percent, ryu);
    percents.iter().fold(at, put)
}

fn put_integers(out: &mut [u8], at: usize, values: &[i64]) -> usize {
    let put = |at, value: &i64| put_integer(out, at, *value);
    values.iter().fold(at, put)
}

/// Appends a block of truck rows.
pub(super) fn format_trucks(tags: &Strings, rows: &[TruckRow], text: &mut Text) {
    let most = tags.longest() + Strings::SLACK + TIME_BYTES + 8 * INTEGER_BYTES_MAX;
    let mut time_ns = None;
    let mut time = Time::new(0);
    text.append(most * rows.len(), |out, mut at| {
        for row in rows {
            if time_ns != Some(row.time_ns) {
                (time_ns, time) = (Some(row.time_ns), Time::new(row.time_ns));
            }
            at = match row.empty_tag {
                NONE => tags.put(row.truck as usize, out, at),
                empty => put_tags_but_one(out, at, tags.get(row.truck as usize), empty),
            };
            at = put(out, at, truck_lead(row.table));
            at = time.put(out, at);
            at = put_truck_fields(out, at, row);
            at = put_line_end(out, at);
        }
        at
    });
}

/// Decimal places of the fields of `readings` and `diagnostics`.
pub(super) const TRUCK_PLACES: ([u8; 7], [u8; 3]) = ([5, 5, 0, 0, 0, 0, 1], [1, 0, 0]);

fn truck_lead(table: TruckTable) -> &'static [u8] {
    match table {
        TruckTable::Readings => b"\nreadings",
        TruckTable::Diagnostics => b"\ndiagnostics",
    }
}

/// A line of tags, one of them without its value.
fn put_tags_but_one(out: &mut [u8], mut at: usize, line: &[u8], empty: u8) -> usize {
    // the first comma ends the word `tags`
    for (index, tag) in line.split(|&byte| byte == b',').enumerate() {
        let name_end = tag
            .iter()
            .position(|&byte| byte == b'=')
            .map_or(tag.len(), |p| p + 1);
        let shown = if index == usize::from(empty) + 1 {
            &tag[..name_end]
        } else {
            tag
        };
        if index > 0 {
            at = put(out, at, b",");
        }
        at = put(out, at, shown);
    }
    at
}

#[inline]
fn put_truck_fields(out: &mut [u8], mut at: usize, row: &TruckRow) -> usize {
    if row.empty_field != NONE {
        return put_truck_fields_but_one(out, at, row);
    }
    let fields = &row.fields;
    if row.table == TruckTable::Diagnostics {
        at = put_tenths(out, at, fields[0]);
        at = put_integer(out, at, i64::from(fields[1]));
        return put_integer(out, at, i64::from(fields[2]));
    }
    at = put_hundred_thousandths(out, at, fields[0]);
    at = put_hundred_thousandths(out, at, fields[1]);
    for &field in &fields[2..6] {
        at = put_integer(out, at, i64::from(field));
    }
    put_tenths(out, at, fields[6])
}

fn put_truck_fields_but_one(out: &mut [u8], mut at: usize, row: &TruckRow) -> usize {
    let places: &[u8] = match row.table {
        TruckTable::Readings => &TRUCK_PLACES.0,
        TruckTable::Diagnostics => &TRUCK_PLACES.1,
    };
    for (index, (&field, places)) in row.fields.iter().zip(places).enumerate() {
        at = match places {
            _ if index == usize::from(row.empty_field) => put(out, at, b","),
            5 => put_hundred_thousandths(out, at, field),
            1 => put_tenths(out, at, field),
            _ => put_integer(out, at, i64::from(field)),
        };
    }
    at
}
