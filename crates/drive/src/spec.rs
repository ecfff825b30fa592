//! What the driver is asked to do: one JSON document, checked before anything is touched.

pub(crate) mod load;
pub(crate) mod queries;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

pub use loadstone_lua::ScriptSpec as LuaSpec;

pub use self::load::LoadSpec;
pub use self::queries::QueriesSpec;
use crate::error::DriveError;
use crate::journal::LogSpec;
pub use crate::ledger::LedgerSpec;
use crate::messages::MessageSpec;
use crate::pace::Pace;
use crate::share::Share;

/// Beyond this the schedule alone would keep a core busy.
const RATE_MAX_PER_S: f64 = 1e7;

/// Everything one drive phase needs. Times in seconds, rates per second over all clients.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// Where to connect; absent where a library does.
    #[serde(default)]
    pub connection: Option<Connection>,
    /// The work, in one of four ways: a mix of scripts,
    #[serde(default)]
    pub scripts: Option<Vec<ScriptSpec>>,
    /// rows into tables,
    #[serde(default)]
    pub load: Option<LoadSpec>,
    /// queries that were drawn beforehand,
    #[serde(default)]
    pub queries: Option<QueriesSpec>,
    /// or a script in Lua.
    #[serde(default)]
    pub lua: Option<LuaSpec>,
    /// `simple`, `extended` or `prepared`; scripts only.
    #[serde(default = "prepared")]
    pub mode: String,
    /// Connections kept open at once.
    pub clients: usize,
    /// Event-loop threads; chosen from the machine when absent.
    #[serde(default)]
    pub threads: Option<usize>,
    /// Cores from which that is chosen, instead of this machine's: those of the smallest of several hosts.
    #[serde(default)]
    pub cores: Option<usize>,
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
    /// Clients begin one after the other, evenly over this time from the start.
    #[serde(default)]
    pub ramp_up_s: f64,
    /// Most connections that are begun in a second, over all clients and at any time.
    #[serde(default)]
    pub connect_rate_per_s: Option<f64>,
    /// Transactions slower than this are counted late; under a rate, those already later are skipped.
    #[serde(default)]
    pub latency_limit_ms: Option<f64>,
    /// Longest wait for one answer, and for the last transactions at the end.
    #[serde(default = "sixty")]
    pub timeout_s: f64,
    /// Another longest wait for the last transactions.
    #[serde(default)]
    pub drain_s: Option<f64>,
    /// Connect again, with back-off, after a connection is lost.
    #[serde(default)]
    pub reconnect: bool,
    /// The pause between two attempts grows up to this.
    #[serde(default = "two")]
    pub reconnect_pause_s: f64,
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
    /// Folder for series.jsonl and latency.hlog; nothing is written when absent.
    #[serde(default)]
    pub out_dir: Option<PathBuf>,
    /// Tell line by line what happens to clients, and do with scripts what their own tool does; scripts only.
    #[serde(default)]
    pub messages: Option<MessageSpec>,
    /// A log of transactions.
    #[serde(default)]
    pub log: Option<LogSpec>,
    /// Book every commit at the client, and a row for it in the server; scripts only.
    #[serde(default)]
    pub ledger: Option<LedgerSpec>,
    /// The run ends with the first client that gives up.
    #[serde(default)]
    pub exit_on_abort: bool,
    /// The part of one of several hosts. It waits for the word to begin, and leaves records to be merged.
    #[serde(default)]
    pub host: Option<Share>,
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

/// The protocol that a server speaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireProtocol {
    /// PostgreSQL's, and that of its family.
    #[default]
    Postgres,
    /// MySQL's, and MariaDB's.
    Mysql,
}

/// How to reach the server; the same meanings as libpq's parameters.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// What the server speaks.
    #[serde(default)]
    pub protocol: WireProtocol,
    /// Name, address, or folder of the unix socket (begins with `/`); for `mysql` also the socket itself.
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
    /// Further start-up parameters; for `mysql` variables of the session.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// A query that each session is asked after its log-in. It gives no row where the session is the one that
    /// was requested, else what is wrong with it and how to mend that.
    #[serde(default)]
    pub session_check: Option<String>,
    /// Host and port of servers that clients take in turns with this one, by their numbers.
    #[serde(default)]
    pub also: Vec<(String, u16)>,
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
    /// Count it and continue with the next transaction.
    #[default]
    Continue,
    /// Stop this client, as pgbench does; serialization failures and deadlocks are counted and passed over.
    AbortClient,
    /// The same, but every error that the server reports is counted and passed over.
    AbortUnlessServer,
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

