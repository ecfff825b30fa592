//! A query's answer as a small value by which engines can be compared: the digest.
//!
//! Two engines that hold the same rows must give the same answer, but not the same bytes: the order of rows may
//! differ, a mean may differ in its last digits, a count may be `bigint` here and `numeric` there. The digest
//! keeps what must agree, in a few numbers a column, and is computed while rows arrive.
//!
//! # Definition
//! A column has one of four kinds.
//! * **number**: integers, floats, numeric, booleans (1 and 0).
//! * **span**: intervals and times of day in microseconds; a month has 30 days, a day 24 hours.
//! * **time**: dates and timestamps in microseconds since 1970-01-01 UTC; without a time zone they are taken as
//!   UTC.
//! * **text**: everything else, as UTF-8 (`bytea`: its bytes).
//!
//! Times and texts are *exact*: no engine rounds them. Numbers and spans are not. NULL is exact in every column.
//!
//! Of each row:
//! * its *key* is, in column order, every text followed by a zero byte, every time as eight bytes (little
//!   endian), every NULL (of whatever kind) as the byte 255; numbers and spans leave nothing.
//! * its *mix* is m = sum of c(j) g(x) over its finite numbers x, j being the number of the column from 0, with
//!   c(j) = 1/2 + fraction((j + 1) * 0.6180339887498949) and g(x) = sign(x) * (`bits`(1 + |x|) / 2^52 - 1023), where
//!   `bits` reads an IEEE double as an integer: the logarithm to base 2 with straight lines between powers of two.
//! * its *weight* is w = 1 + crc32(key) / 2^32 + |m - 2 floor(m / 2) - 1|, which lies between 1 and 3.
//!
//! The digest is `{"rows", "keys", "columns":[…]}`: `keys` is the sum of crc32(key) over the rows, modulo 2^64. A
//! column is `{"name", "kind", "count"}` (`count`: values that are not NULL) and
//! * text, time: `"crc"`, the sum of crc32(value) modulo 2^64, of a time as its eight bytes; times also
//!   `"min_us"` and `"max_us"`;
//! * number, span: `"sum"`, `"abs"` (sum of absolute values) and `"weighted"` (sum of value times w) over finite
//!   values, and how many are `"nan"`, `"inf"` and `"neg_inf"`.
//!
//! # Comparison
//! Rows, kinds and positions of columns, counts, crc and keys must be equal; names are not compared, engines
//! choose their own. A column without a value agrees with any kind. Sums agree within 1e-9 of `abs`, weighted sums
//! within 1e-8 of it, each plus 1e-12 a value (a difference of two equal means is noise around zero), and spans
//! within half a microsecond a value more (engines round a mean interval to whole microseconds, or cut it).
//!
//! # Rationale
//! Sums do not depend on order. A sum alone would not see values of two rows swapped; the weight does, because it
//! ties each value to the rest of its row: to its texts and times by the checksum, and to its other numbers by the
//! mix. The mix has to be continuous, or the last digit of a mean would change everything: g grows by at most two
//! relative units, the triangle wave has slope one, so an error of 1e-12 in each of ten numbers moves the weight
//! by less than 1e-10. g needs no library function, so it has the same bits in every language. Spans stay out of
//! the mix: engines round them.
//! What it cannot see: a change of one number by less than the tolerance of its whole column.

pub(crate) mod arrow;
mod digester;
mod render;
pub(crate) mod saved;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

pub(crate) use self::digester::Digester;
pub(crate) use self::render::{Rows, whole};
use crate::protocol::value::{Form, Kind, utc};

/// Agreement of sums, relative to the sum of absolute values.
const SUM_TOLERANCE: f64 = 1e-9;
/// Agreement of weighted sums, relative to the sum of absolute values.
const WEIGHTED_TOLERANCE: f64 = 1e-8;
/// No weight is larger.
const WEIGHT_MAX: f64 = 3.0;
/// What a value may differ by in any case.
const VALUE_TOLERANCE: f64 = 1e-12;
/// What a span may differ by in any case, microseconds.
const SPAN_TOLERANCE_US: f64 = 0.5;

/// A value that is not what its type's form demands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {} ({name}): {value:?} cannot be read as {form:?}{hint}", number + 1)]
pub(crate) struct Unreadable {
    pub(crate) number: usize,
    pub(crate) name: String,
    pub(crate) form: Form,
    /// The beginning of the value.
    pub(crate) value: String,
    pub(crate) hint: &'static str,
}

/// The digest of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Digest {
    pub(crate) rows: u64,
    pub(crate) keys: u64,
    pub(crate) columns: Vec<Column>,
}

