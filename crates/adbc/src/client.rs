//! The driver's clients of such a database: no lock of anybody's language is between a client and its call.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use loadstone_drive::data::TableBatch;
use loadstone_drive::library::{
    ArrowStream, Call, Interrupter, Library, LibraryClient, LibraryError, RowBatch, Sent,
};
use serde::Deserialize;

use crate::connection::{Connection, Target, Transaction};
use crate::database::Database;
use crate::error::AdbcError;
use crate::interrupt::Interrupt;

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
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Tables, by the name that their rows come under.
    pub tables: BTreeMap<String, TableSpec>,
    /// Rows handed over at once.
    pub piece: usize,
    /// `insert into LEDGER (batch, rows)`: how a batch is booked in its own transaction.
    pub ledger: Option<String>,
    /// Statements that end a load.
    pub finish: Vec<String>,
}

/// One table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// The table.
    pub target: Target,
    /// Its columns, in its order.
    pub columns: Vec<String>,
}

/// A database whose clients the driver drives.
pub struct AdbcLibrary {
    database: Arc<Database>,
    spec: Arc<ClientSpec>,
}

impl AdbcLibrary {
    /// Take an open database.
    #[must_use]
    pub fn new(database: Arc<Database>, spec: ClientSpec) -> Self {
        let spec = Arc::new(spec);
        Self { database, spec }
    }

    fn open(&self) -> Result<Connection, AdbcError> {
        let mut connection = self.database.connect()?;
        for sql in &self.spec.begin {
            connection.query(sql)?;
        }
        Ok(connection)
    }

    fn end_load(&self) -> Result<(), AdbcError> {
        let Some(load) = &self.spec.load else {
            return Ok(());
        };
        let mut connection = self.open()?;
        load.finish
            .iter()
            .try_for_each(|sql| connection.query(sql).map(drop))
    }
}

impl Library for AdbcLibrary {
    fn connect(&self, _number: usize) -> Result<Box<dyn LibraryClient>, LibraryError> {
        let connection = self.open().map_err(LibraryError::from)?;
        let spec = Arc::clone(&self.spec);
        Ok(Box::new(AdbcClient { connection, spec }))
    }

    fn finish(&self) -> Result<(), LibraryError> {
        self.end_load().map_err(LibraryError::from)
    }
}

struct AdbcClient {
    connection: Connection,
    spec: Arc<ClientSpec>,
}

impl LibraryClient for AdbcClient {
    fn send(&mut self, rows: &RowBatch, _call: &Call) -> Result<Sent, LibraryError> {
        let Some(load) = &self.spec.load else {
            return Err(LibraryError::new("", "this connection loads nothing"));
        };
        let work = |transaction: &mut Transaction<'_>| send(transaction, load, rows);
        self.connection
            .transaction(work)
            .map_err(LibraryError::from)?;
        Ok(Sent { rows: rows.rows })
    }

    fn query(&mut self, sql: &str, _call: &Call) -> Result<ArrowStream, LibraryError> {
        let answer = self.connection.query(sql).map_err(LibraryError::from)?;
        Ok(answer.into_reader())
    }

    fn interrupter(&self) -> Arc<dyn Interrupter> {
        self.connection.interrupter()
    }
}

impl Interrupter for Interrupt {
    fn interrupt(&self) {
        Self::interrupt(self);
    }
}

fn send(
    transaction: &mut Transaction<'_>,
    load: &LoadSpec,
    rows: &RowBatch,
) -> Result<(), AdbcError> {
    for batch in rows.tags.iter().chain(&rows.tables) {
        let table = load.table(batch)?;
        transaction.append(&table.target, &table.in_order(batch)?, load.piece)?;
    }
    if let Some(ledger) = &load.ledger {
        transaction.execute(&format!("{ledger} values ({}, {})", rows.number, rows.rows))?;
    }
    Ok(())
}

impl LoadSpec {
    fn table(&self, batch: &TableBatch) -> Result<&TableSpec, AdbcError> {
        let found = self.tables.get(&batch.table);
        found.ok_or_else(|| refused(&format!("there is no table for rows of {}", batch.table)))
    }
}

impl TableSpec {
    /// Rows with the table's columns in its order.
    fn in_order(&self, batch: &TableBatch) -> Result<RecordBatch, AdbcError> {
        let schema = batch.rows.schema();
        let places: Result<Vec<_>, _> = self.columns.iter().map(|n| schema.index_of(n)).collect();
        places
            .and_then(|places| batch.rows.project(&places))
            .map_err(|error| refused(&error.to_string()))
    }
}

fn refused(message: &str) -> AdbcError {
    AdbcError {
        state: String::new(),
        message: message.to_owned(),
    }
}

impl From<AdbcError> for LibraryError {
    fn from(error: AdbcError) -> Self {
        Self::new(&error.state, &error.message)
    }
}
