//! What the driver is asked to do: one JSON document, checked before anything is touched.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::error::DriveError;
use crate::pace::Pace;

/// Beyond this the schedule alone would keep a core busy.
const RATE_MAX_PER_S: f64 = 1e7;

/// Everything one drive phase needs. Times in seconds, rates per second over all clients.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Where to connect.
    pub connection: Connection,
    /// The mix of scripts.
    pub scripts: Vec<ScriptSpec>,
    /// `simple`, `extended` or `prepared`.
    pub mode: String,
    /// Connections kept open at once.
    pub clients: usize,
    /// Event-loop threads; chosen from the machine when absent.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Length of the measured window.
    #[serde(default)]
    pub duration_s: Option<f64>,
    /// Transactions of each client, instead of a duration.
    #[serde(default)]
    pub transactions_per_client: Option<u64>,
    /// Run before the measured window and left out of every figure.
    #[serde(default)]
    pub warmup_s: f64,
    /// When transactions start.
    #[serde(default = "closed")]
    pub pace: Pace,
    /// Transactions slower than this are counted late; under a rate, those already later are skipped.
    #[serde(default)]
    pub latency_limit_ms: Option<f64>,
    /// Longest wait for one answer, and for the last transactions at the end.
    #[serde(default = "sixty")]
    pub timeout_s: f64,
    /// Connect again, with back-off, after a connection is lost.
    #[serde(default)]
    pub reconnect: bool,
    /// A new connection for every transaction.
    #[serde(default)]
    pub connect_per_transaction: bool,
    /// What a client does after an error that a retry could not mend.
    #[serde(default)]
    pub on_error: OnError,
    /// Tries of a transaction that ends in a serialization failure or a deadlock.
    #[serde(default = "one")]
    pub tries_max: u32,
    /// Seed of every random choice.
    pub seed: u64,
    /// Variables of the scripts.
    #[serde(default)]
    pub variables: BTreeMap<String, Variable>,
    /// Length of an interval of the series.
    #[serde(default = "one_second")]
    pub interval_s: f64,
    /// Which interface of the kernel to use.
    #[serde(default)]
    pub io: IoChoice,
    /// Folder for series.jsonl, latency.hlog and drive.json; nothing is written when absent.
    #[serde(default)]
    pub out_dir: Option<PathBuf>,
}

/// One script of the mix.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// Name in messages and reports.
    pub name: String,
    /// The script itself.
    pub text: String,
    /// Share of the mix; zero leaves it out.
    #[serde(default = "one")]
    pub weight: u32,
}

/// A variable's value as JSON gives it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Variable {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// Anything else, taken as pgbench takes `-D name=value`.
    Text(String),
}

/// How to reach the server; the same meanings as libpq's parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Name, address, or folder of the unix socket (begins with `/`).
    pub host: String,
    /// TCP port, also part of the socket's name.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Never printed.
    #[serde(default)]
    pub password: Option<Secret>,
    /// `disable` … `verify-full`.
    #[serde(default = "prefer")]
    pub sslmode: String,
    /// PEM file of trusted roots, or `system`.
    #[serde(default)]
    pub sslrootcert: Option<String>,
    /// PEM file of the client's certificate.
    #[serde(default)]
    pub sslcert: Option<String>,
    /// PEM file of its key.
    #[serde(default)]
    pub sslkey: Option<String>,
    /// `disable`, `prefer` or `require`.
    #[serde(default = "prefer")]
    pub channel_binding: String,
    /// Longest time for one connection, log-in included.
    #[serde(default = "ten")]
    pub connect_timeout_s: f64,
    /// Shown in the server's views.
    #[serde(default = "application_name")]
    pub application_name: String,
    /// Further start-up parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

/// A password: never shown.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What a client does after an error.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Count it and go on with the next transaction.
    #[default]
    Continue,
    /// Stop this client, as pgbench does; serialization failures and deadlocks are counted and passed over.
    AbortClient,
}

