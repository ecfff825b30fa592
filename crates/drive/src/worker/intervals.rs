//! Intervals: when one ends its record goes to the collector, and an empty one takes its place.

use super::Worker;
use crate::clock::CpuTime;
use crate::collector::Report;
use crate::io::Poller;
use crate::protocol::Protocol;

impl<P: Protocol, I: Poller> Worker<P, I> {
    /// Hand over the records of the intervals that have ended.
    pub(super) fn roll(&mut self, now: u64) {
        while now >= self.timeline.end_ns(self.interval) {
            self.hand_over(self.timeline.end_ns(self.interval));
            self.interval += 1;
            self.begin_interval();
        }
    }

    pub(super) fn begin_interval(&mut self) {
        if !self.measuring && !self.timeline.is_warmup(self.interval) {
            self.measuring = true;
            self.carry_over();
            self.cpu_at_measure = CpuTime::of_this_thread();
        }
    }

    /// The warm-up is over: what is running ends in the measured window, and is counted there.
    fn carry_over(&mut self) {
        let record = &mut *self.record;
        for transaction in self.clients.iter().map(|client| &client.transaction) {
            if transaction.active {
                record.carry_over(&transaction.begun());
            }
        }
    }

    pub(super) fn hand_over(&mut self, end_ns: u64) {
        self.totals.merge(&self.record.counts);
        if let Some(operations) = &mut self.record.operations {
            for client in &mut self.clients {
                client.program.take_operations(operations);
            }
        }
        if let Some(log) = &mut self.log {
            log.flush();
        }
        assert_eq!(
            self.totals.under_way(),
            self.active,
            "counting equation against the transactions in flight"
        );
        let blank = self
            .record_pool
            .try_recv()
            .unwrap_or_else(|_| Box::new(self.config.blank_record()));
        let full = std::mem::replace(&mut self.record, blank);
        // The collector outlives the workers; without it nobody wants the record.
        let _ = self.reports.send(Report::Interval {
            worker: self.number,
            index: self.interval,
            end_ns,
            connected: self.connected,
            record: full,
            sent: Vec::new(),
        });
    }
}
