//! Answers after the log-in.

use std::sync::Arc;

use super::behaviour::{message, put_tag};
use super::statement::{Statement, parameter_count};
use super::{Action, Copying, Fault, Flow, Responder};
use crate::postgres::{TransactionStatus, WireError};

/// What a query comes to.
enum Outcome {
    Done,
    Failed,
    Stop(Action),
}

impl Responder {
    pub(super) fn answer(
        &mut self,
        tag: u8,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Flow, WireError> {
        if self.copying.is_some() {
            self.answer_copy(tag, out);
            return Ok(Flow::Next);
        }
        match tag {
            b'X' => return Ok(Flow::Stop(Action::Close)),
            b'S' => {
                self.skip_to_sync = false;
                self.put_ready(out);
            }
            _ if self.skip_to_sync => {}
            b'Q' => return Ok(self.answer_query(text(body)?.0, out)),
            b'P' => self.answer_parse(body, out)?,
            b'B' => self.answer_bind(body, out)?,
            b'D' => self.answer_describe(body, out)?,
            b'E' => return Ok(self.answer_execute(out)),
            b'C' => self.answer_close(body, out)?,
            // Flush; and leftovers of a COPY that has failed.
            b'H' | b'd' | b'c' | b'f' => {}
            tag => {
                return Err(WireError::UnexpectedMessage {
                    tag,
                    state: "to the server",
                });
            }
        }
        Ok(Flow::Next)
    }

    fn answer_query(&mut self, sql: &[u8], out: &mut Vec<u8>) -> Flow {
        // One statement, as nearly all are, needs no list.
        let single = !sql.contains(&b';');
        let several = if single {
            Vec::new()
        } else {
            Statement::all_of(sql)
        };
        let one = [Statement::of(sql)];
        for statement in if single { &one[..] } else { &several } {
            match self.run(*statement, true, out) {
                Outcome::Done if self.copying.is_some() => return Flow::Next,
                Outcome::Done => {}
                Outcome::Failed => break,
                Outcome::Stop(action) => return Flow::Stop(action),
            }
        }
        self.put_ready(out);
        Flow::Next
    }

    fn answer_parse(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        let (name, rest) = text(body)?;
        let (sql, _) = text(rest)?;
        let known = self
            .statements
            .iter()
            .position(|(known, ..)| **known == *name);
        if known.is_some() && !name.is_empty() {
            self.fail_pipeline(out, *b"42P05", "prepared statement already exists");
            return Ok(());
        }
        let mut all = Statement::all_of(sql);
        if all.len() > 1 {
            let what = "cannot insert multiple commands into a prepared statement";
            self.fail_pipeline(out, *b"42601", what);
            return Ok(());
        }
        let prepared = Prepared {
            statement: all.remove(0),
            parameters: parameter_count(sql),
        };
        match known {
            Some(index) => self.statements[index].1 = prepared,
            None => self.statements.push((name.into(), prepared)),
        }
        out.extend_from_slice(b"1\0\0\0\x04");
        Ok(())
    }

    fn prepared(&self, name: &[u8]) -> Option<Prepared> {
        self.statements
            .iter()
            .find(|(known, _)| **known == *name)
            .map(|(_, prepared)| *prepared)
    }

    fn answer_bind(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        let (_portal, rest) = text(body)?;
        let (name, _) = text(rest)?;
        match self.prepared(name) {
            None => self.fail_pipeline(out, *b"26000", "prepared statement does not exist"),
            Some(prepared) => {
                self.portal = Some(prepared.statement);
                out.extend_from_slice(b"2\0\0\0\x04");
            }
        }
        Ok(())
    }

    fn answer_describe(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        let statement = if let [b'S', rest @ ..] = body {
            let prepared = self.prepared(text(rest)?.0);
            if let Some(prepared) = prepared {
                put_parameters(out, prepared.parameters);
            }
            prepared.map(|prepared| prepared.statement)
        } else {
            self.portal
        };
        match statement {
            None => self.fail_pipeline(out, *b"34000", "portal or statement does not exist"),
            Some(Statement::Rows) => out.extend_from_slice(&self.behaviour.reply.description),
            Some(_) => out.extend_from_slice(b"n\0\0\0\x04"),
        }
        Ok(())
    }

    fn answer_execute(&mut self, out: &mut Vec<u8>) -> Flow {
        let Some(statement) = self.portal else {
            self.fail_pipeline(out, *b"34000", "portal does not exist");
            return Flow::Next;
        };
        match self.run(statement, false, out) {
            Outcome::Done => Flow::Next,
            Outcome::Failed => {
                self.skip_to_sync = true;
                Flow::Next
            }
            Outcome::Stop(action) => Flow::Stop(action),
        }
    }

    fn answer_close(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        if let [b'S', rest @ ..] = body {
            let (name, _) = text(rest)?;
            self.statements.retain(|(known, _)| **known != *name);
        } else {
            self.portal = None;
        }
        out.extend_from_slice(b"3\0\0\0\x04");
        Ok(())
    }

    fn answer_copy(&mut self, tag: u8, out: &mut Vec<u8>) {
        match tag {
            b'c' => put_tag(out, "COPY 0"),
            b'f' => {
                self.put_error(out, *b"57014", "COPY from stdin failed");
                self.skip_to_sync = self.copying == Some(Copying::Extended);
            }
            // As in PostgreSQL, data, Flush and Sync are passed over while data is expected.
            _ => return,
        }
        if self.copying.take() == Some(Copying::Simple) {
            self.put_ready(out);
        }
    }

    /// Runs one statement; `simple` queries describe their rows unasked.
    #[inline]
    fn run(&mut self, statement: Statement, simple: bool, out: &mut Vec<u8>) -> Outcome {
        let before = out.len();
        if statement != Statement::Empty {
            self.queries += 1;
            if !self.behaviour.faults.is_empty()
                && let Some(outcome) = self.go_wrong(out)
            {
                return outcome;
            }
        }
        if self.status == TransactionStatus::Failed && !statement.ends_failure() {
            let what =
                "current transaction is aborted, commands ignored until end of transaction block";
            self.put_error(out, *b"25P02", what);
            return Outcome::Failed;
        }
        self.put_result(statement, simple, out);
        if self.fault_is_due(|fault| match fault {
            Fault::HalfMessageAfter { queries } => Some(*queries),
            _ => None,
        }) {
            out.truncate(before + (out.len() - before) / 2);
            return Outcome::Stop(Action::Close);
        }
        Outcome::Done
    }

    fn put_result(&mut self, statement: Statement, simple: bool, out: &mut Vec<u8>) {
        match statement {
            Statement::Empty => out.extend_from_slice(b"I\0\0\0\x04"),
            Statement::Begin => {
                self.status = TransactionStatus::InTransaction;
                out.extend_from_slice(b"C\0\0\0\x0aBEGIN\0");
            }
            Statement::Commit if self.status != TransactionStatus::Failed => {
                self.status = TransactionStatus::Idle;
                out.extend_from_slice(b"C\0\0\0\x0bCOMMIT\0");
            }
            Statement::Commit | Statement::Rollback => {
                self.status = TransactionStatus::Idle;
                put_tag(out, "ROLLBACK");
            }
            Statement::RollbackToSavepoint => {
                self.status = TransactionStatus::InTransaction;
                put_tag(out, "ROLLBACK");
            }
            Statement::CopyIn => {
                self.copying = Some(if simple {
                    Copying::Simple
                } else {
                    Copying::Extended
                });
                out.extend_from_slice(b"G\0\0\0\x07\0\0\0");
            }
            Statement::Rows => {
                let reply = &self.behaviour.reply;
                if simple && reply.has_rows {
                    out.extend_from_slice(&reply.description);
                }
                out.extend_from_slice(&reply.rows);
            }
            Statement::Tag(tag) => put_tag(out, tag),
        }
    }

    /// Faults that take the answer's place.
    fn go_wrong(&mut self, out: &mut Vec<u8>) -> Option<Outcome> {
        let behaviour = Arc::clone(&self.behaviour);
        let number = self.queries;
        let every = |n: u64| n > 0 && number.is_multiple_of(n);
        for fault in &behaviour.faults {
            match fault {
                Fault::CloseAfter { queries } if number > *queries => {
                    return Some(Outcome::Stop(Action::Close));
                }
                Fault::SilentAfter { queries } if number > *queries => {
                    return Some(Outcome::Stop(Action::Silent));
                }
                Fault::GarbageAfter { queries } if number > *queries => {
                    out.extend_from_slice(GARBAGE);
                    return Some(Outcome::Stop(Action::Continue));
                }
                Fault::ErrorEvery {
                    n,
                    sqlstate,
                    message,
                } if every(*n) => {
                    self.put_error(out, *sqlstate, message);
                    return Some(Outcome::Failed);
                }
                Fault::DelayEvery { n, ns } if every(*n) => {
                    self.delay_ns = self.delay_ns.saturating_add(*ns);
                }
                _ => {}
            }
        }
        None
    }

    fn fault_is_due(&self, queries: impl Fn(&Fault) -> Option<u64>) -> bool {
        self.behaviour
            .faults
            .iter()
            .filter_map(queries)
            .any(|queries| self.queries > queries)
    }

    fn fail_pipeline(&mut self, out: &mut Vec<u8>, sqlstate: [u8; 5], text: &str) {
        self.put_error(out, sqlstate, text);
        self.skip_to_sync = true;
    }

    fn put_error(&mut self, out: &mut Vec<u8>, sqlstate: [u8; 5], text: &str) {
        if self.status == TransactionStatus::InTransaction {
            self.status = TransactionStatus::Failed;
        }
        put_error(out, "ERROR", sqlstate, text);
    }

    fn put_ready(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.status {
            TransactionStatus::Idle => b"Z\0\0\0\x05I",
            TransactionStatus::InTransaction => b"Z\0\0\0\x05T",
            TransactionStatus::Failed => b"Z\0\0\0\x05E",
        });
    }
}

