//! What keys stand for.

use std::sync::{Arc, OnceLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Date32Type, Float32Type, Int16Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Float32Array, Int16Array, PrimitiveArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::DataType;

use super::padded_texts::PaddedTexts;
use crate::encode::{Form, Fragments};
use crate::rows::column_bytes;

/// Columns that stand side by side, with an entry for each key: entry *k* for key *k*.
#[derive(Debug)]
pub struct Dictionary {
    columns: Vec<ArrayRef>,
    /// The same, of those that are text.
    words: Vec<Option<PaddedTexts>>,
    len: usize,
    /// Logical bytes of each entry.
    bytes: Vec<u64>,
    /// The entries in each form, made when they are first asked for.
    fragments: [OnceLock<Fragments>; Form::COUNT],
}

/// One column of a dictionary.
#[derive(Clone, Debug)]
pub enum Entries {
    /// Integers of 16 bits.
    Small(Int16Array),
    /// Singles.
    Single(Float32Array),
    /// Dates.
    Days(Date32Array),
    /// Texts.
    Text(StringArray),
}

impl From<Entries> for ArrayRef {
    fn from(entries: Entries) -> Self {
        match entries {
            Entries::Small(values) => Arc::new(values),
            Entries::Single(values) => Arc::new(values),
            Entries::Days(values) => Arc::new(values),
            Entries::Text(values) => Arc::new(values),
        }
    }
}

impl Dictionary {
    /// These columns; there are as many entries as the shortest has.
    #[must_use]
    pub fn new(columns: Vec<Entries>) -> Self {
        let words = columns.iter().map(Entries::words).collect();
        let columns: Vec<ArrayRef> = columns.into_iter().map(ArrayRef::from).collect();
        let len = columns.iter().map(Array::len).min().unwrap_or(0);
        let entry = |key| {
            columns
                .iter()
                .map(move |column| column_bytes(&column.slice(key, 1)))
        };
        Self {
            bytes: (0..len).map(|key| entry(key).sum()).collect(),
            columns,
            words,
            len,
            fragments: [const { OnceLock::new() }; Form::COUNT],
        }
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    /// Logical bytes of the entries of some rows.
    pub(crate) fn bytes(&self, keys: &[u16]) -> u64 {
        keys.iter().map(|key| self.bytes[usize::from(*key)]).sum()
    }

    /// The entries as bytes.
    pub(crate) fn fragments(&self, form: Form) -> &Fragments {
        self.fragments[form as usize].get_or_init(|| Fragments::of(&self.columns, self.len, form))
    }

    /// Adds the columns of some rows.
    pub(super) fn gather(&self, keys: &[u16], to: &mut Vec<ArrayRef>) {
        // Columns that are null together share what says so.
        let mut last: Option<(&NullBuffer, NullBuffer)> = None;
        for (column, words) in self.columns.iter().zip(&self.words) {
            let nulls = column.nulls().map(|nulls| match &last {
                Some((same, gathered)) if *same == nulls => gathered.clone(),
                _ => {
                    let is_valid = |row: usize| nulls.is_valid(keys[row].into());
                    let gathered = BooleanBuffer::collect_bool(keys.len(), is_valid).into();
                    last.insert((nulls, gathered)).1.clone()
                }
            });
            to.push(match (words, column.data_type()) {
                (Some(words), _) => words.gather(keys, nulls),
                (_, DataType::Int16) => gather::<Int16Type>(column, keys, nulls),
                (_, DataType::Float32) => gather::<Float32Type>(column, keys, nulls),
                (_, DataType::Date32) => gather::<Date32Type>(column, keys, nulls),
                _ => {
                    let texts = column.as_string::<i32>();
                    let text = |key: &u16| {
                        texts
                            .is_valid((*key).into())
                            .then(|| texts.value((*key).into()))
                    };
                    Arc::new(keys.iter().map(text).collect::<StringArray>())
                }
            });
        }
    }
}

impl Entries {
    fn words(&self) -> Option<PaddedTexts> {
        match self {
            Self::Text(texts) => PaddedTexts::new(texts),
            _ => None,
        }
    }
}

fn gather<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    keys: &[u16],
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let values = column.as_primitive::<T>().values();
    let values: Vec<_> = keys.iter().map(|key| values[usize::from(*key)]).collect();
    Arc::new(PrimitiveArray::<T>::new(values.into(), nulls))
}
