//! One connection: statements, rows in bulk, transactions.

#![expect(unsafe_code, reason = "calls of the library's functions")]

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::answer::Answer;
use crate::api::Handle;
use crate::database::Instance;
use crate::error::{DuckError, c_text};
use crate::interrupt::Interrupt;
use crate::literals;
use crate::rows::View;
use crate::statement::{Prepared, QueryResult, Statements, Value};

/// A connection. Dropping it closes it; a transaction in flight is then rolled back.
pub struct Connection {
    instance: Arc<Instance>,
    handle: Handle,
    interrupt: Arc<Interrupt>,
    /// What its statements read rows from that it inserts.
    views: Vec<View>,
}

// SAFETY: DuckDB's connections are used by one thread at a time, which need not be the same.
unsafe impl Send for Connection {}

/// The connection that an interruption is for: it is told of none when it is closed.
struct Told(Handle);

// SAFETY: `duckdb_interrupt` is made to be called by other threads.
unsafe impl Send for Told {}
// SAFETY: as above.
unsafe impl Sync for Told {}

impl Connection {
    pub(crate) fn new(instance: Arc<Instance>, handle: Handle) -> Self {
        let (api, told) = (instance.api, Told(handle));
        let interrupt = Interrupt::new(move || {
            let told = &told;
            // SAFETY: the connection says when it is closed, before it is.
            unsafe { (api.duckdb_interrupt)(told.0) };
        });
        Self {
            instance,
            handle,
            interrupt: Arc::new(interrupt),
            views: Vec::new(),
        }
    }

    /// What ends a call of this connection from another thread.
    #[must_use]
    pub fn interrupter(&self) -> Arc<Interrupt> {
        Arc::clone(&self.interrupt)
    }

    /// Run statements to their end and return the whole answer of the last.
    ///
    /// # Errors
    /// What DuckDB says, or that the call was interrupted.
    pub fn query(&mut self, sql: &str) -> Result<Answer, DuckError> {
        let interrupt = self.interrupter();
        let _running = interrupt.begin();
        self.answer(sql)
    }

    /// Run one statement without an answer that writes for long.
    ///
    /// # Errors
    /// What DuckDB says, or that the call was interrupted.
    pub fn finish(&mut self, sql: &str) -> Result<(), DuckError> {
        let interrupt = self.interrupter();
        let _running = interrupt.begin();
        self.go_on()?;
        self.run(sql).map(drop)
    }

    /// Run one statement with parameters, which are written `$name`.
    ///
    /// # Errors
    /// What DuckDB says, also of a parameter without a value or the other way round.
    pub fn query_with(
        &mut self,
        sql: &str,
        values: &[(String, Value)],
    ) -> Result<Answer, DuckError> {
        let interrupt = self.interrupter();
        let _running = interrupt.begin();
        let mut prepared = Prepared::new(self.instance.api, self.handle, sql)?;
        for (name, value) in values {
            prepared.bind_named(name, value)?;
        }
        self.go_on()?;
        self.read(&mut prepared.run()?)
    }

