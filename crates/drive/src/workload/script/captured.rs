//! What `\gset` and `\aset` take from results.

use loadstone_script::{Capture, Symbols, VarId, is_variable_name};

use crate::protocol::{Columns as _, Message, Protocol, Row as _};

/// Values that `\gset` and `\aset` take from results.
#[derive(Debug, Default)]
pub(super) struct Captured {
    /// The statement whose results are being read captures something.
    pub(super) active: bool,
    pub(super) every_result: bool,
    prefix: String,
    columns: Vec<Option<VarId>>,
    pub(super) values: Vec<(VarId, Option<Box<[u8]>>)>,
    rows: u64,
    /// Rows of the last complete result; `None` before the first.
    pub(super) last_rows: Option<u64>,
    /// Complete results.
    pub(super) results: u32,
    /// The first column of the result being read whose name is no variable's.
    unnamable: Option<Box<str>>,
    /// The first such column whose value was wanted, and the result that it is in.
    pub(super) unnamed: Option<(u32, Box<str>)>,
}

impl Captured {
    /// A statement is sent, which captures something or nothing.
    pub(super) fn expect(&mut self, capture: Option<&Capture>) {
        self.active = capture.is_some();
        if let Some(capture) = capture {
            self.values.clear();
            self.last_rows = None;
            self.rows = 0;
            (self.results, self.unnamed) = (0, None);
            self.unnamable = None;
            let (every_result, prefix) = match capture {
                Capture::Gset { prefix } => (false, prefix),
                Capture::Aset { prefix } => (true, prefix),
            };
            self.every_result = every_result;
            self.prefix.clear();
            self.prefix.push_str(prefix);
        }
    }

    /// Read one message of its answer.
    pub(super) fn take<P: Protocol>(&mut self, message: &Message<'_, P>, symbols: &Symbols) {
        match message {
            Message::Columns(columns) => self.take_columns::<P>(columns, symbols),
            Message::Row(row) => self.take_row::<P>(row),
            Message::Done(_) => {
                self.last_rows = Some(self.rows);
                self.rows = 0;
                self.results += 1;
            }
            _ => {}
        }
    }

    fn take_columns<P: Protocol>(&mut self, columns: &P::Columns<'_>, symbols: &Symbols) {
        self.rows = 0;
        self.columns.clear();
        self.unnamable = None;
        if !self.every_result {
            self.values.clear();
            self.unnamed = None;
        }
        for column in columns.columns() {
            let name = String::from_utf8_lossy(column.name);
            let full = format!("{}{name}", self.prefix);
            // A name that no script mentions can never be read: its value is not kept.
            let known = symbols.get(&full);
            self.columns.push(known);
            if known.is_none() && self.unnamable.is_none() && !is_variable_name(&full) {
                self.unnamable = Some(full.into());
            }
        }
    }

    fn take_row<P: Protocol>(&mut self, row: &P::Row<'_>) {
        if let Some(name) = self.unnamable.take()
            && self.unnamed.is_none()
        {
            self.unnamed = Some((self.results, name));
        }
        if self.rows == 0 || self.every_result {
            let columns = &self.columns;
            self.values
                .retain(|(var, _)| !columns.contains(&Some(*var)));
            for (value, column) in row.values().zip(columns) {
                if let Some(var) = column {
                    self.values.push((*var, value.map(Box::from)));
                }
            }
        }
        self.rows += 1;
    }
}
