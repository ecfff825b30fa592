//! Data of TSBS's use cases that any machine makes from any place on.
//!
//! TSBS draws all values from one random stream, so that one thread must walk through it from its beginning.
//! Here a value is a function of its place: the seed, the device, the field and the epoch. Tables, tags and
//! fields are TSBS's; the tags, and what never changes of a host, are those that TSBS draws from the same
//! seed. Every device reports at every epoch: there are no late, lost or incomplete rows.
//!
//! # Order and slices
//! Row *r* of the whole belongs to position *p* = ⌊*r* / tables⌋ and to table *r* mod tables; position *p* is
//! device *p* mod scale at epoch ⌊*p* / scale⌋. Slice *i* of *n* holds the positions from ⌈*P i* / *n*⌉ up to
//! ⌈*P* (*i* + 1) / *n*⌉ of all *P*. `tags_id` is the device's number, counted from 1, in every slice; the rows of
//! `tags` come once over all slices: all of them with the first chunk of slice 0.
//!
//! # Values
//! `h(c, u, n)` is the random number from 0 to 1 (32 bits) number *n* for use *u* of column *c* of one device: the
//! lower half, for odd *c* the upper half, of wyrand's for the state `key + step ((4 ⌊c / 2⌋ + u) 2^48 + n)`, where
//! `key = mix(mix(seed + γ) + γ (device + 1))` and `mix`
//! is the finalizer of `SplitMix64`. `line(u, k)` at epoch *e* lies on the straight line from `h(c, u, ⌊e / k⌋)` to
//! `h(c, u, ⌊e / k⌋ + 1)`. Then, fractions cut off as TSBS does:
//! * walk = 1.25 (0.80 line(slow, 2048) + 0.17 line(fast, 64) + 0.03 `h(c, noise, e)`) − 0.125, kept between 0 and 1;
//! * a gauge is its upper bound times walk, its lower bound being 0;
//! * a counter is its mean step times (*e* + 32 line(fast, 64) + 0.25 `h(c, noise, e)`): each step is at least
//!   a quarter of the mean; the three fields that TSBS lets fall too have 4 in place of 0.25;
//! * latitude and longitude are their span less 1 times `h(c, fixed, 0)`, plus walk;
//! * the fuel state falls by 1 in 2000 epochs from `1 - h(c, fixed, 0)` and begins again at 1; the load is 5000
//!   `h(c, fast, ⌊e / 64⌋)`.
//!
//! Columns have the numbers 64 *t* + *f*: table *t* of the list in `table`, field *f* counted from 0 without what
//! never changes; states count in the place of fields where several fields come from one state.
//!
//! ```
//! use loadstone_gen::dataset::Source;
//! use loadstone_gen::native::{Config, NativeSource};
//! use loadstone_gen::tsbs::UseCase;
//!
//! let config = Config { scale: 10, slice: (7, 8), ..Config::new(UseCase::CpuOnly, 123) };
//! let mut last_eighth = NativeSource::new(&config)?;
//! let chunk = last_eighth.next(1000)?.ok_or("a day has more rows")?;
//! assert_eq!((chunk.rows, chunk.metrics), (1000, 10_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod field;
mod hash;
mod table;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, SchemaRef};

use self::table::{EpochRows, Maker};
use crate::dataset::{Chunk, Dataset, Source, SourceError, TableRows, check_chunk_rows};
use crate::tsbs::devices::{Devices, DevicesError, Texts};
use crate::tsbs::fields::as_double;
use crate::tsbs::{self, UseCase};

/// What to make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Config {
    /// Whose tables to fill; not `devops-generic`.
    pub use_case: UseCase,
    /// Seed of every value.
    pub seed: i64,
    /// Number of hosts or trucks.
    pub scale: u64,
    /// First timestamp, nanoseconds since 1970 UTC.
    pub start_ns: i64,
    /// End of the time range, exclusive, nanoseconds since 1970 UTC.
    pub end_ns: i64,
    /// Time between two rows of one device.
    pub interval_ns: i64,
    /// Which slice, counted from 0, of how many.
    pub slice: (u32, u32),
}

impl Config {
    /// The whole of one device, the first day of 2016, a row each 10 s.
    #[must_use]
    pub fn new(use_case: UseCase, seed: i64) -> Self {
        let as_tsbs = tsbs::Config::new(use_case, seed);
        Self {
            use_case,
            seed,
            scale: as_tsbs.scale,
            start_ns: as_tsbs.start_ns,
            end_ns: as_tsbs.end_ns,
            interval_ns: as_tsbs.interval_ns,
            slice: (0, 1),
        }
    }

