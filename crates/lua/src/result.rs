//! What goes to a statement and what comes from it, in memory that is used again.

/// The rows of a connection's last statement.
#[derive(Debug, Default)]
pub struct ResultRows {
    bytes: Vec<u8>,
    /// The end of each value in `bytes`; of NULL none.
    ends: Vec<Option<usize>>,
    columns: usize,
    rows: usize,
    /// The row to fetch next.
    next: usize,
    /// The value and the byte at which it begins.
    at: (usize, usize),
    /// Counted up with each statement.
    number: u32,
    has_columns: bool,
}

/// A result of this size is an exception: its memory is given back.
const KEPT_BYTES_MAX: usize = 256 * 1024;

impl ResultRows {
    /// Another statement was sent.
    pub fn clear(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES_MAX {
            self.bytes = Vec::new();
            self.ends = Vec::new();
        }
        self.bytes.clear();
        self.ends.clear();
        (self.columns, self.rows, self.next, self.at) = (0, 0, 0, (0, 0));
        self.number = self.number.wrapping_add(1);
        self.has_columns = false;
    }

    /// A result begins; of several results of one statement the last is kept.
    pub fn begin(&mut self, columns: usize) {
        self.clear();
        self.columns = columns;
        self.has_columns = true;
    }

    /// A row begins.
    pub fn row(&mut self) {
        self.rows += 1;
    }

    /// Its next value.
    pub fn value(&mut self, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.bytes.extend_from_slice(value);
        }
        self.ends.push(value.map(|_| self.bytes.len()));
    }

    /// The statement has a result, even one without rows.
    #[must_use]
    pub fn has_columns(&self) -> bool {
        self.has_columns
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns there are.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The first value of the first row.
    #[must_use]
    pub fn first(&self) -> Option<&[u8]> {
        let end = (*self.ends.first()?)?;
        Some(&self.bytes[..end])
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Show the values of the next row; false when there is none.
    pub(crate) fn fetch(&mut self, mut show: impl FnMut(usize, &[u8])) -> bool {
        if self.next >= self.rows {
            return false;
        }
        let (first, mut begin) = self.at;
        let values = self.ends.iter().skip(first).take(self.columns);
        for (column, end) in values.enumerate() {
            if let Some(end) = *end {
                show(column, &self.bytes[begin..end]);
                begin = end;
            }
        }
        self.at = (first + self.columns, begin);
        self.next += 1;
        true
    }
}

/// Values for a prepared statement, as texts.
#[derive(Debug, Default)]
pub struct Parameters {
    bytes: Vec<u8>,
    ranges: Vec<Option<(usize, usize)>>,
}

impl Parameters {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ranges.clear();
    }

    pub(crate) fn null(&mut self) {
        self.ranges.push(None);
    }

    pub(crate) fn text(&mut self, text: &[u8]) {
        self.put(|bytes| bytes.extend_from_slice(text));
    }

    /// A whole number without a point, any other so that it reads back as the same.
    pub(crate) fn number(&mut self, number: f64) {
        use std::io::Write as _;
        self.put(|bytes| {
            // Writing to memory cannot fail.
            let _ = write!(bytes, "{number}");
        });
    }

    fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let begin = self.bytes.len();
        write(&mut self.bytes);
        self.ranges.push(Some((begin, self.bytes.len())));
    }

    /// In order, `None` for NULL.
    pub fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.ranges
            .iter()
            .map(|range| range.map(|(begin, end)| &self.bytes[begin..end]))
    }
}

/// The statement of a multi-row insert that is being put together.
#[derive(Debug, Default)]
pub(crate) struct Bulk {
    pub(crate) text: Vec<u8>,
    /// Length of what comes before the rows; none outside an insert.
    head: Option<usize>,
    rows: usize,
}

/// As sysbench: the longest statement, with the zero byte of C.
const BULK_BYTES_MAX: usize = 512 * 1024;

impl Bulk {
    /// False where the statement is too long without any row.
    pub(crate) fn begin(&mut self, head: &[u8]) -> bool {
        self.text.clear();
        self.text.extend_from_slice(head);
        self.head = Some(head.len());
        self.rows = 0;
        head.len() < BULK_BYTES_MAX
    }

    /// `None` outside an insert, false where the row does not fit any more.
    pub(crate) fn add(&mut self, row: &[u8]) -> Option<bool> {
        self.head?;
        let comma = usize::from(self.rows > 0);
        if self.text.len() + row.len() + 1 + comma > BULK_BYTES_MAX {
            return Some(false);
        }
        if comma > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(row);
        self.rows += 1;
        Some(true)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What is there is sent: more rows begin after the head.
    pub(crate) fn sent(&mut self) {
        self.text.truncate(self.head.unwrap_or(0));
        self.rows = 0;
    }

    pub(crate) fn end(&mut self) {
        *self = Self::default();
    }
}
