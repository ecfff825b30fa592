//! Where rows go: the statements of a load, as texts and as labels of the account.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use loadstone_gen::dataset::{Dataset, Table};
use loadstone_gen::encode::json_field;

use crate::data::{DataSpec, FileFormat};
use crate::error::DriveError;
use crate::protocol::{Bulk, RowFormat};
use crate::spec::load::{LoadSpec, Method, TableSpec};
use crate::workload::StatementLabel;

/// Protocols count the parameters of a statement in 16 bits.
const PARAMETERS_MAX: usize = 65_535;
/// Rows of the largest statement that is kept prepared: beyond it the cost of a row falls no more.
const PREPARED_ROWS_MAX: usize = 512;
/// The table of devices, by the name that specifications use.
const TAGS: &str = "tags";

/// The statements of a load. They are numbered: BEGIN, tags, each table, the ledger, COMMIT.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) method: Method,
    /// The format of its rows, where they are data of a statement that takes rows.
    format: Option<RowFormat>,
    pub(crate) prepared: bool,
    pub(crate) tags: Option<Target>,
    /// In the order of the data set.
    pub(crate) series: Vec<Target>,
    pub(crate) ledger: Option<String>,
    pub(crate) jsonb_tags: bool,
    pub(crate) in_table_tag: bool,
}

/// One table with its statement.
#[derive(Debug)]
pub(crate) struct Target {
    /// Its name in the data set.
    pub(crate) label: String,
    /// Its name in SQL.
    pub(crate) name: String,
    /// Its columns in SQL, in parentheses.
    columns: String,
    /// The rows as they are encoded, which may have more or fewer columns than the source's.
    pub(crate) schema: SchemaRef,
    pub(crate) copy: String,
    /// `log2` of the rows of its largest prepared statement.
    pub(crate) largest: u32,
}

impl Tables {
    /// Match the data set's tables with those of the specification.
    pub(crate) fn new<B: Bulk>(spec: &LoadSpec, dataset: &Dataset) -> Result<Self, DriveError> {
        let tags = match &dataset.tags {
            Some(table) => tags_target::<B>(spec, table)?,
            None => None,
        };
        if dataset.tags.is_none() && (spec.jsonb_tags || spec.in_table_tag) {
            return Err(DriveError::bad_spec(
                "these rows have no tags".to_owned(),
                "remove jsonb_tags and in_table_tag",
            ));
        }
        let first_tag = dataset.tags.as_ref().filter(|_| spec.in_table_tag);
        let first_tag = first_tag.and_then(|tags| tags.schema.fields().get(1));
        let tables = dataset.tables.iter();
        Ok(Self {
            method: spec.method,
            format: format(spec),
            prepared: spec.prepared,
            tags,
            series: tables
                .map(|table| series_target::<B>(spec, table, first_tag))
                .collect::<Result<_, _>>()?,
            ledger: spec.ledger.clone(),
            jsonb_tags: spec.jsonb_tags,
            in_table_tag: spec.in_table_tag,
        })
    }

    /// The format of the rows behind a statement that takes rows; `None`: they are sent by INSERT.
    pub(crate) fn copies(&self) -> Option<RowFormat> {
        self.format
    }

    pub(crate) const BEGIN: u32 = 0;
    pub(crate) const TAGS: u32 = 1;

    /// Label of the statements for a table.
    pub(crate) fn rows_label(table: usize) -> u32 {
        u32::try_from(table).map_or(u32::MAX, |table| Self::TAGS + 1 + table)
    }

    pub(crate) fn ledger_label(&self) -> u32 {
        Self::rows_label(self.series.len())
    }

    pub(crate) fn commit_label(&self) -> u32 {
        self.ledger_label() + 1
    }

    /// The statement that books a batch, where there is a ledger.
    pub(crate) fn ledger_sql(&self, number: u64, rows: u64) -> Option<String> {
        let ledger = self.ledger.as_ref()?;
        Some(format!(
            "INSERT INTO {ledger} (batch, \"rows\") VALUES ({number}, {rows})"
        ))
    }

    /// All statements, by number.
    pub(crate) fn labels(&self) -> Vec<Option<StatementLabel>> {
        let verb = match self.method {
            Method::Insert => "INSERT INTO",
            Method::CopyBinary | Method::CopyText | Method::Arrow => "COPY",
        };
        let tags = self
            .tags
            .as_ref()
            .map(|tags| format!("{verb} {}", tags.name));
        let tables = self.series.iter();
        let ledger = self.ledger.as_ref();
        [Some("BEGIN".to_owned()), tags]
            .into_iter()
            .chain(tables.map(|table| Some(format!("{verb} {}", table.name))))
            .chain([
                ledger.map(|ledger| format!("INSERT INTO {ledger}")),
                Some("COMMIT".to_owned()),
            ])
            .enumerate()
            .map(|(index, text)| {
                text.map(|text| StatementLabel {
                    script: 0,
                    index,
                    line: None,
                    text,
                })
            })
            .collect()
    }

    /// Shapes of prepared statements: so many for each table.
    pub(crate) fn shapes(&self) -> usize {
        self.series.len() * shapes_of_one()
    }

    /// The number of a table's statement for `1 << log2` rows.
    pub(crate) fn shape(table: usize, log2: u32) -> u32 {
        u32::try_from(table * shapes_of_one()).unwrap_or(u32::MAX) + log2
    }

