//! Devices and their tags: ids in the order in which the stream shows them, and the rows of the table of tags.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::{Float32Type, Int32Type};
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, DataType, SchemaRef};

use super::columns::Texts;
use crate::dataset::SourceError;
use crate::tsbs::block::NONE;
use crate::tsbs::strings::Strings;

/// New rows of the table of tags.
#[derive(Clone, Debug)]
pub(in crate::tsbs) struct TagRows {
    ids: Vec<i32>,
    columns: Vec<TagColumn>,
    next_id: i32,
}

#[derive(Clone, Debug)]
enum TagColumn {
    Texts(Texts),
    Numbers(Vec<Option<f32>>),
}

impl TagRows {
    /// For a table as `tags_table` makes it.
    pub(in crate::tsbs) fn new(schema: &SchemaRef) -> Self {
        let tags = &schema.fields()[1..];
        let column = |kind: &DataType| match kind {
            DataType::Float32 => TagColumn::Numbers(Vec::new()),
            _ => TagColumn::Texts(Texts::new()),
        };
        Self {
            ids: Vec::new(),
            columns: tags.iter().map(|tag| column(tag.data_type())).collect(),
            next_id: 1,
        }
    }

    /// Adds a state of a device: a value for each tag, empty where there is none. Returns its id.
    ///
    /// # Errors
    /// If there are more states than ids.
    pub(in crate::tsbs) fn push<'a>(
        &mut self,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Result<i32, SourceError> {
        let id = self.next_id;
        self.next_id = id.checked_add(1).ok_or_else(|| {
            SourceError::Refused(
                "more than 2147483646 devices, or states of their tags: tags_id is a 32-bit number"
                    .to_owned(),
            )
        })?;
        self.ids.push(id);
        for (column, value) in self.columns.iter_mut().zip(values) {
            match column {
                TagColumn::Texts(texts) if value.is_empty() => texts.push_null(),
                TagColumn::Texts(texts) => texts.push(value),
                TagColumn::Numbers(numbers) => {
                    let text = std::str::from_utf8(value).ok();
                    numbers.push(text.and_then(|text| text.parse().ok()));
                }
            }
        }
        Ok(id)
    }

    /// The new rows, none if there are none.
    pub(in crate::tsbs) fn take(
        &mut self,
        schema: &SchemaRef,
    ) -> Result<Option<RecordBatch>, ArrowError> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        let ids = PrimitiveArray::<Int32Type>::from(std::mem::take(&mut self.ids));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(ids)];
        for column in &mut self.columns {
            columns.push(match column {
                TagColumn::Texts(texts) => Arc::new(texts.take()?),
                TagColumn::Numbers(numbers) => {
                    let numbers = std::mem::take(numbers);
                    Arc::new(PrimitiveArray::<Float32Type>::from(numbers))
                }
            });
        }
        RecordBatch::try_new(Arc::clone(schema), columns).map(Some)
    }
}

/// The values of a line of tags `tags,name=value,…`.
pub(in crate::tsbs) fn tag_values(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let pairs = line.split(|&byte| byte == b',').skip(1);
    pairs.map(|pair| {
        let name_end = pair.iter().position(|&byte| byte == b'=');
        name_end.map_or(&b""[..], |end| &pair[end + 1..])
    })
}

/// Number of states of a truck: each tag may be empty, or none.
const TRUCK_STATES: usize = 9;

/// The ids that devices, or their states, have got. 0: none yet.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    ids: Vec<i32>,
    /// Trucks without a name are distinguished by their other tags only.
    nameless: BTreeMap<Vec<u8>, i32>,
}

impl Ids {
    pub(super) fn of_hosts(hosts: usize) -> Self {
        Self {
            ids: vec![0; hosts],
            nameless: BTreeMap::new(),
        }
    }

    pub(super) fn of_trucks(trucks: usize) -> Self {
        Self::of_hosts(trucks * TRUCK_STATES)
    }

    /// The id of a host, and its tags if it is new.
    #[inline]
    pub(super) fn host(
        &mut self,
        host: usize,
        lines: &Strings,
        tags: &mut TagRows,
    ) -> Result<i32, SourceError> {
        if self.ids[host] == 0 {
            self.ids[host] = tags.push(tag_values(lines.get(host)))?;
        }
        Ok(self.ids[host])
    }

    /// The id of a truck of which this tag is empty, and its tags if it is new.
    #[inline]
    pub(super) fn truck(
        &mut self,
        truck: u32,
        empty: u8,
        lines: &Strings,
        tags: &mut TagRows,
    ) -> Result<i32, SourceError> {
        let state = if empty == NONE {
            TRUCK_STATES - 1
        } else {
            usize::from(empty)
        };
        let index = truck as usize * TRUCK_STATES + state;
        if self.ids[index] == 0 {
            self.ids[index] = self.new_truck(lines.get(truck as usize), state, tags)?;
        }
        Ok(self.ids[index])
    }

    #[cold]
    fn new_truck(
        &mut self,
        line: &[u8],
        empty: usize,
        tags: &mut TagRows,
    ) -> Result<i32, SourceError> {
        let values = tag_values(line)
            .enumerate()
            .map(|(index, value)| if index == empty { &[] } else { value });
        if empty > 0 {
            return tags.push(values);
        }
        let key: Vec<u8> = values.clone().collect::<Vec<_>>().join(&b',');
        if let Some(&id) = self.nameless.get(&key) {
            return Ok(id);
        }
        let id = tags.push(values)?;
        self.nameless.insert(key, id);
        Ok(id)
    }
}
