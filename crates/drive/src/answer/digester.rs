//! Rows in, digest out: nothing is allocated for a row once the widest has been seen.

use super::{Column, Digest, Unreadable};
use crate::protocol::value::{Cell, Form, Kind};
use crate::protocol::{self, Columns, Row};

const GOLDEN: f64 = 0.618_033_988_749_894_9;
const TWO_POW_32: f64 = 4_294_967_296.0;
const TWO_POW_52: f64 = 4_503_599_627_370_496.0;
/// Exponent bias of a double, in the place where its bits hold it.
const BIAS: u64 = 1023 << 52;
/// As much of an unreadable value as a message shows.
const SHOWN_BYTES: usize = 40;

/// A sum that keeps what rounding would lose (Neumaier), so that the order of rows does not matter.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost += if self.sum.abs() >= value.abs() {
            (self.sum - sum) + value
        } else {
            (value - sum) + self.sum
        };
        self.sum = sum;
    }

    fn total(self) -> f64 {
        let total = self.sum + self.lost;
        if total.is_nan() { f64::MAX } else { total }
    }
}

#[derive(Debug)]
struct ColumnDigest {
    column: Column,
    form: Form,
    is_binary: bool,
    /// c(j) of the definition.
    factor: f64,
    sum: Sum,
    abs: Sum,
    weighted: Sum,
}

/// What is left of a value when the exact has been booked.
enum Inexact {
    Nothing,
    /// A number or span to be summed.
    Finite(f64),
}

/// Computes the digest of one answer at a time.
#[derive(Debug, Default)]
pub(crate) struct Digester {
    rows: u64,
    keys: u64,
    digests: Vec<ColumnDigest>,
    /// Of the row at hand: its key, and its finite numbers and spans by column.
    key: Vec<u8>,
    values: Vec<(usize, f64)>,
    scratch: Vec<u8>,
}

impl Digester {
    /// Begin an answer.
    pub(crate) fn clear(&mut self) {
        (self.rows, self.keys) = (0, 0);
        self.digests.clear();
    }

    /// The columns of the rows that follow.
    pub(crate) fn describe(&mut self, columns: &impl Columns) {
        self.clear();
        for (number, column) in columns.columns().enumerate() {
            self.digests.push(ColumnDigest::new(number, &column));
        }
    }

    /// One row.
    pub(crate) fn row<R: Row>(&mut self, row: &R) -> Result<(), Unreadable> {
        self.key.clear();
        self.values.clear();
        let mut mix = 0.0;
        for (number, (value, account)) in row.values().zip(&mut self.digests).enumerate() {
            let Some(value) = value else {
                self.key.push(255);
                continue;
            };
            let read = account.read::<R>(value, &mut self.key, &mut self.scratch);
            let read = read.ok_or_else(|| account.unreadable::<R>(number, value))?;
            if let Inexact::Finite(value) = read {
                if account.column.kind == Kind::Number {
                    mix += account.factor * bent_log2(value);
                }
                self.values.push((number, value));
            }
        }
        self.end_row(mix);
        Ok(())
    }

    /// The columns of the cells that follow: their names and kinds.
    pub(crate) fn describe_cells<'a>(&mut self, columns: impl Iterator<Item = (&'a str, Kind)>) {
        self.clear();
        for (number, (name, kind)) in columns.enumerate() {
            self.digests
                .push(ColumnDigest::blank(number, name.to_lowercase(), kind));
        }
    }

    /// One row of values that need not be read any more.
    pub(crate) fn cells<'a>(&mut self, cells: impl Iterator<Item = Option<Cell<'a>>>) {
        self.key.clear();
        self.values.clear();
        let mut mix = 0.0;
        for (number, (cell, account)) in cells.zip(&mut self.digests).enumerate() {
            let Some(cell) = cell else {
                self.key.push(255);
                continue;
            };
            if let Inexact::Finite(value) = account.book(&cell, &mut self.key) {
                if account.column.kind == Kind::Number {
                    mix += account.factor * bent_log2(value);
                }
                self.values.push((number, value));
            }
        }
        self.end_row(mix);
    }

    /// All values of a row have been booked.
    fn end_row(&mut self, mix: f64) {
        let crc = crc32fast::hash(&self.key);
        self.rows += 1;
        self.keys = self.keys.wrapping_add(u64::from(crc));
        let weight =
            1.0 + f64::from(crc) / TWO_POW_32 + (mix - 2.0 * (mix / 2.0).floor() - 1.0).abs();
        for &(number, value) in &self.values {
            let account = &mut self.digests[number];
            account.sum.add(value);
            account.abs.add(value.abs());
            account.weighted.add(value * weight);
        }
    }

    /// The digest of the rows so far.
    pub(crate) fn digest(&self) -> Digest {
        Digest {
            rows: self.rows,
            keys: self.keys,
            columns: self.digests.iter().map(ColumnDigest::column).collect(),
        }
    }
}

