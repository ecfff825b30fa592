//! The driver's clients: no lock of anybody's language is between a client and its call.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use loadstone_drive::data::TableBatch;
use loadstone_drive::library::{
    ArrowStream, Call, Interrupter, Library, LibraryClient, LibraryError, RowBatch, Sent,
};
use serde::Deserialize;

use crate::connection::{Connection, Transaction};
use crate::database::Database;
use crate::error::DuckError;
use crate::literals;

/// What clients do beside the rows and queries that they are given.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSpec {
    /// Statements that each connection begins with.
    #[serde(default)]
    pub begin: Vec<String>,
    /// Where rows go.
    #[serde(default)]
    pub load: Option<LoadSpec>,
}

/// Where the rows of a load go.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    method: Method,
    /// The table of devices, where there is one.
    tags: Option<TableSpec>,
    /// The other tables, by the name that their rows come under.
    tables: BTreeMap<String, TableSpec>,
    /// `insert into LEDGER (batch, rows)`: how a batch is booked in its own transaction.
    ledger: Option<String>,
    /// Rows between two marks of a long transaction.
    #[serde(default)]
    mark_rows: usize,
    /// Statements that end a load.
    finish: Vec<String>,
}

/// How rows are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Method {
    /// DuckDB reads Arrow's memory.
    Arrow,
    /// As the text of one statement; in long transactions by one statement a row.
    Insert,
}

/// One table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableSpec {
    /// `insert into TABLE (COLUMNS)`.
    into: String,
    /// The columns' names, in the order of `into`.
    columns: Vec<String>,
    /// Rows come in the order of `columns`, whatever their own columns are called.
    #[serde(default)]
    by_place: bool,
    /// Rows come with columns of their own, which become one JSON object, behind the first.
    #[serde(default)]
    as_json: bool,
}

/// A database whose clients the driver drives.
pub struct DuckLibrary {
    database: Database,
    spec: Arc<ClientSpec>,
}

impl DuckLibrary {
    /// Take an open database.
    #[must_use]
    pub fn new(database: Database, spec: ClientSpec) -> Self {
        let spec = Arc::new(spec);
        Self { database, spec }
    }

    fn open(&self) -> Result<Connection, DuckError> {
        let mut connection = self.database.connect()?;
        for sql in &self.spec.begin {
            connection.query(sql)?;
        }
        Ok(connection)
    }

    fn end_load(&self) -> Result<(), DuckError> {
        let Some(load) = &self.spec.load else {
            return Ok(());
        };
        let mut connection = self.open()?;
        load.finish
            .iter()
            .try_for_each(|sql| connection.finish(sql))
    }
}

impl Library for DuckLibrary {
    fn connect(&self, _number: usize) -> Result<Box<dyn LibraryClient>, LibraryError> {
        let connection = self.open()?;
        let spec = Arc::clone(&self.spec);
        Ok(Box::new(DuckClient { connection, spec }))
    }

    fn finish(&self) -> Result<(), LibraryError> {
        Ok(self.end_load()?)
    }
}

struct DuckClient {
    connection: Connection,
    spec: Arc<ClientSpec>,
}

impl LibraryClient for DuckClient {
    fn send(&mut self, rows: &RowBatch, call: &Call) -> Result<Sent, LibraryError> {
        let Some(load) = &self.spec.load else {
            return Err(LibraryError::new(
                "",
                "this connection was not opened for a load",
            ));
        };
        let parts = load.parts(rows)?;
        for part in parts.iter().filter(|part| load.reads(part.table)) {
            self.connection.expect_rows(&part.rows.schema())?;
        }
        self.connection.transaction(|transaction| {
            let put = |part: &Part<'_>| load.put(transaction, part, call);
            parts.iter().try_for_each(put)?;
            load.book(transaction, rows)
        })?;
        Ok(Sent { rows: rows.rows })
    }

    fn query(&mut self, sql: &str, _call: &Call) -> Result<ArrowStream, LibraryError> {
        let answer = self.connection.query(sql).map_err(first_line)?;
        Ok(answer.into_reader())
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        self.connection.interrupter()
    }