    /// Work in one transaction, which is rolled back when the work fails.
    ///
    /// # Errors
    /// The work's error, or why the transaction could not begin or be committed.
    pub fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, DuckError>,
    ) -> Result<T, DuckError> {
        let interrupt = self.interrupter();
        let running = interrupt.begin();
        let done = self.begin_and_commit(work);
        drop(running);
        if done.is_err() {
            // Outside of the call: what has been interrupted must be free to roll back. The first error is the one
            // that tells; a transaction that cannot be rolled back refuses whatever comes next.
            let _ = self.run_at_once("rollback");
        }
        done
    }

    /// Prepare for [`Transaction::insert`] of rows of this schema. A transaction that has begun would not see it.
    ///
    /// # Errors
    /// What DuckDB says.
    pub fn expect_rows(&mut self, schema: &SchemaRef) -> Result<(), DuckError> {
        if self.view(schema).is_none() {
            self.views.push(self.instance.view(schema)?);
        }
        Ok(())
    }

    fn view(&self, schema: &SchemaRef) -> Option<&View> {
        self.views.iter().find(|view| view.takes(schema))
    }

    fn begin_and_commit<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, DuckError>,
    ) -> Result<T, DuckError> {
        self.run_at_once("begin")?;
        let made = work(&mut Transaction(self))?;
        self.go_on()?;
        self.run("commit")?;
        Ok(made)
    }

    fn answer(&self, sql: &str) -> Result<Answer, DuckError> {
        self.go_on()?;
        let many = sql.trim_end().trim_end_matches(';').contains(';');
        let mut result = if many {
            self.run_all(sql)?
        } else {
            self.run_at_once(sql)?
        };
        self.read(&mut result)
    }

    fn read(&self, result: &mut QueryResult) -> Result<Answer, DuckError> {
        Answer::read(result, || self.go_on())
    }

    /// Of several statements `duckdb_query` would return the first one's answer.
    fn run_all(&self, sql: &str) -> Result<QueryResult, DuckError> {
        Statements::new(self.instance.api, self.handle, sql)?.run(|| self.go_on())
    }

    /// For what writes: this thread sleeps while only DuckDB's own threads have something to do.
    fn run(&self, sql: &str) -> Result<QueryResult, DuckError> {
        Prepared::new(self.instance.api, self.handle, sql)?.run_asleep(|| Ok(()))
    }

    /// For queries and short statements: parse, plan and execute in one call.
    fn run_at_once(&self, sql: &str) -> Result<QueryResult, DuckError> {
        let (api, sql) = (self.instance.api, c_text(sql)?);
        // SAFETY: the connection is open, and the text ends with a zero byte.
        QueryResult::of(api, |result| unsafe {
            (api.duckdb_query)(self.handle, sql.as_ptr(), result)
        })
    }

    fn go_on(&self) -> Result<(), DuckError> {
        if self.interrupt.asked() {
            return Err(DuckError::interrupted());
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.interrupt.close();
        self.instance.incoming.give_back(&mut self.views);
        // SAFETY: it is ours, and nobody uses it any more.
        unsafe { (self.instance.api.duckdb_disconnect)(&raw mut self.handle) }
    }
}

/// A transaction in flight.
pub struct Transaction<'a>(&'a mut Connection);

impl Transaction<'_> {
    /// Run one statement to its end.
    ///
    /// # Errors
    /// What DuckDB says.
    pub fn execute(&mut self, sql: &str) -> Result<(), DuckError> {
        self.0.go_on()?;
        self.0.run(sql).map(drop)
    }

    /// Run `{into} select {values} from {rows}`: DuckDB reads the rows where they are. Their columns have the names
    /// that `values` uses, and were expected before the transaction ([`Connection::expect_rows`]).
    ///
    /// # Errors
    /// What DuckDB says.
    pub fn insert(
        &mut self,
        into: &str,
        values: &str,
        rows: &RecordBatch,
    ) -> Result<(), DuckError> {
        let connection = &*self.0;
        connection.go_on()?;
        let Some(view) = connection.view(&rows.schema()) else {
            let said = "rows came that were not expected: this is a bug of Loadstone";
            return Err(DuckError::new("InternalException", said));
        };
        let sql = format!("{into} select {values} from {}", view.rows(rows));
        let _shown = view.show(rows);
        let mut prepared = Prepared::new(connection.instance.api, connection.handle, &sql)?;
        prepared.run_asleep(|| connection.go_on()).map(drop)
    }

    /// Run a statement with parameters `?` once for each row, whose columns are their values; `mark` is told of every
    /// so many rows (`0`: never) how many are done.
    ///
    /// # Errors
    /// What DuckDB says.
    pub fn each(
        &mut self,
        sql: &str,
        rows: &RecordBatch,
        every: usize,
        mark: impl Fn(u64),
    ) -> Result<(), DuckError> {
        let connection = &*self.0;
        let mut prepared = Prepared::new(connection.instance.api, connection.handle, sql)?;
        for row in 0..rows.num_rows() {
            connection.go_on()?;
            for (place, column) in rows.columns().iter().enumerate() {
                prepared.bind(place as u64 + 1, &literals::value(column, row)?)?;
            }
            prepared.run()?;
            let done = row + 1;
            if every > 0 && (done % every == 0 || done == rows.num_rows()) {
                mark(done as u64);
            }
        }
        Ok(())
    }
}
