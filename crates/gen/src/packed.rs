//! Rows of which some columns hang together: what depends on a key is kept once for each key.
//!
//! An airport's name, city, state and coordinates are the same in every row that names it. Where such columns stand side
//! by side, a batch can hold one key for each row, and a [`Dictionary`] what each key stands for. Encoders turn an entry
//! into bytes once, and then copy them; whoever wants columns as Arrow has them asks for [`Packed::batch`].

mod dictionary;
mod words;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, FieldRef, Fields, SchemaRef};

pub use dictionary::{Dictionary, Entries};

/// Rows of one table, as a list of parts.
#[derive(Clone, Debug)]
pub struct Packed(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Every column stands for itself.
    Plain(RecordBatch),
    /// At least one part is looked up.
    Mixed {
        schema: SchemaRef,
        parts: Vec<Part>,
        rows: usize,
    },
}

/// One column, or some that stand side by side.
#[derive(Clone, Debug)]
pub enum Part {
    /// A column of its own.
    Column(ArrayRef),
    /// The columns of a dictionary.
    Lookup(Lookup),
}

/// Which entry of a dictionary each row has.
#[derive(Clone, Debug)]
pub struct Lookup {
    keys: ScalarBuffer<u16>,
    dictionary: Arc<Dictionary>,
}

/// The parts of some rows.
#[derive(Clone, Copy, Debug)]
pub enum Parts<'a> {
    /// Every column stands for itself.
    Columns(&'a RecordBatch),
    /// At least one is looked up.
    Mixed(&'a SchemaRef, &'a [Part], usize),
}

/// Rows that have parts.
pub trait Parted {
    /// All of them.
    fn parts(&self) -> Parts<'_>;
}

impl Parted for RecordBatch {
    fn parts(&self) -> Parts<'_> {
        Parts::Columns(self)
    }
}

impl Parted for Packed {
    fn parts(&self) -> Parts<'_> {
        match &self.0 {
            Kind::Plain(batch) => Parts::Columns(batch),
            Kind::Mixed {
                schema,
                parts,
                rows,
            } => Parts::Mixed(schema, parts, *rows),
        }
    }
}

impl Parts<'_> {
    /// Number of rows.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        match self {
            Self::Columns(batch) => batch.num_rows(),
            Self::Mixed(_, _, rows) => *rows,
        }
    }
}

impl From<RecordBatch> for Packed {
    fn from(batch: RecordBatch) -> Self {
        Self(Kind::Plain(batch))
    }
}

impl From<ArrayRef> for Part {
    fn from(column: ArrayRef) -> Self {
        Self::Column(column)
    }
}

impl From<Lookup> for Part {
    fn from(lookup: Lookup) -> Self {
        Self::Lookup(lookup)
    }
}

impl Part {
    fn len(&self) -> usize {
        match self {
            Self::Column(column) => column.len(),
            Self::Lookup(lookup) => lookup.keys.len(),
        }
    }

    /// The columns that it stands for: their values, or the entries of each.
    #[must_use]
    pub fn columns(&self) -> &[ArrayRef] {
        match self {
            Self::Column(column) => std::slice::from_ref(column),
            Self::Lookup(lookup) => lookup.dictionary.columns(),
        }
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::Column(_) => true,
            Self::Lookup(lookup) => lookup.is_whole(),
        }
    }

    fn slice(&self, first: usize, count: usize) -> Self {
        match self {
            Self::Column(column) => Self::Column(column.slice(first, count)),
            Self::Lookup(lookup) => Self::Lookup(Lookup {
                keys: lookup.keys.slice(first, count),
                dictionary: Arc::clone(&lookup.dictionary),
            }),
        }
    }
}

impl Lookup {
    /// The entry of each row, by its number.
    #[must_use]
    pub fn new(dictionary: &Arc<Dictionary>, keys: Vec<u16>) -> Self {
        Self {
            keys: keys.into(),
            dictionary: Arc::clone(dictionary),
        }
    }

    /// Whether there are all entries, and something in them.
    fn is_whole(&self) -> bool {
        let last = self.keys.iter().fold(0, |last, key| last.max(*key));
        let reached = self.keys.is_empty() || usize::from(last) < self.dictionary.len();
        reached && !self.dictionary.columns().is_empty()
    }

    pub(crate) fn keys(&self) -> &[u16] {
        &self.keys
    }

    pub(crate) fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }
}

/// Whether a column can have these values.
fn fits((values, field): (&ArrayRef, &FieldRef)) -> bool {
    values.data_type() == field.data_type() && (field.is_nullable() || values.null_count() == 0)
}

impl Packed {
    /// Rows of a table.
    ///
    /// # Errors
    /// If the parts are not the schema's columns, or of different lengths, or a key has no entry.
    pub fn try_new(schema: SchemaRef, parts: Vec<Part>) -> Result<Self, ArrowError> {
        let rows = parts.first().map_or(0, Part::len);
        let columns = || parts.iter().flat_map(Part::columns);
        if !parts
            .iter()
            .all(|part| part.len() == rows && part.is_whole())
            || columns().count() != schema.fields().len()
            || !columns().zip(schema.fields()).all(fits)
        {
            let refusal = "the parts of these rows are not the columns of their table".to_owned();
            return Err(ArrowError::InvalidArgumentError(refusal));
        }
        if parts.iter().all(|part| matches!(part, Part::Column(_))) {
            let columns = columns().map(Arc::clone).collect();
            return RecordBatch::try_new(schema, columns).map(Self::from);
        }
        Ok(Self(Kind::Mixed {
            schema,
            parts,
            rows,
        }))
    }

    /// Number of rows.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.parts().num_rows()
    }

    /// Number of columns.
    #[must_use]
    pub fn num_columns(&self) -> usize {
        self.fields().len()
    }

    fn fields(&self) -> &Fields {
        match &self.0 {
            Kind::Plain(batch) => batch.schema_ref().fields(),
            Kind::Mixed { schema, .. } => schema.fields(),
        }
    }

    /// `count` rows from row `first` on, which share their memory with these.
    #[must_use]
    pub fn slice(&self, first: usize, count: usize) -> Self {
        Self(match &self.0 {
            Kind::Plain(batch) => Kind::Plain(batch.slice(first, count)),
            Kind::Mixed { schema, parts, .. } => Kind::Mixed {
                schema: Arc::clone(schema),
                parts: parts.iter().map(|part| part.slice(first, count)).collect(),
                rows: count,
            },
        })
    }

    /// The rows as Arrow has them; columns that are looked up are made for it.
    #[must_use]
    pub fn batch(&self) -> RecordBatch {
        let (fields, parts) = match &self.0 {
            Kind::Plain(batch) => return batch.clone(),
            Kind::Mixed { schema, parts, .. } => (schema.fields(), parts),
        };
        let mut columns = Vec::with_capacity(fields.len());
        for part in parts {
            match part {
                Part::Column(column) => columns.push(Arc::clone(column)),
                Part::Lookup(lookup) => lookup.dictionary.gather(&lookup.keys, &mut columns),
            }
        }
        // That they fit has been checked when the parts came together.
        StructArray::new(fields.clone(), columns, None).into()
    }
}
