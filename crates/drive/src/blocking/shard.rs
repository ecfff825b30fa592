//! A record that some of the clients share: they book into it, and the watch ends its intervals.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use crate::collector::{Finish, Report};
use crate::config::Config;
use crate::record::booking::Begun;
use crate::record::{Record, WindowCounts};
use crate::timeline::Timeline;

pub(super) struct Shard {
    number: usize,
    config: Arc<Config>,
    timeline: Timeline,
    connected: usize,
    reports: Option<Sender<Report>>,
    record_pool: Receiver<Box<Record>>,
    pub(super) record: Box<Record>,
    interval: u64,
    /// The measured window has begun.
    pub(super) measuring: bool,
    totals: WindowCounts,
    /// Transactions in flight, with their clients.
    under_way: Vec<(usize, Begun)>,
}

impl Shard {
    pub(super) fn new(
        number: usize,
        config: Arc<Config>,
        timeline: Timeline,
        connected: usize,
        reports: Sender<Report>,
        record_pool: Receiver<Box<Record>>,
    ) -> Self {
        let record = Box::new(config.blank_record());
        Self {
            number,
            measuring: !timeline.is_warmup(0),
            config,
            timeline,
            connected,
            reports: Some(reports),
            record_pool,
            record,
            interval: 0,
            totals: WindowCounts::default(),
            under_way: Vec::with_capacity(connected),
        }
    }

    pub(super) fn begin(&mut self, place: usize, begun: Begun) {
        self.record.book_start(&begun, self.measuring);
        self.under_way.push((place, begun));
    }

    pub(super) fn end(&mut self, place: usize) {
        self.under_way.retain(|(other, _)| *other != place);
    }

    pub(super) fn lost(&mut self) {
        self.connected -= 1;
    }

    /// Hand over the records of the intervals that have ended.
    pub(super) fn roll(&mut self, now: u64) {
        while now >= self.timeline.end_ns(self.interval) {
            self.hand_over(self.timeline.end_ns(self.interval));
            self.interval += 1;
            if !self.measuring && !self.timeline.is_warmup(self.interval) {
                self.measuring = true;
                for (_, begun) in &self.under_way {
                    self.record.carry_over(begun);
                }
            }
        }
    }

    fn hand_over(&mut self, end_ns: u64) {
        self.totals.merge(&self.record.counts);
        assert_eq!(
            self.totals.under_way(),
            self.under_way.len() as u64,
            "counting equation against the transactions in flight"
        );
        let blank = self.record_pool.try_recv();
        let blank = blank.unwrap_or_else(|_| Box::new(self.config.blank_record()));
        let record = std::mem::replace(&mut self.record, blank);
        if let Some(reports) = &self.reports {
            // The collector outlives the clients; without it nobody wants the record.
            let _ = reports.send(Report::Interval {
                worker: self.number,
                index: self.interval,
                end_ns,
                connected: self.connected,
                record,
                sent: Vec::new(),
            });
        }
    }

    /// The last record, and the last word.
    pub(super) fn finish(&mut self, now: u64, finish: Finish) {
        self.roll(now);
        self.hand_over(now);
        self.report(finish);
    }

    /// The last word alone.
    pub(super) fn report(&mut self, finish: Finish) {
        if let Some(reports) = self.reports.take() {
            let _ = reports.send(Report::Finished(self.number, finish));
        }
    }
}