/// A prepared statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared {
    statement: Statement,
    parameters: u16,
}

/// A length that no message has.
pub(super) const GARBAGE: &[u8] = b"\xde\xad\xbe\xef\xff\xff\xff\xff garbage";

pub(super) fn put_error(out: &mut Vec<u8>, severity: &str, sqlstate: [u8; 5], text: &str) {
    message(out, b'E', |out| {
        let fields = [(b'S', severity.as_bytes()), (b'V', severity.as_bytes())];
        for (kind, value) in fields
            .into_iter()
            .chain([(b'C', &sqlstate[..]), (b'M', text.as_bytes())])
        {
            out.push(kind);
            out.extend_from_slice(value);
            out.push(0);
        }
        out.push(0);
    });
}

fn put_parameters(out: &mut Vec<u8>, count: u16) {
    const TEXT_OID: u32 = 25;
    message(out, b't', |out| {
        out.extend_from_slice(&count.to_be_bytes());
        for _ in 0..count {
            out.extend_from_slice(&TEXT_OID.to_be_bytes());
        }
    });
}

/// A NUL-terminated text and what follows it.
pub(super) fn text(body: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let end = body.iter().position(|byte| *byte == 0);
    let end = end.ok_or(WireError::Malformed {
        what: "frontend message",
        at: 5,
    })?;
    Ok((&body[..end], &body[end + 1..]))
}