    /// The positions of the slice.
    fn positions(&self) -> Result<Range<u64>, ConfigError> {
        let (index, count) = self.slice;
        if index >= count {
            return Err(ConfigError::Slice { index, count });
        }
        if self.interval_ns <= 0 {
            return Err(ConfigError::Interval(self.interval_ns));
        }
        let range_ns = i128::from(self.end_ns) - i128::from(self.start_ns);
        let epochs = range_ns.max(0).cast_unsigned() / u128::from(self.interval_ns.cast_unsigned());
        let all = epochs * u128::from(self.scale);
        if all > u128::from(POSITIONS_MAX) {
            return Err(ConfigError::Rows);
        }
        let bound = |index: u32| (all * u128::from(index)).div_ceil(u128::from(count));
        let bound = |index| u64::try_from(bound(index)).map_err(|_| ConfigError::Rows);
        Ok(bound(index)?..bound(index + 1)?)
    }
}

/// So many positions can be numbered, with every table's rows.
const POSITIONS_MAX: u64 = 1 << 48;

/// Why data cannot be made as asked.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// What TSBS refuses too.
    #[error(transparent)]
    Tsbs(#[from] tsbs::ConfigError),
    /// A use case whose hosts come and go.
    #[error(
        "devops-generic cannot be generated in slices, because its hosts end at random times; generate TSBS's own data, or choose cpu-only, cpu-single, devops or iot"
    )]
    Generic,
    /// A time between rows that leads nowhere.
    #[error(
        "a log interval of {0} ns cannot be; set the time between two rows of one device, such as 10s"
    )]
    Interval(i64),
    /// A slice beyond the last.
    #[error(
        "slice {index} does not exist; of {count} slices, choose one from 0 to that number minus one"
    )]
    Slice {
        /// The slice requested.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// More than can be numbered.
    #[error(
        "devices times epochs exceed 2^48; use fewer devices, a shorter time range or a longer interval"
    )]
    Rows,
    /// More devices than ids, or tags that fit in no batch.
    #[error("the devices cannot be generated: {0}")]
    Devices(String),
}

/// A slice of native data. Making it takes time and memory for each device, none for rows: any slice of
/// any size begins at once.
#[derive(Clone, Debug)]
pub struct NativeSource {
    dataset: Arc<Dataset>,
    /// Rows of `tags` that are still to be given.
    tags: Option<RecordBatch>,
    makers: Vec<Maker>,
    additional: Vec<Option<Texts>>,
    /// Each device's key of the hash.
    keys: Vec<u64>,
    start_ns: i64,
    interval_ns: i64,
    /// Rows still to be made, numbered over all slices and tables.
    rows: Range<u64>,
}

impl NativeSource {
    /// Draws the devices.
    ///
    /// # Errors
    /// If the configuration cannot be made.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        if config.use_case == UseCase::DevopsGeneric {
            return Err(ConfigError::Generic);
        }
        let positions = config.positions()?;
        if i32::try_from(config.scale).is_err() {
            return Err(tsbs::ConfigError::Scale(config.scale).into());
        }
        let devices = Devices::draw(&tsbs::Config {
            scale: config.scale,
            ..tsbs::Config::new(config.use_case, config.seed)
        });
        let devices = devices.map_err(|error| match error {
            DevicesError::Config(error) => ConfigError::Tsbs(error),
            error => ConfigError::Devices(error.to_string()),
        })?;
        let tables = devices.dataset.tables.iter();
        let maker = tables.map(|table| Maker::new(&table.name, table.metrics, &devices));
        let makers: Vec<_> = maker.collect();
        let width = makers.len() as u64;
        Ok(Self {
            makers,
            rows: positions.start * width..positions.end * width,
            tags: (config.slice.0 == 0).then_some(devices.tags),
            dataset: Arc::new(devices.dataset),
            additional: devices.additional,
            keys: hash::keys(config.seed, config.scale),
            start_ns: config.start_ns,
            interval_ns: config.interval_ns,
        })
    }

    /// Rows that are still to be made.
    #[must_use]
    pub fn rows_left(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// The positions of the rows of a table among the rows of a chunk.
    fn positions(&self, table: usize, rows: &Range<u64>) -> Range<u64> {
        let (width, table) = (self.makers.len() as u64, table as u64);
        let bound = |row: u64| (row + width - 1 - table) / width;
        bound(rows.start)..bound(rows.end)
    }

    /// The rows of one table at these positions.
    fn table_rows(&self, table: usize, positions: Range<u64>) -> Result<RecordBatch, ArrowError> {
        let rows = usize::try_from(positions.end - positions.start).unwrap_or(usize::MAX);
        let mut columns = Columns::new(rows, self.dataset.tables[table].metrics);
        let devices = self.keys.len() as u64;
        let mut position = positions.start;
        while position < positions.end {
            let (epoch, device) = (position / devices, position % devices);
            let count = (devices - device).min(positions.end - position);
            self.extend(table, epoch, device, count, &mut columns);
            position += count;
        }
        columns.finish(&self.dataset.tables[table].schema)
    }

    /// Appends rows of one epoch.
    fn extend(&self, table: usize, epoch: u64, first: u64, count: u64, columns: &mut Columns) {
        // below the end of the time range, and devices have numbers that fit
        let since_start = epoch.cast_signed().wrapping_mul(self.interval_ns);
        let time_ns = self.start_ns.wrapping_add(since_start);
        let devices = index(first)..index(first + count);
        let rows = EpochRows {
            epoch,
            uptime_s: as_double(since_start / 1_000_000_000),
            first: devices.start,
            keys: &self.keys[devices.clone()],
        };
        columns
            .times
            .resize(columns.times.len() + devices.len(), time_ns);
        let ids = devices
            .clone()
            .map(|device| i32::try_from(device + 1).unwrap_or(i32::MAX));
        columns.tags.extend(ids);
        self.makers[table].extend(&rows, &mut columns.fields);
        if let Some(texts) = &self.additional[table] {
            columns.extend_additional(texts, devices);
        }
    }
}

