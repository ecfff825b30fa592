//! Which columns a file of Parquet has, and whether they can be those of the table.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::file::metadata::RowGroupMetaData;

use super::WantedColumn;
use super::cast::{cast, fits, shown};
use crate::data::stream::kind;
use crate::error::DriveError;

const TYPES: &str =
    "write it as a 16, 32 or 64 bit integer, a float, text, a boolean, a date or a timestamp";
const MEND: &str = "mend that value, or leave its row out";

/// The columns as they are handed on: the wanted ones, those of the first file where none are.
pub(super) fn handed_on(
    path: &Path,
    first: &Schema,
    wanted: &[WantedColumn],
) -> Result<Schema, DriveError> {
    let as_in_file = |field: &Arc<Field>| {
        let kind = as_read(field.data_type());
        let known = kind.map(|kind| Field::new(field.name(), kind, true));
        known.ok_or_else(|| {
            let (name, kind) = (field.name(), field.data_type());
            let message = format!("column {name:?} is of the type {kind}, which is not loaded");
            refused(path, &message, TYPES)
        })
    };
    let as_wanted = |column: &WantedColumn| {
        let found = first.column_with_name(&column.name);
        let kind = as_asked(&column.kind, found.map(|(_, field)| field.data_type()));
        let known = kind.map(|kind| Field::new(&column.name, kind, true));
        known.ok_or_else(|| {
            let message = format!("column {:?} cannot be {}", column.name, column.kind);
            refused(path, &message, TYPES)
        })
    };
    let fields: Result<Vec<_>, _> = if wanted.is_empty() {
        first.fields().iter().map(as_in_file).collect()
    } else {
        wanted.iter().map(as_wanted).collect()
    };
    Ok(Schema::new(fields?))
}

/// The type as which values of a file are handed on; none for one that nobody knows.
fn as_read(kind: &DataType) -> Option<DataType> {
    use DataType::{Boolean, Date32, Float32, Float64, Int16, Int32, Int64, Timestamp, Utf8};
    match kind {
        Boolean | Date32 | Float32 | Float64 | Int16 | Int32 | Int64 | Utf8 => Some(kind.clone()),
        Timestamp(_, zone) => Some(Timestamp(TimeUnit::Microsecond, zone.clone())),
        _ => None,
    }
}

/// The type of a data set's description; times have the zone that they have in the file.
fn as_asked(kind: &str, found: Option<&DataType>) -> Option<DataType> {
    Some(match kind {
        "bool" => DataType::Boolean,
        "date" => DataType::Date32,
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "text" | "json" => DataType::Utf8,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, found.and_then(zone).cloned()),
        _ => return None,
    })
}

fn zone(kind: &DataType) -> Option<&Arc<str>> {
    match kind {
        DataType::Timestamp(_, zone) => zone.as_ref(),
        _ => None,
    }
}

/// Refuse a file of other columns, naming the first that differs.
pub(super) fn check(path: &Path, found: &Schema, wanted: &Schema) -> Result<(), DriveError> {
    let refuse = |message: String, hint: &str| Err(refused(path, &message, hint));
    for column in wanted.fields() {
        let name = column.name();
        let Some((_, field)) = found.column_with_name(name) else {
            return refuse(
                format!("there is no column {name:?}"),
                "give a file of all columns of the table",
            );
        };
        if !fits(field.data_type(), column.data_type()) {
            let types = (word(field), kind(column));
            return refuse(
                format!("column {name:?} is {}, and {} is wanted", types.0, types.1),
                "write the file anew with that type",
            );
        }
        if zone(field.data_type()) != zone(column.data_type()) {
            return refuse(
                format!("times in column {name:?} have another zone than in the first file"),
                "write all files with the same zone, or all without",
            );
        }
    }
    let is_wanted = |field: &&Arc<Field>| wanted.column_with_name(field.name()).is_some();
    let mut fields = found.fields().iter();
    if let Some(field) = fields.find(|field| !is_wanted(field)) {
        return refuse(
            format!("the table has no column {:?}", field.name()),
            "leave it out of the file",
        );
    }
    if found.fields().len() != wanted.fields().len() {
        return refuse(
            "a column is there twice".to_owned(),
            "name each column once",
        );
    }
    Ok(())
}

/// The type of a file's column in our words, in Arrow's where we have none.
fn word(field: &Field) -> String {
    match as_read(field.data_type()) {
        Some(_) => kind(field).to_owned(),
        None => field.data_type().to_string(),
    }
}

/// Refuse a file whose own account of its values, the least and the greatest of each group of rows, says that one does
/// not fit the table. Where it keeps none, only reading tells.
pub(super) fn check_bounds(
    path: &Path,
    builder: &ParquetRecordBatchReaderBuilder<File>,
    wanted: &Schema,
) -> Result<(), DriveError> {
    let (found, groups) = (builder.schema(), builder.metadata().row_groups());
    for column in wanted.fields() {
        // Of long texts bounds are cut, perhaps in the middle of a character.
        if *column.data_type() == DataType::Utf8 {
            continue;
        }
        let name = column.name();
        let bounds = StatisticsConverter::try_new(name, found, builder.parquet_schema());
        let Ok(bounds) = bounds else { continue };
        let (least, greatest) = (
            bounds.row_group_mins(groups),
            bounds.row_group_maxes(groups),
        );
        for bound in [least, greatest].into_iter().flatten() {
            if let Err(group) = cast(&bound, column.data_type()) {
                let words = unfit(column, &shown(&bound, group));
                let message = format!("{}: {words}", rows_of(groups, group));
                return Err(refused(path, &message, MEND));
            }
        }
    }
    Ok(())
}

fn rows_of(groups: &[RowGroupMetaData], group: usize) -> String {
    let counts = groups[..group].iter().map(RowGroupMetaData::num_rows);
    let before: i64 = counts.sum();
    let last = before + groups[group].num_rows();
    format!("rows {} to {last}", before + 1)
}

/// What is said of a value that a column does not hold.
pub(super) fn unfit(column: &Field, value: &str) -> String {
    format!(
        "column {:?} has {value}, which {} does not hold",
        column.name(),
        kind(column)
    )
}

fn refused(path: &Path, message: &str, hint: &str) -> DriveError {
    DriveError::bad_spec(format!("{}: {message}", path.display()), hint)
}
