//! The specification, made ready: work, resolved address, times in nanoseconds.

use std::sync::Arc;

use loadstone_gen::random::SeedSequence;
use loadstone_wire::postgres::{
    ChannelBinding, Password, RootCertificates, Settings, TlsFiles, TlsMode,
};

use crate::client::{Client, Phase};
use crate::endpoint::Endpoint;
use crate::error::DriveError;
use crate::pace::Schedule;
use crate::program::Failure;
use crate::record::booking::Rules;
use crate::record::{ErrorClass, Record};
use crate::spec::{Connection, DriveSpec, OnError};
use crate::work::{Draw, Labels, Work};

/// What all workers share and none changes.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent settings of a drive"
)]
pub(crate) struct Config {
    pub(crate) endpoint: Endpoint,
    pub(crate) settings: Arc<Settings>,
    /// Asked of each session before it works. Not of those that serve one transaction: it would be in their time.
    pub(crate) session_check: Option<String>,
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) work: Work,
    pub(crate) labels: Labels,
    /// The work is a load: COPY is expected.
    pub(crate) is_load: bool,
    pub(crate) interval_ns: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) connect_timeout_ns: u64,
    /// How long transactions under way may take after a request to stop.
    pub(crate) grace_ns: u64,
    pub(crate) latency_limit_ns: Option<u64>,
    pub(crate) transactions_per_client: Option<u64>,
    pub(crate) under_a_rate: bool,
    pub(crate) reconnect: bool,
    pub(crate) connect_per_transaction: bool,
    pub(crate) on_error: OnError,
    pub(crate) tries_max: u32,
    /// Clients reach the database through a library.
    pub(crate) by_library: bool,
}

/// Seconds to nanoseconds; the specification has been checked to be finite and not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is what an absurdly long time should do"
)]
pub(crate) fn ns(seconds: f64) -> u64 {
    // Ten years are for ever, and never overflow the clock when added to it.
    (seconds.min(3.2e8) * 1e9).round() as u64
}

impl Config {
    /// Parse, resolve and check everything that can be known before connecting.
    pub(crate) fn new(spec: &DriveSpec) -> Result<Self, DriveError> {
        Self::with_work(spec, Work::new(spec)?)
    }

    /// The same where clients reach the database through a library.
    pub(crate) fn for_library(spec: &DriveSpec) -> Result<Self, DriveError> {
        if spec.connection.is_some() || spec.connect_per_transaction {
            return Err(DriveError::bad_spec(
                "a library connects by itself, and keeps its connections".to_owned(),
                "leave connection and connect_per_transaction out",
            ));
        }
        let nowhere = serde_json::from_value(serde_json::json!(
            {"host": "/", "port": 0, "user": "", "database": ""}
        ));
        let there = DriveSpec {
            connection: nowhere.ok(),
            ..spec.clone()
        };
        let work = Work::for_library(spec)?;
        Ok(Self {
            by_library: true,
            ..Self::with_work(&there, work)?
        })
    }

    /// The same for work that is at hand.
    pub(crate) fn with_work(spec: &DriveSpec, work: Work) -> Result<Self, DriveError> {
        let connection = spec.connection.as_ref().ok_or_else(|| {
            let message = "it is not said where to connect".to_owned();
            DriveError::bad_spec(message, "give connection, or a library")
        })?;
        let endpoint = Endpoint::resolve(connection)?;
        let (settings, tls) = session_settings(connection, endpoint.unix)?;
        let timeout_ns = ns(spec.timeout_s);
        Ok(Self {
            settings: Arc::new(settings),
            session_check: (connection.session_check.clone())
                .filter(|_| !spec.connect_per_transaction),
            tls,
            endpoint,
            interval_ns: ns(spec.interval_s).max(1_000_000),
            timeout_ns,
            connect_timeout_ns: ns(connection.connect_timeout_s),
            grace_ns: timeout_ns.min(2_000_000_000),
            latency_limit_ns: spec.latency_limit_ms.map(|ms| ns(ms / 1e3)),
            transactions_per_client: spec.transactions_per_client,
            under_a_rate: spec.pace.rate_per_s().is_some(),
            reconnect: spec.reconnect,
            connect_per_transaction: spec.connect_per_transaction,
            on_error: spec.on_error,
            tries_max: spec.tries_max,
            by_library: false,
            labels: work.labels(),
            is_load: work.is_load(),
            work,
        })
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
        Record::new(
            self.labels.scripts.len(),
            self.labels.statements.iter().map(Option::is_some),
            self.under_a_rate,
        )
    }