fn prepared() -> String {
    "prepared".to_owned()
}
fn closed() -> Pace {
    Pace::Closed
}
fn sixty() -> f64 {
    60.0
}
fn two() -> f64 {
    2.0
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

    /// Where to connect.
    pub(crate) fn connected(&self) -> Result<&Connection, DriveError> {
        self.connection.as_ref().ok_or_else(|| {
            let message = "neither a connection nor a library is set".to_owned();
            DriveError::bad_spec(message, "set connection, or a library")
        })
    }

    /// Threads to use: as asked, else one for every eight cores, never more than clients. `cores` are this machine's.
    #[must_use]
    pub fn threads_or(&self, cores: usize) -> usize {
        // The same number on every host: schedules belong to threads.
        let fewest = self.clients / usize::try_from(self.share().of).unwrap_or(1);
        self.threads
            .unwrap_or_else(|| self.cores.unwrap_or(cores).div_ceil(8))
            .clamp(1, fewest.max(1))
    }

    /// Which part of the drive is this host's.
    pub(crate) fn share(&self) -> Share {
        self.host.unwrap_or(Share::WHOLE)
    }

    /// The numbers of this host's clients among all.
    pub(crate) fn own_clients(&self) -> std::ops::Range<usize> {
        self.share().segment(self.clients)
    }

    pub(crate) fn check(&self) -> Result<(), DriveError> {
        let refuse =
            |message: &str, hint: &str| Err(DriveError::bad_spec(message.to_owned(), hint));
        if self.clients == 0 {
            return refuse("clients is 0", "at least one client is needed");
        }
        self.check_work()?;
        self.check_host()?;
        let (timed, counted) = (
            self.duration_s.is_some(),
            self.transactions_per_client.is_some(),
        );
        // Rows and queries come to an end by themselves.
        if (timed && counted) || (!timed && !counted && self.scripts.is_some()) {
            return refuse(
                "a drive ends after a duration or after a number of transactions",
                "set exactly one of duration_s and transactions_per_client",
            );
        }
        if self.transactions_per_client == Some(0) || self.tries_max == 0 {
            let message = "transactions_per_client or tries_max is 0";
            return refuse(message, "both must be at least 1");
        }
        if self.warmup_s > 0.0 && self.transactions_per_client.is_some() {
            return refuse(
                "a warm-up needs a duration",
                "remove warmup_s when the number of transactions is fixed",
            );
        }
        self.check_numbers()
    }

    fn check_work(&self) -> Result<(), DriveError> {
        let kinds = [
            self.scripts.is_some(),
            self.load.is_some(),
            self.queries.is_some(),
            self.lua.is_some(),
        ];
        if kinds.into_iter().filter(|&kind| kind).count() != 1 {
            return Err(DriveError::bad_spec(
                "a drive has one workload".to_owned(),
                "set exactly one of scripts, load, queries and lua",
            ));
        }
        if self.lua.is_some() && (self.connect_per_transaction || self.tries_max > 1) {
            return Err(DriveError::bad_spec(
                "a script in Lua connects and tries again by itself".to_owned(),
                "remove connect_per_transaction and tries_max",
            ));
        }
        if self.ledger.is_some() && (self.scripts.is_none() || self.messages.is_some()) {
            return Err(DriveError::bad_spec(
                "a ledger books the commits of scripts, as Loadstone runs them".to_owned(),
                "remove ledger, or messages",
            ));
        }
        if self.load.is_some() && (self.connect_per_transaction || self.latency_limit_ms.is_some())
        {
            return Err(DriveError::bad_spec(
                "a load keeps its connections and skips no batch".to_owned(),
                "remove connect_per_transaction and latency_limit_ms",
            ));
        }
        let long = self
            .load
            .as_ref()
            .is_some_and(|load| load.transaction.is_some());
        if long && self.tries_max > 1 {
            return Err(DriveError::bad_spec(
                "a long transaction is not tried again, because its rows are not kept".to_owned(),
                "remove tries_max",
            ));
        }
        let weights = self.scripts.iter().flatten().map(|s| u64::from(s.weight));
        if self.scripts.is_some() && weights.sum::<u64>() == 0 {
            return Err(DriveError::bad_spec(
                "no script has a weight above zero".to_owned(),
                "set at least one script with a positive weight",
            ));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), DriveError> {
        let rate_per_s = self.pace.rate_per_s();
        let positive = [
            ("duration_s", self.duration_s),
            ("rate_per_s", rate_per_s),
            ("connect_rate_per_s", self.connect_rate_per_s),
            ("latency_limit_ms", self.latency_limit_ms),
            ("timeout_s", Some(self.timeout_s)),
            ("interval_s", Some(self.interval_s)),
            ("reconnect_pause_s", Some(self.reconnect_pause_s)),
            (
                "connect_timeout_s",
                self.connection.as_ref().map(|c| c.connect_timeout_s),
            ),
        ];
        for (name, value) in positive {
            if let Some(value) = value.filter(|v| !v.is_finite() || *v <= 0.0) {
                let message = format!("{name} is {value}");
                return Err(DriveError::bad_spec(
                    message,
                    "it must be a number above zero",
                ));
            }
        }
        if !self.warmup_s.is_finite() || self.warmup_s < 0.0 {
            let message = format!("warmup_s is {}", self.warmup_s);
            return Err(DriveError::bad_spec(message, "use 0 or more"));
        }
        if let Pace::Varying { pieces } = &self.pace {
            crate::pace::profile::check(pieces)?;
        }
        self.check_ramp()?;
        if rate_per_s.is_some_and(|rate| rate > RATE_MAX_PER_S) {
            return Err(DriveError::bad_spec(
                "rate_per_s is above ten million".to_owned(),
                "no server reaches that rate: use the closed loop to find its limit",
            ));
        }
        Ok(())
    }
}

impl DriveSpec {
    /// When transactions start, from the begin of the warm-up on.
    pub(crate) fn pace_with_warmup(&self) -> Pace {
        self.pace.after(self.warmup_s)
    }

    fn check_host(&self) -> Result<(), DriveError> {
        let refuse = |message: String, hint: &str| Err(DriveError::bad_spec(message, hint));
        let Some(Share { number, of }) = self.host else {
            return Ok(());
        };
        if number >= of {
            return refuse(format!("host {number} of {of}"), "count hosts from 0");
        }
        if (self.clients as u64) < of {
            let message = format!("{} clients for {of} hosts", self.clients);
            return refuse(message, "use at least as many clients as hosts");
        }
        if self.log.is_some() || self.ledger.is_some() {
            let message = "several hosts write no log and no ledger";
            return refuse(message.to_owned(), "run this from one host");
        }
        let (probes, runs) = (
            self.queries.as_ref().is_some_and(|q| q.probe.is_some()),
            self.lua.as_ref().is_none_or(|lua| lua.command == "run"),
        );
        if self.connection.is_none() || probes || !runs {
            let message = "several hosts need a server, and share neither a probe nor a command";
            return refuse(message.to_owned(), "run this from one host");
        }
        self.load.as_ref().map_or(Ok(()), LoadSpec::check_shared)
    }

    fn check_ramp(&self) -> Result<(), DriveError> {
        let refuse = |message: String, hint: &str| Err(DriveError::bad_spec(message, hint));
        if !self.ramp_up_s.is_finite() || self.ramp_up_s < 0.0 {
            return refuse(format!("ramp_up_s is {}", self.ramp_up_s), "use 0 or more");
        }
        let lasts_s = self.duration_s.map(|duration_s| self.warmup_s + duration_s);
        if lasts_s.is_some_and(|lasts_s| self.ramp_up_s >= lasts_s && self.ramp_up_s > 0.0) {
            let message = format!("ramp_up_s is {}, as long as the drive", self.ramp_up_s);
            return refuse(message, "let all clients begin before the end");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