/// A column's share of a digest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Type of a column whose binary form is not known to us.
    pub(crate) type_oid: Option<u32>,
    pub(crate) count: u64,
    pub(crate) crc: u64,
    pub(crate) min_us: i64,
    pub(crate) max_us: i64,
    pub(crate) sum: f64,
    pub(crate) abs: f64,
    pub(crate) weighted: f64,
    pub(crate) nan: u64,
    pub(crate) inf: u64,
    pub(crate) neg_inf: u64,
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("kind", self.kind.word())?;
        map.serialize_entry("count", &self.count)?;
        match self.kind {
            Kind::Text => map.serialize_entry("crc", &self.crc)?,
            Kind::Time => {
                let seen = self.count > 0;
                map.serialize_entry("crc", &self.crc)?;
                map.serialize_entry("min_us", &seen.then_some(self.min_us))?;
                map.serialize_entry("max_us", &seen.then_some(self.max_us))?;
            }
            Kind::Number | Kind::Span => {
                // JSON has no infinity: a sum beyond all doubles is the largest one.
                let bounded = |sum: f64| sum.clamp(-f64::MAX, f64::MAX);
                map.serialize_entry("sum", &bounded(self.sum))?;
                map.serialize_entry("abs", &bounded(self.abs))?;
                map.serialize_entry("weighted", &bounded(self.weighted))?;
                map.serialize_entry("nan", &self.nan)?;
                map.serialize_entry("inf", &self.inf)?;
                map.serialize_entry("neg_inf", &self.neg_inf)?;
            }
        }
        if let Some(oid) = self.type_oid {
            map.serialize_entry("type_oid", &oid)?;
        }
        map.end()
    }
}

impl Digest {
    /// What differs between this answer and another, in words; `None` when they agree.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        if self.rows != other.rows {
            return Some(format!(
                "row count {} here, {} there",
                self.rows, other.rows
            ));
        }
        let (here, there) = (self.columns.len(), other.columns.len());
        if here != there {
            return Some(format!("column count {here} here, {there} there"));
        }
        let pairs = || self.columns.iter().zip(&other.columns).enumerate();
        let named = |number: usize, words: String| {
            format!(
                "column {} ({}): {words}",
                number + 1,
                self.columns[number].name
            )
        };
        for (number, (a, b)) in pairs() {
            if let Some(words) = a.exact_difference(b) {
                return Some(named(number, words));
            }
        }
        if self.keys != other.keys {
            return Some("texts, times or NULLs are in other rows".to_owned());
        }
        // All sums before all weighted ones: a changed number changes its row's weight, and so every other column.
        let sums =
            || pairs().find_map(|(number, (a, b))| Some(named(number, a.sum_difference(b)?)));
        let weighted =
            || pairs().find_map(|(number, (a, b))| Some(named(number, a.weighted_difference(b)?)));
        sums().or_else(weighted)
    }
}

impl Column {
    fn exact_difference(&self, other: &Self) -> Option<String> {
        let differ =
            |what: &str, a: u64, b: u64| (a != b).then(|| format!("{what} {a} here, {b} there"));
        if self.kind != other.kind && self.count > 0 && other.count > 0 {
            let (a, b) = (self.kind.word(), other.kind.word());
            return Some(format!("a {a} here, a {b} there"));
        }
        differ("count of values that are not NULL", self.count, other.count)
            .or_else(|| differ("count of NaN", self.nan, other.nan))
            .or_else(|| differ("count of infinities", self.inf, other.inf))
            .or_else(|| differ("count of negative infinities", self.neg_inf, other.neg_inf))
            .or_else(|| (self.crc != other.crc).then(|| self.crc_words(other)))
    }

    fn crc_words(&self, other: &Self) -> String {
        if let Some(oid) = self.type_oid.or(other.type_oid) {
            return format!(
                "texts differ, or the binary form of type {oid} is unknown: compare in text format"
            );
        }
        let (here, there) = ((self.min_us, self.max_us), (other.min_us, other.max_us));
        if self.kind == Kind::Time && here != there {
            let from_to = |(min, max)| format!("{} to {}", utc(min), utc(max));
            return format!(
                "times differ: {} here, {} there",
                from_to(here),
                from_to(there)
            );
        }
        format!("{}s differ", self.kind.word())
    }

    /// The sum of absolute values, and what sums may differ by in any case.
    fn size(&self, other: &Self) -> (f64, f64) {
        let each = match self.kind {
            Kind::Span => SPAN_TOLERANCE_US,
            _ => VALUE_TOLERANCE,
        };
        #[expect(clippy::cast_precision_loss, reason = "a tolerance needs few digits")]
        let free = each * self.count as f64;
        (self.abs.max(other.abs), free)
    }

    fn sum_difference(&self, other: &Self) -> Option<String> {
        let (abs, free) = self.size(other);
        let apart = (self.sum - other.sum).abs();
        (apart > SUM_TOLERANCE * abs + free).then(|| format!("sums differ by {:.2e}", apart / abs))
    }

    fn weighted_difference(&self, other: &Self) -> Option<String> {
        let (abs, free) = self.size(other);
        let apart = (self.weighted - other.weighted).abs();
        (apart > WEIGHTED_TOLERANCE * abs + WEIGHT_MAX * free)
            .then(|| "values are in other rows".to_owned())
    }
}

#[cfg(test)]
mod tests;
