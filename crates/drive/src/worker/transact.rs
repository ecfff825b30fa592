//! Transactions: begun when due, carried on by answers, ended and booked.

use std::cmp::Reverse;

use super::client::{Phase, Transaction};
use super::{Stage, Worker};
use crate::clock::now_ns;
use crate::io::{Poller, Slot};
use crate::protocol::{Failure, Frontend as _, Protocol, Session as _};
use crate::record::booking::{Times, Unstarted};
use crate::record::{ErrorClass, count_error};
use crate::spec::OnError;
use crate::workload::{End, Place, Readiness, Step};

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// Start transactions on idle clients: all of them in a closed loop, those that are due under a rate.
    pub(super) fn begin_due(&mut self, now: u64) {
        if now < self.timeline.start_ns {
            return;
        }
        (self.starved, self.ask_ns) = (0, u64::MAX);
        let open = self.may_begin(now);
        if self.config.under_a_rate {
            self.begin_scheduled(now, open);
        } else if open {
            for _ in 0..self.idle.len() {
                let Some(slot) = self.idle.pop_front() else {
                    break;
                };
                let client = &mut self.clients[slot as usize];
                if !client.has_left() {
                    continue;
                }
                match client.program.ready(now) {
                    Readiness::Ready => {
                        if let Err(ask_ns) = self.leave_to_connect(slot, now) {
                            self.idle.push_front(slot);
                            return self.wait_for_leave(ask_ns);
                        }
                        self.begin(slot, now, now);
                    }
                    unready => self.put_off(slot, unready),
                }
            }
        }
    }

    /// No idle client can begin before, for each needs a connection.
    fn wait_for_leave(&mut self, ask_ns: u64) {
        self.ask_ns = self.ask_ns.min(ask_ns);
        self.starved = self.idle.len();
    }

    /// A client's program cannot begin: ask it again later, or never.
    fn put_off(&mut self, slot: Slot, readiness: Readiness) {
        if readiness == Readiness::Ended {
            self.clients[slot as usize].left = Some(0);
            self.ended = true;
            return;
        }
        if let Readiness::At { ns } = readiness {
            self.ask_ns = self.ask_ns.min(ns);
        }
        self.starved += 1;
        self.idle.push_back(slot);
    }

    fn begin_scheduled(&mut self, now: u64, open: bool) {
        let start_ns = self.timeline.start_ns;
        let last_ns = self
            .timeline
            .deadline_ns
            .map_or(now, |deadline| now.min(deadline.saturating_sub(1)));
        let elapsed_ns = last_ns.saturating_sub(start_ns);
        if !open {
            return self.drop_unstarted(elapsed_ns);
        }
        while let Some(&slot) = self.idle.front() {
            if self.starved >= self.idle.len()
                || self.schedule.next_ns().is_none_or(|ns| ns > elapsed_ns)
            {
                return;
            }
            let client = &mut self.clients[slot as usize];
            if !client.has_left() {
                self.idle.pop_front();
                continue;
            }
            let readiness = client.program.ready(now);
            if readiness != Readiness::Ready {
                self.idle.pop_front();
                self.put_off(slot, readiness);
                continue;
            }
            if let Err(ask_ns) = self.leave_to_connect(slot, now) {
                return self.wait_for_leave(ask_ns);
            }
            let Some(offset_ns) = self.schedule.take(elapsed_ns) else {
                return;
            };
            let intended_ns = start_ns + offset_ns;
            if self
                .config
                .latency_limit_ns
                .is_some_and(|limit| now - intended_ns > limit)
            {
                self.book_unstarted(intended_ns, Unstarted::Skipped);
                self.log_skipped(slot, now);
                if let Some(left) = &mut self.clients[slot as usize].left {
                    *left -= 1;
                }
            } else {
                self.idle.pop_front();
                self.begin(slot, now, intended_ns);
            }
        }
    }

    /// Starts that were due and never came to pass are counted, not forgotten.
    fn drop_unstarted(&mut self, elapsed_ns: u64) {
        if self.timeline.deadline_ns.is_none() || self.config.transactions_per_client.is_some() {
            return;
        }
        while let Some(offset_ns) = self.schedule.take(elapsed_ns) {
            let intended_ns = self.timeline.start_ns + offset_ns;
            self.book_unstarted(intended_ns, Unstarted::Dropped);
        }
    }

    /// A start that has come due and never happens.
    fn book_unstarted(&mut self, intended_ns: u64, what: Unstarted) {
        let measured = intended_ns >= self.timeline.measure_ns;
        self.record.book_unstarted(what, measured, self.measuring);
    }

    fn begin(&mut self, slot: Slot, now: u64, intended_ns: u64) {
        let client = &mut self.clients[slot as usize];
        let started_ns = if client.program.minds_itself() {
            now_ns() // it may compute, or wait, before its first bytes; so may others have done in this turn
        } else {
            0
        };
        let script = client.program.begin();
        let burn_in = !client.program.is_measured();
        let measured = intended_ns >= self.timeline.measure_ns && !burn_in;
        if let Some(left) = &mut client.left {
            *left -= 1;
        }
        client.transaction = Transaction {
            intended_ns,
            started_ns,
            script,
            measured,
            burn_in,
            tries: 1,
            in_doubt: false,
            active: true,
        };
        if self.active == 0 && self.lost == 0 {
            self.control.stall.wake(self.rest_ns, intended_ns);
        }
        self.active += 1;
        let begun = client.transaction.begun();
        self.record.book_start(&begun, self.measuring);
        if client.session.is_some() || self.config.connects_late {
            self.advance(slot, now);
        } else {
            client.connect_ns = now;
            self.waiting.push_back(slot);
        }
    }

    /// Let the program go on until it must wait.
    pub(super) fn advance(&mut self, slot: Slot, now: u64) {
        loop {
            let client = &mut self.clients[slot as usize];
            let step = match &mut client.session {
                Some(session) => client
                    .program
                    .resume(&mut session.frontend(), &mut client.exchange.statements),
                None if self.config.connects_late => client.program.resume_unconnected(),
                None => return,
            };
            match step {
                Step::Exchange { answers } => {
                    client.exchange.answers = answers;
                    client.exchange.ended = 0;
                    client.exchange.failure = None;
                    client.exchange.results = 0;
                    client.exchange.sent_ns = 0;
                    client.phase = Phase::Exchanging;
                    client.until_ns = now + self.config.timeout_ns;
                    return self.dirty.push(slot);
                }
                Step::Sleep { ns: 0 } => {}
                Step::Yield => {
                    client.phase = Phase::Sleeping;
                    client.until_ns = now + 1; // the next turn
                    return self.timers.push(Reverse((client.until_ns, slot)));
                }
                Step::Sleep { ns } => {
                    if client.transaction.started_ns == 0 {
                        client.transaction.started_ns = now;
                    }
                    // Its own computing since the turn began is no part of its sleep.
                    let minds_itself = client.program.minds_itself();
                    let asleep_ns = if minds_itself { now_ns() } else { now };
                    client.phase = Phase::Sleeping;
                    client.until_ns = asleep_ns.saturating_add(ns);
                    return self.timers.push(Reverse((client.until_ns, slot)));
                }
                Step::Connect => return self.connect_for(slot, now),
                Step::Disconnect => self.disconnect_for(slot),
                Step::Reconnect => return self.reconnect_for(slot, now),
                Step::Switch { to } => self.switch_for(slot, to, now),
                Step::Leave => return self.end_left(slot, now),
                // Its own computing since the last answer is part of the transaction.
                Step::Done if client.program.minds_itself() => {
                    return self.end_done(slot, now_ns());
                }
                Step::Done
                    if client.exchange.in_transaction
                        && self.config.on_error != OnError::Continue =>
                {
                    return self.end_open(slot, now);
                }
                Step::Done if client.exchange.in_transaction => {
                    let failure =
                        Failure::script("the script ends inside a transaction: add COMMIT or END");
                    return self.fail(slot, now, failure);
                }
                Step::Done => return self.end_done(slot, now),
                Step::Failed(failure) => return self.fail_in_script(slot, now, failure),
                Step::CutOff => return self.cut_off_late(slot),
            }
        }
    }

    /// An exchange is complete.
    pub(super) fn answered(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let failure = client.exchange.failure.take();
        let rolling_back = client.phase == Phase::RollingBack;
        client.phase = Phase::Idle;
        if rolling_back {
            if let Some(original) = client.rolled_back.take() {
                self.settle(slot, now, &original);
            }
            return;
        }
        if let ([statement], None) = (client.exchange.statements.as_slice(), &failure)
            && client.transaction.measured == self.measuring
        {
            let latency_ns = now.saturating_sub(client.exchange.sent_ns);
            self.record.statements[*statement as usize]
                .0
                .record(latency_ns);
        }
        client.exchange.statements.clear();
        let is_minded = client.program.minds_itself();
        match (client.program.answered(failure.is_some()), failure) {
            (Ok(()), Some(_)) if is_minded => self.advance(slot, now),
            (_, Some(failure)) | (Err(failure), None) => self.fail(slot, now, failure),
            (Ok(()), None) => self.advance(slot, now),
        }
    }

    /// The program itself failed: what it has appended and not concluded must not be carried out.
    fn fail_in_script(&mut self, slot: Slot, now: u64, failure: Failure) {
        let client = &mut self.clients[slot as usize];
        let pending = client
            .session
            .as_mut()
            .map(|s| s.pending().map(<[u8]>::len));
        if !client.exchange.statements.is_empty() || !matches!(pending, Some(Ok(0)) | None) {
            return self.drop_connection(slot, now, &failure);
        }
        self.fail(slot, now, failure);
    }

    /// A transaction failed on a connection that is whole: leave the server's transaction first.
    fn fail(&mut self, slot: Slot, now: u64, failure: Failure) {
        let client = &mut self.clients[slot as usize];
        client.exchange.statements.clear();
        let _ = client.program.answered(true);
        if !client.exchange.in_transaction {
            return self.settle(slot, now, &failure);
        }
        let Some(session) = &mut client.session else {
            return;
        };
        if session.frontend().query(b"ROLLBACK").is_err() {
            return self.lose(slot, now, failure);
        }
        client.rolled_back = Some(failure);
        client.exchange.answers = 1;
        client.exchange.sent_ns = 0;
        client.phase = Phase::RollingBack;
        client.until_ns = now + self.config.timeout_ns;
        self.dirty.push(slot);
    }

    /// Try again, or count the failure.
    fn settle(&mut self, slot: Slot, now: u64, failure: &Failure) {
        let place = self.clients[slot as usize].exchange.place.take();
        if self.may_repeat(slot, now, failure) {
            return self.repeat(slot, now, failure, place.as_deref());
        }
        let aborts = !failure.is_retriable
            && match self.config.on_error {
                OnError::Continue => false,
                OnError::AbortClient => true,
                OnError::AbortUnlessServer => !matches!(failure.class, ErrorClass::Server(_)),
            };
        if !aborts {
            self.log_passed(slot, now, failure, place.as_deref(), false);
            self.log_failed(slot, now, failure);
        }
        self.end_failed(slot, now, failure);
        if aborts {
            self.abort(slot, now, failure, place.as_deref());
        }
    }

    /// The same transaction may succeed, and there is still time to find out.
    fn may_repeat(&self, slot: Slot, now: u64, failure: &Failure) -> bool {
        let transaction = &self.clients[slot as usize].transaction;
        // As pgbench: what is over the latency limit already is not tried again, nor anything after the end.
        let limit_ns = self.config.latency_limit_ns.unwrap_or(u64::MAX);
        let in_time = now.saturating_sub(transaction.intended_ns) <= limit_ns
            && (self.config.messages.is_none() || self.may_begin(now));
        failure.is_retriable
            && transaction.tries < self.config.tries_max
            && in_time
            && self.stage != Stage::Stopping
    }

    fn repeat(&mut self, slot: Slot, now: u64, failure: &Failure, place: Option<&Place>) {
        self.log_passed(slot, now, failure, place, true);
        let client = &mut self.clients[slot as usize];
        if client.transaction.measured {
            self.record.retries += 1;
            self.record.retried += u64::from(client.transaction.tries == 1);
        }
        if let (Some(details), Some(statement)) = (
            &mut self.record.details,
            place.and_then(|place| place.statement),
        ) {
            details.repeated[statement as usize] += 1;
        }
        client.transaction.tries += 1;
        client.program.retry();
        self.advance(slot, now);
    }

    /// The script is over, and its transaction is not: what was done counts, and the client ends.
    fn end_open(&mut self, slot: Slot, now: u64) {
        let failure =
            Failure::script("end of script reached without completing the last transaction");
        self.end_done(slot, now);
        self.count(&failure, now);
        self.abort(slot, now, &failure, None);
    }

    /// A client ends after an error, and says so.
    fn abort(&mut self, slot: Slot, now: u64, failure: &Failure, place: Option<&Place>) {
        let client = &self.clients[slot as usize];
        if client.phase == Phase::Gone {
            return;
        }
        self.idle.retain(|&idle| idle != slot);
        self.connected -= usize::from(client.session.is_some());
        self.say_goodbye(slot);
        self.log_end(slot, failure, place);
        self.give_up(slot, now, failure);
    }

    /// Count an error that ended no transaction.
    pub(super) fn count(&mut self, failure: &Failure, now: u64) {
        count_error(&mut self.record.errors, failure.class, now, || {
            failure.message.clone()
        });
    }

    /// A transaction ended in an error.
    pub(super) fn end_failed(&mut self, slot: Slot, now: u64, failure: &Failure) {
        self.count(failure, now);
        let client = &mut self.clients[slot as usize];
        let transaction = client.transaction;
        client.program.ended(&End::Failed {
            failure,
            in_doubt: transaction.in_doubt,
        });
        client.ended += 1;
        if let Some(details) = &mut self.record.details {
            client
                .program
                .take_times(&mut |flat, ns| details.time(flat, ns));
        }
        self.record
            .book_failed(&transaction.begun(), self.measuring);
        self.release(slot);
        self.note_rest(now);
    }

    pub(super) fn end_done(&mut self, slot: Slot, now: u64) {
        let client = &mut self.clients[slot as usize];
        let transaction = client.transaction;
        let gain = client.program.ended(&End::Done {
            sent_ns: transaction.started_ns,
            acked_ns: now,
        });
        if self.stage != Stage::Connecting {
            // What comes before the common start ends no stall: there is no window yet.
            self.control.stall.done(now, self.timeline.measure_ns);
        }
        let record = &mut *self.record;
        record.rows += gain.rows;
        record.metrics += gain.metrics;
        let started_ns = match transaction.started_ns {
            0 => now,
            started_ns => started_ns,
        };
        let times = Times {
            started_ns,
            ended_ns: now,
        };
        let rules = self.config.rules();
        record.book_done(&transaction.begun(), times, self.measuring, rules);
        if let Some(details) = &mut record.details {
            details.scripts[transaction.script].tried(transaction.tries);
            self.clients[slot as usize]
                .program
                .take_times(&mut |flat, ns| details.time(flat, ns));
        }
        self.clients[slot as usize].ended += 1;
        if self.log.is_some() {
            self.log_done(slot, times);
        }
        self.release(slot);
        self.note_rest(now);
    }

    /// From now on nothing is wanted, unless something is.
    pub(super) fn note_rest(&mut self, now: u64) {
        if self.active == 0 && self.lost == 0 {
            self.rest_ns = now;
        }
    }

    /// The client is free for its next transaction.
    pub(super) fn release(&mut self, slot: Slot) {
        self.active -= 1;
        let client = &mut self.clients[slot as usize];
        client.transaction.active = false;
        if client.session.is_none() && !self.config.connects_late {
            return; // lost: it comes back, or not, by `come_back`
        }
        if self.config.connect_per_transaction {
            self.say_goodbye(slot);
            self.connected -= 1;
        }
        let client = &mut self.clients[slot as usize];
        client.phase = if client.session.is_some() {
            Phase::Idle
        } else {
            Phase::Vacant
        };
        self.idle.push_back(slot);
    }
}