impl ColumnDigest {
    fn new(number: usize, column: &protocol::Column<'_>) -> Self {
        let form = column.form;
        let name = String::from_utf8_lossy(column.name).to_lowercase();
        let mut account = Self::blank(number, name, form.kind());
        account.column.type_oid =
            (form == Form::Other && column.is_binary).then_some(column.type_oid);
        (account.form, account.is_binary) = (form, column.is_binary);
        account
    }

    /// Of a column whose values are cells already.
    fn blank(number: usize, name: String, kind: Kind) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "columns are few")]
        let turns = (number + 1) as f64 * GOLDEN;
        Self {
            column: Column {
                name,
                kind,
                type_oid: None,
                count: 0,
                crc: 0,
                min_us: i64::MAX,
                max_us: i64::MIN,
                sum: 0.0,
                abs: 0.0,
                weighted: 0.0,
                nan: 0,
                inf: 0,
                neg_inf: 0,
            },
            form: Form::Other,
            is_binary: false,
            factor: 0.5 + (turns - turns.floor()),
            sum: Sum::default(),
            abs: Sum::default(),
            weighted: Sum::default(),
        }
    }

    /// Book what is exact in a value, and say what is not. `None`: unreadable.
    fn read<R: Row>(
        &mut self,
        value: &[u8],
        key: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Option<Inexact> {
        let cell = R::cell(self.form, self.is_binary, value, scratch)?;
        Some(self.book(&cell, key))
    }

    /// Book what is exact in a cell, and say what is not.
    fn book(&mut self, cell: &Cell<'_>, key: &mut Vec<u8>) -> Inexact {
        let column = &mut self.column;
        column.count += 1;
        match *cell {
            Cell::Text(text) => {
                column.crc = column.crc.wrapping_add(u64::from(crc32fast::hash(text)));
                key.extend_from_slice(text);
                key.push(0);
            }
            Cell::Time(us) => {
                let bytes = us.to_le_bytes();
                column.crc = column.crc.wrapping_add(u64::from(crc32fast::hash(&bytes)));
                (column.min_us, column.max_us) = (column.min_us.min(us), column.max_us.max(us));
                key.extend_from_slice(&bytes);
            }
            #[expect(clippy::cast_precision_loss, reason = "a digest compares doubles")]
            Cell::Int(value) => return Inexact::Finite(value as f64),
            Cell::Number(value) | Cell::Span(value) => {
                if value.is_finite() {
                    return Inexact::Finite(value);
                }
                column.nan += u64::from(value.is_nan());
                column.inf += u64::from(value == f64::INFINITY);
                column.neg_inf += u64::from(value == f64::NEG_INFINITY);
            }
        }
        Inexact::Nothing
    }

    fn unreadable<R: Row>(&self, number: usize, value: &[u8]) -> Unreadable {
        Unreadable {
            number,
            name: self.column.name.clone(),
            form: self.form,
            value: String::from_utf8_lossy(&value[..value.len().min(SHOWN_BYTES)]).into_owned(),
            hint: if self.is_binary { "" } else { R::TEXT_HINT },
        }
    }

    fn column(&self) -> Column {
        Column {
            sum: self.sum.total(),
            abs: self.abs.total(),
            weighted: self.weighted.total(),
            ..self.column.clone()
        }
    }
}

/// g of the definition.
fn bent_log2(value: f64) -> f64 {
    // 1 + |x| is at least one, so its bits are at least the bias.
    #[expect(
        clippy::cast_precision_loss,
        reason = "part of the definition: rounded once"
    )]
    let bent = ((1.0 + value.abs()).to_bits() - BIAS) as f64 / TWO_POW_52;
    if value < 0.0 { -bent } else { bent }
}