/// Which interface of the kernel carries the bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoChoice {
    /// `io_uring`, or epoll where the kernel refuses it.
    #[default]
    Auto,
    /// `io_uring` or an error.
    IoUring,
    /// epoll.
    Epoll,
}

fn closed() -> Pace {
    Pace::Closed
}
fn sixty() -> f64 {
    60.0
}
fn ten() -> f64 {
    10.0
}
fn one() -> u32 {
    1
}
fn one_second() -> f64 {
    1.0
}
fn prefer() -> String {
    "prefer".to_owned()
}
fn application_name() -> String {
    "loadstone".to_owned()
}

impl DriveSpec {
    /// Read and check a document.
    ///
    /// # Errors
    /// [`DriveError::BadSpec`] with the field and the mend.
    pub fn from_json(text: &str) -> Result<Self, DriveError> {
        let spec: Self = serde_json::from_str(text).map_err(|e| {
            DriveError::bad_spec(format!("the drive's specification does not parse: {e}"), "")
        })?;
        spec.check()?;
        Ok(spec)
    }

    /// Threads to use: as asked, else one for every eight cores, never more than clients.
    #[must_use]
    pub fn threads_or(&self, cores: usize) -> usize {
        self.threads
            .unwrap_or_else(|| cores.div_ceil(8))
            .clamp(1, self.clients.max(1))
    }

    fn check(&self) -> Result<(), DriveError> {
        let positive = |name: &str, value: f64| {
            if value.is_finite() && value > 0.0 {
                Ok(())
            } else {
                Err(DriveError::bad_spec(
                    format!("{name} is {value}"),
                    "it must be a number above zero",
                ))
            }
        };
        if self.clients == 0 {
            return Err(DriveError::bad_spec(
                "clients is 0".into(),
                "at least one client is needed",
            ));
        }
        if self
            .scripts
            .iter()
            .map(|s| u64::from(s.weight))
            .sum::<u64>()
            == 0
        {
            return Err(DriveError::bad_spec(
                "no script has a weight above zero".into(),
                "give at least one script with a positive weight",
            ));
        }
        if self.duration_s.is_some() == self.transactions_per_client.is_some() {
            return Err(DriveError::bad_spec(
                "a drive ends after a duration or after a number of transactions".into(),
                "give exactly one of duration_s and transactions_per_client",
            ));
        }
        if self.transactions_per_client == Some(0) || self.tries_max == 0 {
            return Err(DriveError::bad_spec(
                "transactions_per_client and tries_max must be at least 1".into(),
                "",
            ));
        }
        self.duration_s
            .map_or(Ok(()), |s| positive("duration_s", s))?;
        self.pace
            .rate_per_s()
            .map_or(Ok(()), |r| positive("rate_per_s", r))?;
        if self.pace.rate_per_s().is_some_and(|r| r > RATE_MAX_PER_S) {
            return Err(DriveError::bad_spec(
                "rate_per_s is beyond ten million".into(),
                "no server takes that many: use the closed loop to find its limit",
            ));
        }
        self.latency_limit_ms
            .map_or(Ok(()), |l| positive("latency_limit_ms", l))?;
        positive("timeout_s", self.timeout_s)?;
        positive("interval_s", self.interval_s)?;
        positive("connect_timeout_s", self.connection.connect_timeout_s)?;
        if !(self.warmup_s.is_finite() && self.warmup_s >= 0.0) {
            return Err(DriveError::bad_spec(
                format!("warmup_s is {}", self.warmup_s),
                "use 0 or more",
            ));
        }
        if self.warmup_s > 0.0 && self.transactions_per_client.is_some() {
            return Err(DriveError::bad_spec(
                "a warm-up needs a duration".into(),
                "leave warmup_s out when the number of transactions is fixed",
            ));
        }
        Ok(())
    }
}