    /// The text of a shape.
    pub(crate) fn shape_sql(&self, shape: u32) -> String {
        let (table, log2) = (
            shape as usize / shapes_of_one(),
            shape as usize % shapes_of_one(),
        );
        self.series[table].insert_sql(1 << log2)
    }
}

/// The name of a shape as a prepared statement.
pub(crate) fn shape_name(shape: u32) -> String {
    format!("rows_{shape}")
}

fn shapes_of_one() -> usize {
    PREPARED_ROWS_MAX.ilog2() as usize + 1
}

impl Target {
    fn new<B: Bulk>(
        asked: &TableSpec,
        table: &str,
        schema: SchemaRef,
        format: RowFormat,
    ) -> Result<Self, DriveError> {
        let wanted = schema.fields().len();
        if asked.columns.len() != wanted {
            let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
            let message = format!(
                "table {table:?}: {} columns are listed, but its rows have {wanted}",
                asked.columns.len()
            );
            let hint = format!("list one for each of {}", names.join(", "));
            return Err(DriveError::bad_spec(message, &hint));
        }
        if wanted > PARAMETERS_MAX {
            let message = format!("table {table:?} has {wanted} columns");
            return Err(DriveError::bad_spec(
                message,
                "no statement can fill that many",
            ));
        }
        let columns: Vec<_> = asked.columns.iter().map(|name| quoted(name)).collect();
        let columns = format!("({})", columns.join(", "));
        let largest = (PARAMETERS_MAX / wanted).min(PREPARED_ROWS_MAX).ilog2();
        Ok(Self {
            label: table.to_owned(),
            copy: B::rows_statement(&asked.name, &columns, format),
            name: asked.name.clone(),
            columns,
            schema,
            largest,
        })
    }

    /// Most rows of one statement.
    pub(crate) fn rows_max(&self) -> usize {
        PARAMETERS_MAX / self.schema.fields().len()
    }

    /// `INSERT` of values that follow.
    pub(crate) fn insert_into(&self) -> String {
        format!("INSERT INTO {} {} VALUES ", self.name, self.columns)
    }

    /// `INSERT` of so many rows of parameters.
    pub(crate) fn insert_sql(&self, rows: usize) -> String {
        let mut sql = self.insert_into();
        let columns = self.schema.fields().len();
        for row in 0..rows {
            sql.push_str(if row == 0 { "(" } else { ", (" });
            for column in 0..columns {
                let comma = if column == 0 { "" } else { ", " };
                // Writing to a String cannot fail.
                let _ = write!(sql, "{comma}${}", row * columns + column + 1);
            }
            sql.push(')');
        }
        sql
    }
}

/// Where a table's rows go; none when the specification says that they go nowhere.
fn asked(spec: &LoadSpec, table: &str, schema: &Schema) -> Result<Option<TableSpec>, DriveError> {
    match &spec.tables {
        None => Ok(Some(TableSpec {
            name: quoted(table),
            columns: schema.fields().iter().map(|f| f.name().clone()).collect(),
        })),
        Some(tables) => tables.get(table).cloned().ok_or_else(|| {
            DriveError::bad_spec(
                format!("the rows of {table:?} have no table"),
                "list every table of the data set in tables",
            )
        }),
    }
}

fn tags_target<B: Bulk>(spec: &LoadSpec, table: &Table) -> Result<Option<Target>, DriveError> {
    let schema = if spec.jsonb_tags {
        let id = Field::new("id", DataType::Int32, false);
        Arc::new(Schema::new(vec![id, json_field("tagset")]))
    } else {
        Arc::clone(&table.schema)
    };
    let Some(asked) = asked(spec, TAGS, &schema)? else {
        return Ok(None);
    };
    // Text, whatever the method: it suits every type that a tag's column may have.
    Target::new::<B>(&asked, TAGS, schema, RowFormat::Text).map(Some)
}

fn series_target<B: Bulk>(
    spec: &LoadSpec,
    table: &Table,
    first_tag: Option<&Arc<Field>>,
) -> Result<Target, DriveError> {
    let schema = match first_tag {
        None => Arc::clone(&table.schema),
        Some(tag) => {
            let columns = std::iter::once(tag).chain(table.schema.fields());
            Arc::new(Schema::new(columns.cloned().collect::<Vec<_>>()))
        }
    };
    let asked = asked(spec, &table.name, &schema)?.ok_or_else(|| {
        DriveError::bad_spec(
            format!("the rows of {:?} have no table", table.name),
            "only tags may be missing",
        )
    })?;
    let format = format(spec).unwrap_or(RowFormat::Text);
    Target::new::<B>(&asked, &table.name, schema, format)
}

/// The format of rows behind a statement that takes rows.
fn format(spec: &LoadSpec) -> Option<RowFormat> {
    match (spec.method, &spec.data) {
        (Method::Insert | Method::Arrow, _) => None,
        (Method::CopyBinary, _) => Some(RowFormat::Binary),
        (_, DataSpec::Files(files)) if files.format == FileFormat::Csv => Some(RowFormat::Csv),
        (Method::CopyText, _) => Some(RowFormat::Text),
    }
}

/// A name as SQL takes it.
fn quoted(name: &str) -> String {
    if name.len() > 1 && name.starts_with('"') && name.ends_with('"') {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}
