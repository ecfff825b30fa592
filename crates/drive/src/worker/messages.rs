//! What a worker tells of its clients' failures, and what it writes into the log of transactions.

use std::fmt::Write as _;
use std::time::Duration;

use super::Worker;
use crate::collector::Outage;
use crate::io::{Poller, Slot};
use crate::journal::{Entry, Outcome};
use crate::messages::{Kind, Line};
use crate::protocol::{Failure, Protocol};
use crate::record::ErrorClass;
use crate::record::booking::Times;
use crate::workload::Place;

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// A client ends after an error.
    pub(super) fn log_end(&mut self, slot: Slot, failure: &Failure, place: Option<&Place>) {
        let Some(messages) = &self.config.messages else {
            return;
        };
        let lines = self.clients[slot as usize]
            .program
            .words(failure, place, true);
        for line in lines {
            messages.push(line);
        }
        let ends_run = self.config.exit_on_abort && !self.others_get_ready();
        if ends_run && !self.control.stop_asked() {
            let text = format!("Run was aborted due to an error in thread {}", self.number);
            messages.push(Line::new(Kind::Error, text));
            self.control.stop();
        }
    }

    /// An error after which the client goes on: with the same transaction (`repeats`) or the next.
    pub(super) fn log_passed(
        &mut self,
        slot: Slot,
        now: u64,
        failure: &Failure,
        place: Option<&Place>,
        repeats: bool,
    ) {
        let Some(messages) = self.config.messages.as_ref().filter(|t| t.spec.errors) else {
            return;
        };
        let client = &mut self.clients[slot as usize];
        let lines = client.program.words(failure, place, false);
        for line in lines {
            messages.push(line);
        }
        let (transaction, number) = (&client.transaction, client.number);
        let does = if repeats {
            "repeats the transaction after the error"
        } else {
            "ends the failed transaction"
        };
        let mut text = format!("client {number} {does} (try {}", transaction.tries);
        if self.config.tries_max < u32::MAX {
            let _ = write!(text, "/{}", self.config.tries_max);
        }
        if let Some(limit_ns) = self.config.latency_limit_ns {
            let used = percent(now.saturating_sub(transaction.intended_ns), limit_ns);
            let _ = write!(text, ", {used:.3}% of the maximum time of tries was used");
        }
        text.push(')');
        messages.push(Line::new(Kind::Note, text));
    }

    /// The first of some clients has lost its connection, and comes back.
    pub(super) fn log_outage(&self, slot: Slot, failure: &Failure) {
        if let Some(messages) = &self.config.messages {
            let number = self.clients[slot as usize].number;
            let why = failure.message.trim_end();
            let text = format!("client {number} lost its connection and connects again: {why}");
            messages.push(Line::new(Kind::Note, text));
        }
    }

    /// All of them are back.
    pub(super) fn log_return(&self, outage: &Outage) {
        let (Some(messages), Some(end_ns)) = (&self.config.messages, outage.end_ns) else {
            return;
        };
        let took = Duration::from_nanos(end_ns.saturating_sub(outage.start_ns));
        let clients = outage.clients;
        let text = format!(
            "all clients are connected again; up to {clients} were not, for {:.3} s",
            took.as_secs_f64()
        );
        messages.push(Line::new(Kind::Note, text));
    }

    /// A transaction has ended as it should.
    pub(super) fn log_done(&mut self, slot: Slot, times: Times) {
        let begun_ns = if self.config.under_a_rate {
            self.clients[slot as usize].transaction.intended_ns
        } else {
            times.started_ns
        };
        let latency_ns = times.ended_ns.saturating_sub(begun_ns);
        let lag_ns = times.started_ns.saturating_sub(begun_ns);
        self.log_entry(slot, times.ended_ns, Outcome::Done, latency_ns, lag_ns);
    }

    /// A transaction has failed, and its client goes on.
    pub(super) fn log_failed(&mut self, slot: Slot, now: u64, failure: &Failure) {
        let transaction = &self.clients[slot as usize].transaction;
        if let Some(details) = &mut self.record.details {
            let outcomes = &mut details.scripts[transaction.script];
            outcomes.fail(failure.class);
            outcomes.tried(transaction.tries);
        }
        if self.log.is_none() {
            return;
        }
        self.clients[slot as usize].ended += 1;
        let outcome = match failure.class {
            ErrorClass::Server(state) if &state == b"40001" => Outcome::Serialization,
            ErrorClass::Server(state) if &state == b"40P01" => Outcome::Deadlock,
            _ => Outcome::Other,
        };
        self.log_entry(slot, now, outcome, 0, 0);
        self.clients[slot as usize].ended -= 1; // counted when it is booked
    }

    /// A transaction was over its limit before it could begin.
    pub(super) fn log_skipped(&mut self, slot: Slot, now: u64) {
        self.clients[slot as usize].ended += 1;
        if self.log.is_some() {
            self.log_entry(slot, now, Outcome::Skipped, 0, 0);
        }
    }

    fn log_entry(&mut self, slot: Slot, end_ns: u64, outcome: Outcome, latency: u64, lag: u64) {
        let Some(log) = self.log.as_mut().filter(|_| self.measuring) else {
            return; // what ends in the warm-up is not counted
        };
        let client = &self.clients[slot as usize];
        let at_us = log.epoch_us(end_ns);
        log.add(Entry {
            client: client.number,
            number: client.ended,
            script: u32::try_from(client.transaction.script).unwrap_or(u32::MAX),
            outcome,
            latency_us: micros(latency),
            lag_us: micros(lag),
            end_us: at_us,
            retries: client.transaction.tries.saturating_sub(1),
        });
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a latency has fewer than 53 bits"
)]
fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more")]
fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}
