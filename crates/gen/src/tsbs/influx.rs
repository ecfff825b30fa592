//! TSBS's text format for `InfluxDB`: a line of its line protocol for each row, without a header.
//!
//! Whole numbers of hosts end in `i`; numbers among the tags of a truck come first among its fields.
//! What is empty is left out.

use super::block::{HostRows, NONE, TruckRow, TruckTable};
use super::fields::{self, whole};
use super::hosts::Hosts;
use super::strings::Strings;
use super::tables::Shape;
use super::text::{CONSTANT_FIELDS, TIME_BYTES, TRUCK_PLACES, Text, Time, put, put_line_end};
use crate::number::{
    FLOAT_BYTES_MAX, INTEGER_BYTES_MAX, put_float, put_hundred_thousandths, put_integer, put_tenths,
};

/// The word before the tags in the lines of tags.
const TAGS: usize = "tags".len();

/// The names of the fields of a table, each with what separates it from what is before it.
pub(super) fn labels<'a>(fields: impl IntoIterator<Item = &'a str>) -> Strings {
    let mut labels = Strings::new();
    for (index, field) in fields.into_iter().enumerate() {
        let separator = if index == 0 { ' ' } else { ',' };
        labels.push(&format!("{separator}{field}"));
    }
    labels
}

/// Appends a block of host rows.
pub(super) fn format_hosts(hosts: &Hosts, rows: &HostRows, text: &mut Text) {
    let table = &hosts.schema.tables[rows.table];
    let (leads, labels) = (&hosts.leads[rows.table], &hosts.labels[rows.table]);
    let lead = table.name.len() + hosts.tags.longest() + leads.longest() + TIME_BYTES + 1;
    let field = labels.longest() + Strings::SLACK + FLOAT_BYTES_MAX + 1;
    let fields = rows.values.len() + rows.hosts.len() * CONSTANT_FIELDS;
    let time = Time::new(rows.time_ns);
    text.append(rows.hosts.len() * lead + fields * field, |out, mut at| {
        let mut rest = &rows.values[..];
        let mut ryu = ryu::Buffer::new();
        for &host in &rows.hosts {
            let host = host as usize;
            let width = table.width.min(hosts.bounds[host + 1] - hosts.bounds[host]);
            let (states, after) = rest.split_at(width);
            rest = after;
            let own = leads.get(if leads.is_single() { 0 } else { host });
            at = put(out, at, table.name.as_bytes());
            at = put(out, at, &hosts.tags.get(host)[TAGS..]);
            at = put(out, at, &own[..own.len() - table.name.len() - 1]);
            let mut line = Line { out, at, labels };
            put_host(hosts, rows, host, states, &mut line, &mut ryu);
            at = line.at;
            at = put_time(out, at, &time);
        }
        at
    });
}

/// The time, which ends the line.
#[inline]
fn put_time(out: &mut [u8], at: usize, time: &Time) -> usize {
    let end = time.put(out, at);
    out[at] = b' ';
    put_line_end(out, end)
}

/// The fields of a line under construction.
struct Line<'a> {
    out: &'a mut [u8],
    at: usize,
    labels: &'a Strings,
}

impl Line<'_> {
    /// A field: `write` writes a comma, which becomes the equals sign, and the value.
    #[inline]
    fn put(&mut self, field: usize, write: impl FnOnce(&mut [u8], usize) -> usize) {
        let start = self.labels.put(field, self.out, self.at);
        self.at = write(self.out, start);
        self.out[start] = b'=';
    }

    #[inline]
    fn put_integers(&mut self, first: usize, values: impl Iterator<Item = i64>) {
        for (field, value) in (first..).zip(values) {
            self.put(field, |out, at| put_integer_marked(out, at, value));
        }
    }
}

#[inline]
fn put_integer_marked(out: &mut [u8], at: usize, value: i64) -> usize {
    let end = put_integer(out, at, value);
    out[end] = b'i';
    end + 1
}