/// A number of a device, which has a place in memory.
fn index(device: u64) -> usize {
    usize::try_from(device).unwrap_or(usize::MAX)
}

impl Source for NativeSource {
    fn dataset(&self) -> &Arc<Dataset> {
        &self.dataset
    }

    fn next(&mut self, rows: usize) -> Result<Option<Chunk>, SourceError> {
        check_chunk_rows(rows)?;
        let end = self.rows.end.min(self.rows.start + rows as u64);
        let rows = self.rows.start..end;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut chunk = Chunk {
            tags: self.tags.take(),
            rows: end - rows.start,
            ..Chunk::default()
        };
        for (table, description) in self.dataset.tables.iter().enumerate() {
            let positions = self.positions(table, &rows);
            if positions.is_empty() {
                continue;
            }
            chunk.metrics += (positions.end - positions.start) * description.metrics as u64;
            let rows = self.table_rows(table, positions);
            let rows = rows.map_err(|error| SourceError::Refused(error.to_string()))?;
            chunk.tables.push(TableRows {
                table,
                rows: rows.into(),
            });
        }
        self.rows.start = end;
        Ok(Some(chunk))
    }

    fn pass(&mut self, rows: u64) -> Result<u64, SourceError> {
        let passed = rows.min(self.rows_left());
        if passed > 0 {
            self.tags = None;
        }
        self.rows.start += passed;
        Ok(passed)
    }
}

/// Columns of one table under construction.
struct Columns {
    times: Vec<i64>,
    tags: Vec<i32>,
    fields: Vec<Vec<f64>>,
    offsets: Vec<i32>,
    texts: Vec<u8>,
}

impl Columns {
    fn new(rows: usize, fields: usize) -> Self {
        Self {
            times: Vec::with_capacity(rows),
            tags: Vec::with_capacity(rows),
            fields: (0..fields).map(|_| Vec::with_capacity(rows)).collect(),
            offsets: vec![0],
            texts: Vec::new(),
        }
    }

    /// Appends the texts of some devices. A text has fewer than 100 bytes, so that those of the most rows fit.
    fn extend_additional(&mut self, texts: &Texts, devices: Range<usize>) {
        let bounds = &texts.bounds[devices.start..=devices.end];
        let (Some(&first), Some(&end)) = (bounds.first(), bounds.last()) else {
            return;
        };
        let before = self.texts.len();
        let offset = |&bound: &usize| i32::try_from(before + bound - first).unwrap_or(i32::MAX);
        self.offsets.extend(bounds[1..].iter().map(offset));
        self.texts.extend_from_slice(&texts.bytes[first..end]);
    }

    fn finish(self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let rows = self.times.len();
        let times = PrimitiveArray::<TimestampNanosecondType>::new(self.times.into(), None);
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(times.with_timezone("+00:00")),
            Arc::new(PrimitiveArray::<Int32Type>::new(self.tags.into(), None)),
        ];
        columns.extend(self.fields.into_iter().map(|field| -> ArrayRef {
            Arc::new(PrimitiveArray::<Float64Type>::new(field.into(), None))
        }));
        columns.push(if self.offsets.len() == 1 {
            Arc::new(StringArray::new_null(rows))
        } else {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
            let texts = Buffer::from_vec(self.texts);
            Arc::new(StringArray::try_new(offsets, texts, None)?)
        });
        RecordBatch::try_new(Arc::clone(schema), columns)
    }
}
