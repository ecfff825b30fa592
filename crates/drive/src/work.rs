//! What a drive is to do: scripts, a load, or queries. Behind this enum the worker knows only programs.

pub(crate) mod scripts;

use loadstone_gen::random::Prng;
use loadstone_script::QueryMode;
use serde_json::{Map, Value, json};

use self::scripts::ScriptWork;
use crate::blocking::BlockingProgram;
use crate::error::DriveError;
use crate::load::LoadWork;
use crate::program::Program;
use crate::program::queries::QueryWork;
use crate::protocol::Protocol;
use crate::record::{Record, ScriptRecord};
use crate::spec::DriveSpec;

/// The work of a drive, made ready and shared by all its clients.
#[derive(Debug)]
pub(crate) enum Work {
    /// pgbench's scripts.
    Scripts(ScriptWork),
    /// Rows into tables.
    Load(LoadWork),
    /// Queries that were drawn beforehand.
    Queries(QueryWork),
}

/// What transactions and statements are called in the account and in latency.hlog.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    /// Kinds of transactions, by the number that [`Program::begin`] returns.
    pub(crate) scripts: Vec<ScriptLabel>,
    /// Statements, by the number that [`Program::resume`] gives; none for a number that is no statement.
    pub(crate) statements: Vec<Option<StatementLabel>>,
}

/// One kind of transaction.
#[derive(Debug, Clone)]
pub(crate) struct ScriptLabel {
    pub(crate) name: String,
    pub(crate) weight: u32,
}

/// One statement.
#[derive(Debug, Clone)]
pub(crate) struct StatementLabel {
    /// Number of the kind of transaction that it belongs to.
    pub(crate) script: usize,
    /// Its number there.
    pub(crate) index: usize,
    /// Where it stands in the script; none where there is no text.
    pub(crate) line: Option<u32>,
    pub(crate) text: String,
}

/// What is drawn for each client, whatever its work.
pub(crate) struct Draw {
    /// Number of the client.
    pub(crate) client: usize,
    /// Its random choices.
    pub(crate) stream: Prng,
    /// Its choices among scripts.
    pub(crate) chooser: Prng,
    /// pgbench's variable.
    pub(crate) default_seed: i64,
}

impl Labels {
    /// Kinds of transactions that have one statement each.
    pub(crate) fn plain(labels: &[String]) -> Self {
        let statement = |(script, label): (usize, &String)| {
            Some(StatementLabel {
                script,
                index: 0,
                line: None,
                text: label.clone(),
            })
        };
        let script = |label: &String| ScriptLabel {
            name: label.clone(),
            weight: 1,
        };
        Self {
            scripts: labels.iter().map(script).collect(),
            statements: labels.iter().enumerate().map(statement).collect(),
        }
    }

    /// What the account says of each kind of query.
    pub(crate) fn accounts(&self, totals: &Record) -> Vec<Value> {
        let labels = self.scripts.iter().zip(&totals.scripts);
        let account = |(label, script): (&ScriptLabel, &ScriptRecord)| {
            json!({
                "label": label.name,
                "counts": script.counts.measured,
                "service": script.service.stats(),
                "response": script.response.stats(),
            })
        };
        labels.map(account).collect()
    }
}

impl Work {
    /// Read and check what the specification asks for.
    pub(crate) fn new<P: Protocol>(spec: &DriveSpec) -> Result<Self, DriveError> {
        match (&spec.scripts, &spec.load, &spec.queries) {
            (Some(_), None, None) => ScriptWork::new(spec).map(Self::Scripts),
            (None, Some(load), None) => LoadWork::new::<P>(load, spec.clients).map(Self::Load),
            (None, None, Some(queries)) => QueryWork::new(queries, spec).map(Self::Queries),
            _ => Err(DriveError::bad_spec(
                "a drive has one kind of work".to_owned(),
                "give exactly one of scripts, load and queries",
            )),
        }
    }

    /// The same for clients that reach the database through a library.
    pub(crate) fn for_library(spec: &DriveSpec) -> Result<Self, DriveError> {
        match (&spec.scripts, &spec.load, &spec.queries) {
            (None, Some(load), None) => LoadWork::for_library(load, spec.clients).map(Self::Load),
            (None, None, Some(queries)) => QueryWork::for_library(queries, spec).map(Self::Queries),
            _ => Err(DriveError::bad_spec(
                "a library runs queries, or loads rows".to_owned(),
                "give exactly one of load and queries",
            )),
        }
    }

    /// What one client of a library does. Fails when the operating system refuses what it needs.
    pub(crate) fn blocking_program(
        &self,
        draw: &Draw,
    ) -> std::io::Result<Option<Box<dyn BlockingProgram>>> {
        match self {
            Self::Load(load) => load.blocking_program(draw).map(Some),
            Self::Queries(queries) => Ok(Some(queries.blocking_program())),
            Self::Scripts(_) => Ok(None),
        }
    }

    pub(crate) fn labels(&self) -> Labels {
        match self {
            Self::Scripts(scripts) => scripts.labels(),
            Self::Load(load) => load.labels(),
            Self::Queries(queries) => queries.labels(),
        }
    }

    /// The program of one client.
    pub(crate) fn program<P: Protocol>(
        &self,
        spec: &DriveSpec,
        draw: &Draw,
    ) -> Box<dyn Program<P> + Send> {
        match self {
            Self::Scripts(scripts) => scripts.program(spec, draw),
            Self::Load(load) => load.program(draw),
            Self::Queries(queries) => queries.program(),
        }
    }

    /// How statements are sent, as the account names it.
    pub(crate) fn mode(&self) -> String {
        match self {
            Self::Scripts(scripts) => scripts.mode().to_string(),
            Self::Load(load) => load.mode(),
            Self::Queries(queries) => queries.mode(),
        }
    }

    /// Statements are followed by a sync of their own.
    pub(crate) fn is_extended(&self) -> bool {
        match self {
            Self::Scripts(scripts) => scripts.mode() != QueryMode::Simple,
            Self::Load(_) | Self::Queries(_) => true,
        }
    }

    /// Programs may have to wait for what other threads make, and are woken.
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Scripts(_) | Self::Queries(_) => false,
            Self::Load(_) => true,
        }
    }

    /// Rows are stored.
    pub(crate) fn is_load(&self) -> bool {
        match self {
            Self::Load(_) => true,
            Self::Scripts(_) | Self::Queries(_) => false,
        }
    }

    /// The load, if it is one of ours.
    pub(crate) fn load(&self) -> Option<&LoadWork> {
        match self {
            Self::Load(load) => Some(load),
            Self::Scripts(_) | Self::Queries(_) => None,
        }
    }

    /// Why the work as a whole has failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Scripts(_) => None,
            Self::Load(load) => load.failure(),
            Self::Queries(queries) => queries.failure(),
        }
    }

    /// What the account says besides, by key.
    pub(crate) fn account(&self, totals: &Record) -> Map<String, Value> {
        match self {
            Self::Scripts(_) => Map::new(),
            Self::Load(load) => load.account(),
            Self::Queries(queries) => queries.account(totals),
        }
    }
}
