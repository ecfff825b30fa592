//! The specification, made ready: work, and times in nanoseconds.

use std::sync::Arc;

use loadstone_gen::random::SeedSequence;

use crate::clock::ns;
use crate::connect_pace::ConnectPace;
use crate::error::DriveError;
use crate::messages::Messages;
use crate::pace::Schedule;
use crate::protocol::{Failure, Protocol};
use crate::record::booking::Rules;
use crate::record::{Details, ErrorClass, Record};
use crate::spec::{DriveSpec, OnError};
use crate::workload::work::Work;
use crate::workload::{ClientSeeds, Labels};

/// What all workers share and none changes.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings of a drive"
)]
pub(crate) struct Config {
    /// Asked of each session before it works. Not of those that serve one transaction: it would be in their time.
    pub(crate) session_check: Option<String>,
    pub(crate) work: Work,
    pub(crate) labels: Labels,
    /// The work is a load: COPY is expected.
    pub(crate) is_load: bool,
    /// Programs ask for their connections when they need them.
    pub(crate) connects_late: bool,
    /// The percentile that every interval's row names.
    pub(crate) percentile: Option<f64>,
    pub(crate) interval_ns: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    /// How long transactions in flight may take after the deadline,
    pub(crate) drain_ns: u64,
    /// and after a request to stop.
    pub(crate) grace_ns: u64,
    pub(crate) latency_limit_ns: Option<u64>,
    pub(crate) transactions_per_client: Option<u64>,
    pub(crate) under_a_rate: bool,
    pub(crate) reconnect: bool,
    /// Longest pause before another attempt.
    pub(crate) reconnect_pause_ns: u64,
    pub(crate) connect_per_transaction: bool,
    /// How many clients there are, and over what time they begin.
    pub(crate) clients: usize,
    pub(crate) ramp_up_ns: u64,
    /// Connections are not begun faster.
    pub(crate) connect_pace: Option<ConnectPace>,
    /// Clients begin at a time that the owner sets.
    pub(crate) awaits_go: bool,
    pub(crate) on_error: OnError,
    pub(crate) tries_max: u32,
    /// The drive ends with the first client that gives up.
    pub(crate) exit_on_abort: bool,
    /// Where lines for the user go.
    pub(crate) messages: Option<Arc<Messages>>,
    /// Clients reach the database through a library.
    pub(crate) by_library: bool,
}

impl Config {
    /// Parse and check everything that can be known before connecting.
    pub(crate) fn new<P: Protocol>(spec: &DriveSpec) -> Result<Self, DriveError> {
        Ok(Self::with_work(spec, Work::new::<P>(spec)?))
    }

    /// The same where clients reach the database through a library.
    pub(crate) fn for_library(spec: &DriveSpec) -> Result<Self, DriveError> {
        if spec.connection.is_some() || spec.connect_per_transaction {
            return Err(DriveError::bad_spec(
                "a library connects by itself, and keeps its connections".to_owned(),
                "remove connection and connect_per_transaction",
            ));
        }
        if spec.connect_rate_per_s.is_some() || spec.ramp_up_s > 0.0 {
            return Err(DriveError::bad_spec(
                "clients of a library begin and connect together".to_owned(),
                "leave ramp_up_s and connect_rate_per_s out",
            ));
        }
        let work = Work::for_library(spec)?;
        Ok(Self {
            by_library: true,
            ..Self::with_work(spec, work)
        })
    }

