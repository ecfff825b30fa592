//! The devices of a use case without their rows: what data of another making needs to look like TSBS's.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;

use super::arrow::SeriesTables;
use super::arrow::states::{TagRows, tag_values};
use super::strings::Strings;
use super::{CatalogKind, Config, ConfigError, Simulation};
use crate::dataset::{Dataset, SourceError};

/// All devices as TSBS draws them from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Devices {
    pub(crate) dataset: Dataset,
    /// A row for each device, ids from 1 in the order of their numbers.
    pub(crate) tags: RecordBatch,
    /// By the number of the table: the tags of each device that only this table has, as JSON.
    pub(crate) additional: Vec<Option<Texts>>,
    /// Time since boot of each host, in the use cases that have a table of it.
    pub(crate) boot_times: Vec<i64>,
    /// Memory of each host, likewise.
    pub(crate) memory_bytes: Vec<i64>,
}

/// A text for each device, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Texts {
    pub(crate) bytes: Vec<u8>,
    /// Where each text begins, and the last ends.
    pub(crate) bounds: Vec<usize>,
}

impl Texts {
    fn from_strings(strings: &Strings) -> Self {
        let mut texts = Self::default();
        texts.bounds.push(0);
        for index in 0..strings.len() {
            texts.bytes.extend_from_slice(strings.get(index));
            texts.bounds.push(texts.bytes.len());
        }
        texts
    }
}

/// Why there are no devices.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DevicesError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Tags(#[from] SourceError),
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl Devices {
    /// Draws the devices of a configuration; it need have no rows.
    pub(crate) fn draw(config: &Config) -> Result<Self, DevicesError> {
        let simulation = Simulation::new(config)?;
        let catalog = simulation.catalog();
        let made = SeriesTables::of(catalog);
        let mut rows = TagRows::new(&made.tags.schema);
        let (lines, boot_times, memory_bytes) = match &catalog.0 {
            CatalogKind::Hosts(hosts) => (
                &hosts.tags,
                hosts.boot_times.clone(),
                hosts.memory_bytes.clone(),
            ),
            CatalogKind::Trucks(lines) => (lines, Vec::new(), Vec::new()),
        };
        for device in 0..lines.len() {
            rows.push(tag_values(lines.get(device)))?;
        }
        let tags = rows.take(&made.tags.schema)?;
        let mut additional = vec![None; made.tables.len()];
        for (number, texts) in made.numbers.iter().zip(&made.additional) {
            additional[*number] = texts.as_ref().map(Texts::from_strings);
        }
        Ok(Self {
            tags: tags.unwrap_or_else(|| RecordBatch::new_empty(made.tags.schema.clone())),
            dataset: Dataset {
                tags: Some(made.tags),
                tables: made.tables,
            },
            additional,
            boot_times,
            memory_bytes,
        })
    }
}
