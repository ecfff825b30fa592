//! One connection: statements, rows in bulk, transactions.

use std::sync::Arc;

use adbc_core::error::{Error, Result as Said, Status};
use adbc_core::options::{IngestMode, OptionStatement};
use adbc_core::{Connection as _, Optionable as _, Statement as _};
use adbc_driver_manager::{ManagedConnection, ManagedStatement};
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ArrowError;
use serde::Deserialize;

use crate::answer::Answer;
use crate::error::{AdbcError, ErrorNames};
use crate::interrupt::Interrupt;

/// Where rows go in bulk.
#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The database that holds the schema.
    pub catalog: String,
    /// The schema that holds the table.
    pub schema: String,
    /// The table.
    pub table: String,
}

/// A connection. Dropping it closes it; a transaction under way is then rolled back.
pub struct Connection {
    inner: ManagedConnection,
    names: Arc<ErrorNames>,
    interrupt: Arc<Interrupt>,
}

impl Connection {
    pub(crate) fn new(inner: ManagedConnection, names: Arc<ErrorNames>) -> Self {
        let interrupt = Arc::new(Interrupt::new(inner.get_cancel_handle()));
        Self {
            inner,
            names,
            interrupt,
        }
    }

    /// What ends a call of this connection from another thread.
    #[must_use]
    pub fn interrupter(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// Run one statement to its end and return its whole answer.
    ///
    /// # Errors
    /// What the library says, or that the call was interrupted.
    pub fn query(&mut self, sql: &str) -> Result<Answer, AdbcError> {
        let interrupt = self.interrupter();
        let _running = interrupt.begin();
        self.answer(sql)
    }

    /// Append rows to a table, whose columns they have in its order; they are handed over `piece` at a time.
    ///
    /// # Errors
    /// What the library says, or that the call was interrupted.
    pub fn append(
        &mut self,
        target: &Target,
        rows: &RecordBatch,
        piece: usize,
    ) -> Result<(), AdbcError> {
        let interrupt = self.interrupter();
        let _running = interrupt.begin();
        self.append_rows(target, rows, piece)
    }

    /// Run a statement with parameters once for each row, whose columns are the parameters.
    ///
    /// # Errors
    /// What the library says, or that the call was interrupted.
    pub fn each(&mut self, sql: &str, rows: &RecordBatch) -> Result<(), AdbcError> {
        let interrupt = self.interrupter();
        let _running = interrupt.begin();
        self.each_row(sql, rows)
    }

    /// Work in one transaction, which is rolled back when the work fails.
    ///
    /// # Errors
    /// The work's error, or why the transaction could not begin or be committed.
    pub fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, AdbcError>,
    ) -> Result<T, AdbcError> {
        let interrupt = self.interrupter();
        let running = interrupt.begin();
        let done = self.begin_and_commit(work);
        drop(running);
        if done.is_err() {
            // Outside of the call: what has been interrupted must be free to roll back. The first error is the one
            // that tells; a transaction that cannot be rolled back refuses whatever comes next.
            let _ = self.answer("rollback");
        }
        done
    }

    fn begin_and_commit<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, AdbcError>,
    ) -> Result<T, AdbcError> {
        self.answer("begin")?;
        let made = work(&mut Transaction(self))?;
        self.answer("commit")?;
        Ok(made)
    }

    fn append_rows(
        &mut self,
        target: &Target,
        rows: &RecordBatch,
        piece: usize,
    ) -> Result<(), AdbcError> {
        self.go_on()?;
        append(&mut self.inner, target, rows, piece).map_err(|error| self.names.error(&error))
    }

    fn each_row(&mut self, sql: &str, rows: &RecordBatch) -> Result<(), AdbcError> {
        let mut statement = self.prepared(sql)?;
        for row in 0..rows.num_rows() {
            self.go_on()?;
            statement
                .bind(rows.slice(row, 1))
                .and_then(|()| statement.execute_update())
                .map_err(|error| self.names.error(&error))?;
        }
        Ok(())
    }

    fn answer(&mut self, sql: &str) -> Result<Answer, AdbcError> {
        let mut statement = self.prepared(sql)?;
        self.go_on()?;
        let rows = statement
            .execute()
            .map_err(|error| self.names.error(&error))?;
        let schema = rows.schema();
        let mut batches = Vec::new();
        for batch in rows {
            batches.push(batch.map_err(|error| self.names.arrow(&error))?);
            self.go_on()?;
        }
        Ok(Answer { schema, batches })
    }

    fn prepared(&mut self, sql: &str) -> Result<ManagedStatement, AdbcError> {
        let made = self.inner.new_statement().and_then(|mut statement| {
            statement.set_sql_query(sql)?;
            Ok(statement)
        });
        made.map_err(|error| self.names.error(&error))
    }

    fn go_on(&self) -> Result<(), AdbcError> {
        if self.interrupt.asked() {
            let said = "Interrupt Error: the call was interrupted";
            let error = Error::with_message_and_status(said, Status::Cancelled);
            return Err(self.names.error(&error));
        }
        Ok(())
    }
}

/// A transaction under way.
pub struct Transaction<'a>(&'a mut Connection);

impl Transaction<'_> {
    /// Run one statement to its end.
    ///
    /// # Errors
    /// What the library says.
    pub fn execute(&mut self, sql: &str) -> Result<(), AdbcError> {
        self.0.answer(sql).map(drop)
    }

    /// As [`Connection::append`].
    ///
    /// # Errors
    /// What the library says.
    pub fn append(
        &mut self,
        target: &Target,
        rows: &RecordBatch,
        piece: usize,
    ) -> Result<(), AdbcError> {
        self.0.append_rows(target, rows, piece)
    }

    /// As [`Connection::each`].
    ///
    /// # Errors
    /// What the library says.
    pub fn each(&mut self, sql: &str, rows: &RecordBatch) -> Result<(), AdbcError> {
        self.0.each_row(sql, rows)
    }
}

fn append(
    connection: &mut ManagedConnection,
    target: &Target,
    rows: &RecordBatch,
    piece: usize,
) -> Said<()> {
    let mut statement = connection.new_statement()?;
    for (name, value) in [
        (OptionStatement::TargetCatalog, &target.catalog),
        (OptionStatement::TargetDbSchema, &target.schema),
        (OptionStatement::TargetTable, &target.table),
    ] {
        statement.set_option(name, value.as_str().into())?;
    }
    statement.set_option(OptionStatement::IngestMode, IngestMode::Append.into())?;
    statement.bind_stream(pieces(rows, piece))?;
    statement.execute_update().map(drop)
}

fn pieces(rows: &RecordBatch, piece: usize) -> Box<dyn arrow_array::RecordBatchReader + Send> {
    let (rows, schema, step) = (rows.clone(), rows.schema(), piece.max(1));
    let pieces = (0..rows.num_rows()).step_by(step).map(move |first| {
        Ok::<_, ArrowError>(rows.slice(first, step.min(rows.num_rows() - first)))
    });
    Box::new(RecordBatchIterator::new(pieces.collect::<Vec<_>>(), schema))
}
