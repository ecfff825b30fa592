//! What is asked of a script, as JSON gives it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::random::Settings;

/// A script, and the command of it that is to run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// Path, or name of a module; only a name where `source` is given.
    pub script: String,
    /// The text, where it is no file.
    #[serde(default)]
    pub source: Option<String>,
    /// Texts that stand in for files, by their paths: a host that runs the script may not have them.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// It has a function `done()`: the first of several hosts calls it when all others have ended.
    #[serde(default)]
    pub done: bool,
    /// Folders in which modules are looked for, or templates with a `?`.
    #[serde(default)]
    pub path: Vec<String>,
    /// `run`, or one of the script's commands; empty where none was given.
    #[serde(default = "run")]
    pub command: String,
    /// Values of all options, by name.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// The command line, from the program's name on.
    #[serde(default)]
    pub argv: Vec<String>,
    /// `pgsql` or `mysql`.
    #[serde(default = "pgsql")]
    pub driver: String,
    /// End after so many events of all clients; 0: no such end.
    #[serde(default)]
    pub events: u64,
    /// The percentile that reports name.
    #[serde(default)]
    pub percentile: Option<f64>,
    /// Of all random numbers.
    #[serde(default)]
    pub seed: u64,
    /// `auto`, or `disable`: values go into the text of prepared statements.
    #[serde(default = "auto")]
    pub ps_mode: String,
    /// Errors after which an event begins again: SQLSTATEs or a server's numbers, or `all`.
    #[serde(default)]
    pub ignore_errors: Option<Vec<Value>>,
    /// Rows of bulk inserts go as data where the table is the same, in commands other than `run`.
    #[serde(default)]
    pub bulk_copy: bool,
    /// The servers, which clients take in turns.
    #[serde(default)]
    pub servers: Vec<Server>,
    /// There is no server: every statement goes well, without a result.
    #[serde(default)]
    pub dry_run: bool,
    /// Seconds that clients have to get ready once `init()` is over; without it there is no limit.
    #[serde(default)]
    pub init_s: Option<f64>,
    /// Distributions of random numbers.
    #[serde(default)]
    pub rand: Settings,
}

/// What messages call a server.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its host.
    pub host: String,
    /// Where it is: "host 'h', port 1" or "socket '/s'".
    #[serde(default)]
    pub place: String,
}

fn run() -> String {
    "run".to_owned()
}
fn pgsql() -> String {
    "pgsql".to_owned()
}
fn auto() -> String {
    "auto".to_owned()
}

impl ScriptSpec {
    /// What is wrong with it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !matches!(self.driver.as_str(), "pgsql" | "mysql") {
            return Err(format!("driver is {:?}: use pgsql or mysql", self.driver));
        }
        if !matches!(self.ps_mode.as_str(), "auto" | "disable") {
            return Err(format!(
                "ps_mode is {:?}: use auto or disable",
                self.ps_mode
            ));
        }
        if let Some(limit_s) = self.init_s
            && !(limit_s > 0.0 && limit_s < 1e9)
        {
            return Err(format!(
                "init_s is {limit_s}: use a number of seconds above 0"
            ));
        }
        self.rand.check()
    }

    /// Which errors may be ignored.
    pub(crate) fn ignorable(&self) -> Ignorable {
        let words = |value: &Value| match value {
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        let codes: Vec<String> = match &self.ignore_errors {
            Some(given) => given.iter().map(words).collect(),
            None if self.driver == "mysql" => ["1213", "1020", "1205"].map(str::to_owned).into(),
            None => ["40P01", "40001", "23505"].map(str::to_owned).into(),
        };
        let all = codes.iter().any(|code| code == "all");
        Ignorable { codes, all }
    }

    /// Where modules are looked for, as `package.path`.
    pub(crate) fn package_path(&self) -> String {
        let template = |folder: &String| {
            if folder.contains('?') {
                folder.clone()
            } else {
                let folder = folder.trim_end_matches('/');
                format!("{folder}/?.lua;{folder}/?/init.lua")
            }
        };
        let own = self.path.iter().map(template);
        let default =
            "./?.lua;./?/init.lua;/usr/local/share/lua/5.1/?.lua;/usr/share/lua/5.1/?.lua";
        own.chain([default.to_owned()])
            .collect::<Vec<_>>()
            .join(";")
    }
}

/// Errors after which an event begins again.
#[derive(Debug)]
pub(crate) struct Ignorable {
    codes: Vec<String>,
    all: bool,
}

impl Ignorable {
    /// By SQLSTATE, or by the server's own number.
    pub(crate) fn has(&self, state: &str, number: u32) -> bool {
        let number = number.to_string();
        self.all
            || self
                .codes
                .iter()
                .any(|code| *code == state || *code == number)
    }
}