    /// The same for work that is at hand.
    pub(crate) fn with_work(spec: &DriveSpec, work: Work) -> Self {
        let connection = spec.connection.as_ref();
        let timeout_ns = ns(spec.timeout_s);
        Self {
            session_check: (connection.and_then(|c| c.session_check.clone()))
                .filter(|_| !spec.connect_per_transaction),
            interval_ns: ns(spec.interval_s).max(1_000_000),
            timeout_ns,
            connect_timeout_ns: connection.map_or(0, |c| ns(c.connect_timeout_s)),
            drain_ns: spec.drain_s.map_or(timeout_ns, ns),
            grace_ns: timeout_ns.min(2_000_000_000),
            latency_limit_ns: spec.latency_limit_ms.map(|ms| ns(ms / 1e3)),
            transactions_per_client: spec.transactions_per_client,
            under_a_rate: spec.pace.rate_per_s().is_some(),
            reconnect: spec.reconnect,
            reconnect_pause_ns: ns(spec.reconnect_pause_s),
            connect_per_transaction: spec.connect_per_transaction,
            clients: spec.clients,
            ramp_up_ns: ns(spec.ramp_up_s),
            connect_pace: (spec.connect_rate_per_s)
                .map(|rate| ConnectPace::new(rate * share_of(spec))),
            awaits_go: spec.host.is_some(),
            connects_late: work.connects_late(),
            percentile: spec.lua.as_ref().and_then(|lua| lua.percentile),
            on_error: work.on_error().unwrap_or(spec.on_error),
            tries_max: spec.tries_max,
            exit_on_abort: spec.exit_on_abort || work.on_error().is_some(),
            messages: work.messages(),
            by_library: false,
            labels: work.labels(),
            is_load: work.is_load(),
            work,
        }
    }

    /// What decides how latencies count.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            under_a_rate: self.under_a_rate,
            latency_limit_ns: self.latency_limit_ns,
        }
    }

    /// A record with room for every script and statement.
    pub(crate) fn blank_record(&self) -> Record {
        let (scripts, statements) = (&self.labels.scripts, &self.labels.statements);
        let timed = statements.iter().map(Option::is_some);
        let mut record = Record::new(scripts.len(), timed, self.under_a_rate);
        if self.messages.as_ref().is_some_and(|t| t.spec.counts) {
            record.details = Some(Box::new(Details::new(
                scripts.len(),
                statements.len(),
                self.under_a_rate,
            )));
        }
        if self.connects_late {
            record.operations = Some(Box::default());
        }
        record
    }

    /// What to do when the first connections cannot be made.
    pub(crate) fn connect_hint(failure: &Failure) -> String {
        let hint = match failure.class {
            _ if !failure.hint.is_empty() => failure.hint,
            ErrorClass::Timeout => {
                "the server does not answer: check host and port, or raise the connect timeout"
            }
            _ => "check that the server is running and listens there",
        };
        hint.to_owned()
    }

    /// What is drawn for each client of a library, and the one schedule of them all.
    pub(crate) fn draws(spec: &DriveSpec) -> (Vec<ClientSeeds>, Schedule) {
        let (draws, mut seeds) = Self::draw(spec);
        (
            draws,
            Schedule::new(spec.pace_with_warmup(), 0, 1, seeds.next_prng()),
        )
    }

    /// What is drawn for each client; the rest of the seeds is for schedules.
    pub(crate) fn draw(spec: &DriveSpec) -> (Vec<ClientSeeds>, SeedSequence) {
        let mut seeds = SeedSequence::new(spec.seed);
        let streams: Vec<_> = (0..spec.clients).map(|_| seeds.next_prng()).collect();
        // pgbench's order: first the clients, then default_seed unless the user sets it, then the rest.
        let default_seed = match spec.variables.get("default_seed") {
            Some(_) => 0,
            None => seeds.default_seed(),
        };
        let choosers: Vec<_> = (0..spec.clients).map(|_| seeds.next_prng()).collect();
        let draws = streams
            .into_iter()
            .zip(choosers)
            .enumerate()
            // What a client draws depends on its number among all, not on the host that it runs on.
            .skip(spec.own_clients().start)
            .take(spec.own_clients().len())
            .map(|(client, (stream, chooser))| ClientSeeds {
                client,
                stream,
                chooser,
                default_seed,
            })
            .collect();
        (draws, seeds)
    }
}

/// The part of a rate that is one host's, where rates are not divided start by start.
#[expect(clippy::cast_precision_loss, reason = "numbers of clients")]
fn share_of(spec: &DriveSpec) -> f64 {
    spec.own_clients().len() as f64 / spec.clients.max(1) as f64
}