    /// The time limit that applies in a phase.
    pub(crate) fn timeout_ns_of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Connecting | Phase::LoggingIn => self.connect_timeout_ns,
            _ => self.timeout_ns,
        }
    }

    /// What to do when the first connections cannot be made.
    pub(crate) fn connect_hint(failure: &Failure) -> String {
        let hint = match failure.class {
            _ if !failure.hint.is_empty() => failure.hint,
            ErrorClass::Timeout => {
                "the server does not answer: check host and port, or raise the connect timeout"
            }
            _ => "check that the server runs and listens there",
        };
        hint.to_owned()
    }

    /// All clients with their programs, in client order, and the schedules of the workers.
    ///
    /// Random streams belong to clients, not to threads: the same seed gives every client the same choices however
    /// many threads share the work.
    pub(crate) fn cast(&self, spec: &DriveSpec, threads: usize) -> (Vec<Client>, Vec<Schedule>) {
        let (draws, mut seeds) = Self::draw(spec);
        let clients = draws
            .iter()
            .map(|draw| Client::new(self.work.program(spec, draw), spec.transactions_per_client))
            .collect();
        let schedules = (0..threads as u64)
            .map(|worker| Schedule::new(spec.pace, worker, threads as u64, seeds.next_prng()))
            .collect();
        (clients, schedules)
    }

    /// What is drawn for each client of a library, and the one schedule of them all.
    pub(crate) fn draws(spec: &DriveSpec) -> (Vec<Draw>, Schedule) {
        let (draws, mut seeds) = Self::draw(spec);
        (draws, Schedule::new(spec.pace, 0, 1, seeds.next_prng()))
    }

    fn draw(spec: &DriveSpec) -> (Vec<Draw>, SeedSequence) {
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
            .map(|(client, (stream, chooser))| Draw {
                client,
                stream,
                chooser,
                default_seed,
            })
            .collect();
        (draws, seeds)
    }
}

type SessionSettings = (Settings, Option<Arc<rustls::ClientConfig>>);

fn session_settings(
    connection: &Connection,
    unix_socket: bool,
) -> Result<SessionSettings, DriveError> {
    let tls: TlsMode = connection.sslmode.parse().map_err(|_| {
        DriveError::bad_spec(
            format!("unknown sslmode {:?}", connection.sslmode),
            "use disable, allow, prefer, require, verify-ca or verify-full",
        )
    })?;
    let channel_binding: ChannelBinding = connection.channel_binding.parse().map_err(|_| {
        DriveError::bad_spec(
            format!("unknown channel_binding {:?}", connection.channel_binding),
            "use disable, prefer or require",
        )
    })?;
    let settings = Settings {
        user: connection.user.clone(),
        database: connection.database.clone(),
        password: connection
            .password
            .as_ref()
            .map(|p| Password::new(p.0.clone())),
        application_name: connection.application_name.clone(),
        parameters: connection.parameters.clone().into_iter().collect(),
        tls,
        channel_binding,
        host: connection.host.clone(),
        unix_socket,
    };
    let config = if unix_socket || tls == TlsMode::Disable {
        None
    } else {
        let files = TlsFiles {
            root: root_certificates(connection)?,
            client_certificate: read_pem("sslcert", connection.sslcert.as_deref())?,
            client_key: read_pem("sslkey", connection.sslkey.as_deref())?.map(Password::new),
        };
        Some(
            files
                .client_config(tls)
                .map_err(|e| DriveError::bad_spec(e.to_string(), ""))?,
        )
    };
    Ok((settings, config))
}

fn root_certificates(connection: &Connection) -> Result<Option<RootCertificates>, DriveError> {
    if connection.sslrootcert.as_deref() != Some("system") {
        let given = read_pem("sslrootcert", connection.sslrootcert.as_deref())?;
        return Ok(given.map(RootCertificates::Given));
    }
    let Some(file) = openssl_probe::probe().cert_file else {
        return Err(DriveError::bad_spec(
            "sslrootcert=system, and this system has no file of trusted authorities".to_owned(),
            "install the package ca-certificates, or name a file",
        ));
    };
    let text = read_pem("sslrootcert", file.to_str())?;
    Ok(text.map(RootCertificates::System))
}

fn read_pem(option: &str, path: Option<&str>) -> Result<Option<Vec<u8>>, DriveError> {
    let Some(path) = path else { return Ok(None) };
    std::fs::read(path).map(Some).map_err(|error| {
        DriveError::bad_spec(
            format!("{option}={path} cannot be read: {error}"),
            "name a readable PEM file",
        )
    })
}
