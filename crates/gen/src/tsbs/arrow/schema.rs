//! The tables of TSBS's data sets as Arrow sees them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};

use crate::dataset::Table;
use crate::encode::json_field;

/// Columns before the fields: `time` and `tags_id`.
pub(in crate::tsbs) const FIRST_FIELD: usize = 2;

/// A table of rows.
pub(in crate::tsbs) fn series_table<'a>(
    name: &str,
    fields: impl IntoIterator<Item = &'a str>,
) -> Table {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()));
    let mut columns = vec![
        Field::new("time", time, false),
        Field::new("tags_id", DataType::Int32, false),
    ];
    columns.extend(
        fields
            .into_iter()
            .map(|field| Field::new(field, DataType::Float64, true)),
    );
    let metrics = columns.len() - FIRST_FIELD;
    columns.push(json_field("additional_tags"));
    Table {
        name: name.to_owned(),
        schema: Arc::new(Schema::new(columns)),
        metrics,
        plain: None,
    }
}

/// The table of devices, of tags with their types (`Utf8` or `Float32`).
pub(in crate::tsbs) fn tags_table<'a>(
    tags: impl IntoIterator<Item = (&'a str, DataType)>,
) -> Table {
    let id = Field::new("id", DataType::Int32, false);
    let tags = tags
        .into_iter()
        .map(|(name, kind)| Field::new(name, kind, true));
    let columns: Vec<_> = std::iter::once(id).chain(tags).collect();
    Table {
        name: "tags".to_owned(),
        schema: Arc::new(Schema::new(columns)),
        metrics: 0,
        plain: None,
    }
}

/// The tags that every host has.
pub(super) const HOST_TAGS: [&str; 10] = [
    "hostname",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
];

/// The tags of a truck; the last three are numbers.
pub(super) const TRUCK_TAGS: [&str; 8] = [
    "name",
    "fleet",
    "driver",
    "model",
    "device_version",
    "load_capacity",
    "fuel_capacity",
    "nominal_fuel_consumption",
];

/// The table of trucks.
pub(super) fn trucks_table() -> Table {
    tags_table(TRUCK_TAGS.iter().enumerate().map(|(index, &name)| {
        let kind = if index < 5 {
            DataType::Utf8
        } else {
            DataType::Float32
        };
        (name, kind)
    }))
}
