//! One client that runs queries.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::Shared;
use super::answers::Want;
use super::feed::Query;
use super::statements::{Key, Statements, key};
use crate::answer::{Digester, Rows, Unreadable};
use crate::protocol::{Failure, Frontend, Message, Protocol, Unencodable};
use crate::record::ErrorClass;
use crate::workload::{End, LoadCount, Program, Readiness, Step};

pub(super) struct QueryProgram {
    shared: Arc<Shared>,
    query: Query,
    key: Key,
    /// The query was taken from the list and has not begun.
    is_held: bool,
    is_sent: bool,
    statements: Statements,
    want: Want,
    digester: Digester,
    rows: Rows,
    row_count: u64,
    unreadable: Option<Unreadable>,
}

impl QueryProgram {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            query: Query::default(),
            key: 0,
            is_held: false,
            is_sent: false,
            statements: Statements::new(shared.statements_max),
            want: Want::Count,
            digester: Digester::default(),
            rows: Rows::new(shared.answers.rows_max),
            row_count: 0,
            unreadable: None,
            shared,
        }
    }

    fn send(&mut self, frontend: &mut impl Frontend) -> Result<(), Unencodable> {
        let plan = self.statements.plan(self.key);
        for name in self.statements.closing() {
            frontend.close_statement(&name)?;
        }
        if plan.parse {
            frontend.prepare(&plan.name, self.query.sql.as_bytes())?;
        }
        frontend.execute_plain(&plan.name, self.shared.binary)?;
        frontend.sync();
        Ok(())
    }

    fn start_over(&mut self) {
        self.is_sent = false;
        self.forget_answer();
    }

    fn forget_answer(&mut self) {
        self.digester.clear();
        self.row_count = 0;
        self.unreadable = None;
    }

    /// The answer is complete and as it should be.
    fn keep_answer(&mut self) -> Result<(), Failure> {
        let answer = |words| Failure::new(ErrorClass::Answer, words);
        if let Some(unreadable) = self.unreadable.take() {
            return Err(answer(unreadable.to_string()));
        }
        let (answers, number) = (&self.shared.answers, self.query.number);
        match self.want {
            Want::Digest => {
                let difference = answers.digest(self.key, number, self.digester.digest());
                difference.map_or(Ok(()), |words| Err(answer(words)))
            }
            Want::Rows => {
                let (columns, rows) = self.rows.take();
                let answer = json!({"columns": columns, "rows": rows, "row_count": self.row_count});
                answers.rows(self.key, number, answer);
                Ok(())
            }
            Want::Count => {
                answers.counted(self.key);
                Ok(())
            }
        }
    }
}

impl<P: Protocol> Program<P> for QueryProgram {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        if !self.is_held {
            self.is_held = self.shared.feed.take(&mut self.query);
        }
        if self.is_held {
            Readiness::Ready
        } else {
            Readiness::Ended
        }
    }

    fn gone(&mut self) {
        if std::mem::take(&mut self.is_held) {
            self.shared.feed.give_back(&self.query);
        }
    }

    fn begin(&mut self) -> usize {
        self.is_held = false;
        self.key = key(&self.query.sql);
        self.want = self.shared.answers.want(self.key);
        self.start_over();
        self.query.label
    }

    fn is_measured(&self) -> bool {
        self.query.turn >= self.shared.burn_in
    }

    fn retry(&mut self) {
        self.start_over();
    }

    fn resume(&mut self, frontend: &mut P::Frontend<'_>, statements: &mut Vec<u32>) -> Step {
        if self.is_sent {
            return Step::Done;
        }
        self.is_sent = true;
        statements.push(u32::try_from(self.query.label).unwrap_or(u32::MAX));
        match self.send(frontend) {
            Ok(()) => Step::Exchange { answers: 1 },
            Err(error) => Step::Failed(error.into()),
        }
    }

    fn message(&mut self, message: &Message<'_, P>) {
        match message {
            Message::Prepared => self.statements.parsed(self.key),
            Message::Columns(columns) => match self.want {
                Want::Digest => self.digester.describe(columns),
                Want::Rows => self.rows.describe(columns),
                Want::Count => {}
            },
            Message::Row(row) => {
                self.row_count += 1;
                match self.want {
                    Want::Digest if self.unreadable.is_none() => {
                        self.unreadable = self.digester.row(row).err();
                    }
                    Want::Rows => self.rows.row(row),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, failed: bool) -> Result<(), Failure> {
        if failed {
            self.statements.forget(self.key);
            self.forget_answer();
            return Ok(());
        }
        self.keep_answer()
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        if let End::Done { .. } = end {
            self.shared.rows[self.query.label].fetch_add(self.row_count, Ordering::Relaxed);
        }
        LoadCount::default()
    }

    fn reconnected(&mut self) {
        self.statements.clear();
        self.start_over();
    }
}
