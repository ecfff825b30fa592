//! Record batches as bytes: what `COPY` and `LOAD DATA` take, and CSV.
//!
//! Every encoder takes batches with columns of the types `Int16`, `Int32`, `Int64`, `Float32`, `Float64`, `Utf8`,
//! `Boolean`, `Date32` and `Timestamp` (nanoseconds or microseconds), in any number and order, sliced or not, and
//! appends their rows. Times are read as UTC.
//!
//! Columns of a dictionary ([`crate::dictionary_batch`]) become bytes once for each of its entries, by the same code.
//!
//! A `Utf8` column whose field is marked as Arrow's extension type `arrow.json` (see [`json_field`]) is
//! meant for a `jsonb` column: it is only in `COPY`'s binary format that this makes a difference.

mod block;
mod column;
pub mod copy_binary;
mod copy_text;
mod csv;
mod fragments;
mod lines;
mod load_data;
mod time;

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field};

pub use self::copy_binary::copy_binary;
pub use self::copy_text::copy_text;
pub use self::csv::{csv, csv_header};
pub(crate) use self::fragments::Fragments;
pub use self::load_data::load_data;
pub(crate) use self::time::put_date;

/// What rows can become.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    CopyText,
    CopyBinary,
    Csv,
    LoadData,
}

impl Form {
    pub(crate) const COUNT: usize = 4;
}

/// Why a batch cannot be encoded. Nothing of it has been written then.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// A type of column that no encoder knows.
    #[error("column {column:?} is of the Arrow type {kind}, which cannot be written")]
    Type {
        /// Its name.
        column: String,
        /// Its type.
        kind: DataType,
    },
    /// More columns than a row of `COPY` can have.
    #[error("{0} columns are too many: a row of COPY has at most 32767")]
    Columns(usize),
}

/// The name of the extension type of columns that hold JSON.
const JSON: &str = "arrow.json";

/// A nullable column of JSON as text, for a `jsonb` column.
#[must_use]
pub fn json_field(name: &str) -> Field {
    let mark = [(EXTENSION_TYPE_NAME_KEY.to_owned(), JSON.to_owned())];
    let field = Field::new(name, DataType::Utf8, true);
    field.with_metadata(mark.into_iter().collect::<arrow_schema::Metadata>())
}

/// The key by which a field says what it is in SQL, where its Arrow type does not.
const SQL_TYPE: &str = "loadstone.sql";

/// A column of text that has this type in SQL (`json`, `varchar(2000)`): encoders write it as any other text.
#[must_use]
pub fn sql_text_field(name: &str, sql: &str) -> Field {
    let mark = [(SQL_TYPE.to_owned(), sql.to_owned())];
    let field = Field::new(name, DataType::Utf8, false);
    field.with_metadata(mark.into_iter().collect::<arrow_schema::Metadata>())
}

/// The type in SQL that [`sql_text_field`] gave.
#[must_use]
pub fn sql_type(field: &Field) -> Option<&str> {
    field.metadata().get(SQL_TYPE).map(String::as_str)
}

/// Whether a column is marked as [`json_field`] marks it.
#[must_use]
pub fn is_json(field: &Field) -> bool {
    field
        .metadata()
        .get(EXTENSION_TYPE_NAME_KEY)
        .is_some_and(|name| name == JSON)
}
