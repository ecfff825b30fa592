//! Rows of which some columns hang together: what depends on a key is kept once for each key.
//!
//! An airport's name, city, state and coordinates are the same in every row that names it. Where such columns stand side
//! by side, a batch can hold one key for each row, and a [`Dictionary`] what each key stands for. Encoders turn an entry
//! into bytes once, and then copy them; whoever wants columns as Arrow has them asks for [`DictionaryBatch::batch`].

mod dictionary;
mod padded_texts;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{ArrowError, FieldRef, Fields, SchemaRef};

pub use dictionary::{Dictionary, Entries};

/// Rows of one table, as groups of columns: each a column of its own, or some that share a dictionary.
#[derive(Clone, Debug)]
pub struct DictionaryBatch(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// Every column is for itself.
    Plain(RecordBatch),
    /// At least one group has a dictionary.
    Mixed {
        schema: SchemaRef,
        groups: Vec<ColumnGroup>,
        rows: usize,
    },
}

/// One column, or some that stand side by side.
#[derive(Clone, Debug)]
pub enum ColumnGroup {
    /// A column of its own.
    Column(ArrayRef),
    /// The columns of a dictionary, which share its keys.
    Keyed(KeyedColumns),
}

/// Which entry of a dictionary each row has.
#[derive(Clone, Debug)]
pub struct KeyedColumns {
    keys: ScalarBuffer<u16>,
    dictionary: Arc<Dictionary>,
}

/// The groups of columns of some rows.
#[derive(Clone, Copy, Debug)]
pub enum ColumnGroups<'a> {
    /// Every column is for itself.
    Columns(&'a RecordBatch),
    /// At least one has a dictionary.
    Mixed(&'a SchemaRef, &'a [ColumnGroup], usize),
}

/// Rows of one table, whichever way their columns are kept.
pub trait AnyBatch {
    /// All of them.
    fn column_groups(&self) -> ColumnGroups<'_>;
}

impl AnyBatch for RecordBatch {
    fn column_groups(&self) -> ColumnGroups<'_> {
        ColumnGroups::Columns(self)
    }
}

impl AnyBatch for DictionaryBatch {
    fn column_groups(&self) -> ColumnGroups<'_> {
        match &self.0 {
            Kind::Plain(batch) => ColumnGroups::Columns(batch),
            Kind::Mixed {
                schema,
                groups,
                rows,
            } => ColumnGroups::Mixed(schema, groups, *rows),
        }
    }
}

impl ColumnGroups<'_> {
    /// Number of rows.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        match self {
            Self::Columns(batch) => batch.num_rows(),
            Self::Mixed(_, _, rows) => *rows,
        }
    }
}

impl From<RecordBatch> for DictionaryBatch {
    fn from(batch: RecordBatch) -> Self {
        Self(Kind::Plain(batch))
    }
}

impl From<ArrayRef> for ColumnGroup {
    fn from(column: ArrayRef) -> Self {
        Self::Column(column)
    }
}

impl From<KeyedColumns> for ColumnGroup {
    fn from(keyed: KeyedColumns) -> Self {
        Self::Keyed(keyed)
    }
}

impl ColumnGroup {
    fn len(&self) -> usize {
        match self {
            Self::Column(column) => column.len(),
            Self::Keyed(keyed) => keyed.keys.len(),
        }
    }

    /// The columns that it stands for: their values, or the entries of each.
    #[must_use]
    pub fn columns(&self) -> &[ArrayRef] {
        match self {
            Self::Column(column) => std::slice::from_ref(column),
            Self::Keyed(keyed) => keyed.dictionary.columns(),
        }
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::Column(_) => true,
            Self::Keyed(keyed) => keyed.is_whole(),
        }
    }

    fn slice(&self, first: usize, count: usize) -> Self {
        match self {
            Self::Column(column) => Self::Column(column.slice(first, count)),
            Self::Keyed(keyed) => Self::Keyed(KeyedColumns {
                keys: keyed.keys.slice(first, count),
                dictionary: Arc::clone(&keyed.dictionary),
            }),
        }
    }
}

impl KeyedColumns {
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

impl DictionaryBatch {
    /// Rows of a table.
    ///
    /// # Errors
    /// If the groups are not the schema's columns, or of different lengths, or a key has no entry.
    pub fn try_new(schema: SchemaRef, groups: Vec<ColumnGroup>) -> Result<Self, ArrowError> {
        let rows = groups.first().map_or(0, ColumnGroup::len);
        let columns = || groups.iter().flat_map(ColumnGroup::columns);
        if !groups
            .iter()
            .all(|group| group.len() == rows && group.is_whole())
            || columns().count() != schema.fields().len()
            || !columns().zip(schema.fields()).all(fits)
        {
            let refusal = "the groups of these rows are not the columns of their table".to_owned();
            return Err(ArrowError::InvalidArgumentError(refusal));
        }
        if groups
            .iter()
            .all(|group| matches!(group, ColumnGroup::Column(_)))
        {
            let columns = columns().map(Arc::clone).collect();
            return RecordBatch::try_new(schema, columns).map(Self::from);
        }
        Ok(Self(Kind::Mixed {
            schema,
            groups,
            rows,
        }))
    }

    /// Number of rows.
    #[must_use]
    pub fn num_rows(&self) -> usize {
        self.column_groups().num_rows()
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
            Kind::Mixed { schema, groups, .. } => Kind::Mixed {
                schema: Arc::clone(schema),
                groups: groups
                    .iter()
                    .map(|group| group.slice(first, count))
                    .collect(),
                rows: count,
            },
        })
    }

    /// The rows as Arrow has them; columns of dictionaries are made for it.
    #[must_use]
    pub fn batch(&self) -> RecordBatch {
        let (fields, groups) = match &self.0 {
            Kind::Plain(batch) => return batch.clone(),
            Kind::Mixed { schema, groups, .. } => (schema.fields(), groups),
        };
        let mut columns = Vec::with_capacity(fields.len());
        for group in groups {
            match group {
                ColumnGroup::Column(column) => columns.push(Arc::clone(column)),
                ColumnGroup::Keyed(keyed) => keyed.dictionary.gather(&keyed.keys, &mut columns),
            }
        }
        // That they fit has been checked when the groups came together.
        StructArray::new(fields.clone(), columns, None).into()
    }
}