    fn mode(&self) -> String {
        let load = self.spec.load.as_ref();
        let is_text = load.is_some_and(|load| load.method == Method::Insert);
        if is_text { "insert" } else { "arrow" }.to_owned()
    }
}

/// Of what is wrong with a query the first line; others show the place in its text.
fn first_line(mut error: DuckError) -> LibraryError {
    if let Some(end) = error.message.find('\n') {
        error.message.truncate(end);
    }
    error.into()
}

impl LoadSpec {
    /// Where the rows of a batch go, in the order in which they go there.
    fn parts(&self, rows: &RowBatch) -> Result<Vec<Part<'_>>, DuckError> {
        let tags = rows.tags.iter().map(|batch| (self.tags.as_ref(), batch));
        let others = rows.tables.iter();
        let others = others.map(|batch| (self.tables.get(&batch.table), batch));
        tags.chain(others)
            .map(|(table, batch)| Part::new(table.ok_or_else(|| no_table(batch))?, batch))
            .collect()
    }

    /// DuckDB reads the rows of this table where Arrow has them.
    fn reads(&self, table: &TableSpec) -> bool {
        self.method == Method::Arrow || table.as_json
    }

    fn put(
        &self,
        transaction: &mut Transaction<'_>,
        part: &Part<'_>,
        call: &Call,
    ) -> Result<(), DuckError> {
        let (table, rows) = (part.table, &part.rows);
        if self.reads(table) {
            return transaction.insert(&table.into, &table.values(rows), rows);
        }
        if call.has_marks() {
            let sql = format!("{} values ({})", table.into, table.places());
            return transaction.each(&sql, rows, self.mark_rows, |rows| call.mark(rows));
        }
        let lists = literals::lists(rows)?;
        transaction.execute(&format!("{} values {lists}", table.into))
    }

    /// Note the batch in the ledger, where there is one.
    fn book(&self, transaction: &mut Transaction<'_>, rows: &RowBatch) -> Result<(), DuckError> {
        let Some(ledger) = &self.ledger else {
            return Ok(());
        };
        transaction.execute(&format!("{ledger} values ({}, {})", rows.number, rows.rows))
    }
}

/// Rows of one table, with its names.
struct Part<'a> {
    table: &'a TableSpec,
    rows: RecordBatch,
}

impl<'a> Part<'a> {
    fn new(table: &'a TableSpec, batch: &TableBatch) -> Result<Self, DuckError> {
        let rows = table.named(&batch.rows).map_err(|error| refused(&error))?;
        Ok(Self { table, rows })
    }
}

impl TableSpec {
    /// Rows whose columns have the table's names, in its order.
    fn named(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        if self.as_json {
            return Ok(rows.clone());
        }
        if !self.by_place {
            let schema = rows.schema();
            let places: Result<Vec<_>, _> = self
                .columns
                .iter()
                .map(|name| schema.index_of(name))
                .collect();
            return rows.project(&places?);
        }
        let fields = rows.schema();
        let fields = fields.fields().iter().zip(&self.columns);
        let named: Vec<_> = fields
            .map(|(field, name)| field.as_ref().clone().with_name(name))
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(named)), rows.columns().to_vec())
    }

    /// What is selected of such rows.
    fn values(&self, rows: &RecordBatch) -> String {
        let schema = rows.schema();
        let names = schema.fields().iter().map(|field| field.name());
        if !self.as_json {
            return names
                .map(|name| quoted(name))
                .collect::<Vec<_>>()
                .join(", ");
        }
        let pairs = names.clone().skip(1);
        let pairs = pairs.map(|name| format!("'{}', {}", name.replace('\'', "''"), quoted(name)));
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        let first: String = names.take(1).map(|name| quoted(name)).collect();
        format!("{first}, json_object({pairs})")
    }

    fn places(&self) -> String {
        vec!["?"; self.columns.len()].join(", ")
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn no_table(batch: &TableBatch) -> DuckError {
    DuckError::new(
        "Error",
        format!("there is no table for rows of {}", batch.table),
    )
}

fn refused(error: &ArrowError) -> DuckError {
    DuckError::new("Error", format!("the rows do not fit the table: {error}"))
}