/// The fields of a host's row.
#[inline]
fn put_host(
    hosts: &Hosts,
    rows: &HostRows,
    host: usize,
    states: &[f64],
    line: &mut Line,
    ryu: &mut ryu::Buffer,
) {
    let wholes = states.iter().map(|state| whole(*state));
    match hosts.schema.tables[rows.table].shape {
        Shape::States | Shape::Ragged => line.put_integers(0, wholes),
        Shape::Kernel => {
            line.put_integers(0, std::iter::once(hosts.boot_times[host]));
            line.put_integers(1, wholes);
        }
        Shape::Redis => {
            line.put_integers(0, std::iter::once(rows.uptime_s));
            line.put_integers(1, wholes);
        }
        Shape::Disk => line.put_integers(0, fields::disk(states[0]).into_iter()),
        Shape::Memory => {
            let (bytes, percents) = fields::memory(hosts.memory_bytes[host], states);
            line.put_integers(0, bytes.into_iter());
            for (field, percent) in (bytes.len()..).zip(percents) {
                line.put(field, |out, at| put_float(out, at, percent, ryu));
            }
        }
    }
}

/// The first of a truck's tags that is a number.
const FIRST_NUMBER: usize = 5;
const DIAGNOSTICS: [&[u8]; 3] = [b",fuel_state", b",current_load", b",status"];
const READINGS: [&[u8]; 7] = [
    b",latitude",
    b",longitude",
    b",elevation",
    b",velocity",
    b",heading",
    b",grade",
    b",fuel_consumption",
];

/// Appends a block of truck rows.
pub(super) fn format_trucks(tags: &Strings, rows: &[TruckRow], text: &mut Text) {
    let names: usize = READINGS.iter().map(|name| name.len()).sum();
    let most = tags.longest() + names + TIME_BYTES + 9 * INTEGER_BYTES_MAX;
    let mut time_ns = None;
    let mut time = Time::new(0);
    text.append(most * rows.len(), |out, mut at| {
        for row in rows {
            if time_ns != Some(row.time_ns) {
                (time_ns, time) = (Some(row.time_ns), Time::new(row.time_ns));
            }
            at = match row.table {
                TruckTable::Readings => put(out, at, b"readings"),
                TruckTable::Diagnostics => put(out, at, b"diagnostics"),
            };
            at = put_truck_tags(out, at, tags.get(row.truck as usize), row.empty_tag);
            at = put_truck_fields(out, at, row);
            at = put_time(out, at, &time);
        }
        at
    });
}

/// The tags that are text, then those that are numbers as fields.
#[inline]
fn put_truck_tags(out: &mut [u8], mut at: usize, line: &[u8], empty: u8) -> usize {
    if empty == NONE {
        let mut commas = line
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, byte)| **byte == b',');
        let numbers = commas
            .nth(7 - FIRST_NUMBER)
            .map_or(TAGS, |(index, _)| index);
        let start = at;
        at = put(out, at, &line[TAGS..]);
        out[start + numbers - TAGS] = b' ';
        return at;
    }
    let mut separator = b',';
    for (index, tag) in line.split(|&byte| byte == b',').skip(1).enumerate() {
        if index == FIRST_NUMBER {
            separator = b' ';
        }
        if index != usize::from(empty) {
            out[at] = separator;
            at = put(out, at + 1, tag);
            separator = b',';
        }
    }
    at
}

/// The fields of a truck's row; tags that are numbers are before them.
#[inline]
fn put_truck_fields(out: &mut [u8], mut at: usize, row: &TruckRow) -> usize {
    let (names, places): (&[&[u8]], &[u8]) = match row.table {
        TruckTable::Readings => (&READINGS, &TRUCK_PLACES.0),
        TruckTable::Diagnostics => (&DIAGNOSTICS, &TRUCK_PLACES.1),
    };
    for (index, (name, places)) in names.iter().zip(places).enumerate() {
        if index == usize::from(row.empty_field) {
            continue;
        }
        let value = row.fields[index];
        let start = put(out, at, name);
        at = match places {
            5 => put_hundred_thousandths(out, start, value),
            1 => put_tenths(out, start, value),
            _ if row.table == TruckTable::Diagnostics && index == 2 => {
                put_integer_marked(out, start, value.into())
            }
            _ => put_integer(out, start, value.into()),
        };
        out[start] = b'=';
    }
    at
}
