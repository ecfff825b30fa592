//! What a drive is to do: scripts, a load, or queries. Behind this enum the worker knows only programs.

use std::sync::Arc;
use std::time::Duration;

use loadstone_script::QueryMode;
use serde_json::{Map, Value};

use super::blocking::BlockingProgram;
use super::load::LoadWork;
use super::lua::LuaWork;
use super::queries::QueryWork;
use super::script::ScriptWork;
use super::{ClientSeeds, Labels, Program};
use crate::error::DriveError;
use crate::messages::Messages;
use crate::protocol::Protocol;
use crate::record::Record;
use crate::spec::{DriveSpec, OnError};

/// The work of a drive, made ready and shared by all its clients.
#[derive(Debug)]
pub(crate) enum Work {
    /// pgbench's scripts.
    Scripts(ScriptWork),
    /// Rows into tables.
    Load(LoadWork),
    /// Queries that were drawn beforehand.
    Queries(QueryWork),
    /// A script in Lua.
    Lua(LuaWork),
}

impl Work {
    /// Read and check what the specification asks for.
    pub(crate) fn new<P: Protocol>(spec: &DriveSpec) -> Result<Self, DriveError> {
        if let Some(lua) = &spec.lua {
            return LuaWork::new(lua, spec).map(Self::Lua);
        }
        match (&spec.scripts, &spec.load, &spec.queries) {
            (Some(_), None, None) => ScriptWork::new(spec).map(Self::Scripts),
            (None, Some(load), None) => {
                let clients = spec.own_clients().len();
                LoadWork::new::<P>(load, clients, spec.tries_max, spec.share()).map(Self::Load)
            }
            (None, None, Some(queries)) => QueryWork::new(queries, spec).map(Self::Queries),
            _ => Err(DriveError::bad_spec(
                "a drive has one workload".to_owned(),
                "set exactly one of scripts, load, queries and lua",
            )),
        }
    }

    /// The same for clients that reach the database through a library.
    pub(crate) fn for_library(spec: &DriveSpec) -> Result<Self, DriveError> {
        match (&spec.scripts, &spec.load, &spec.queries) {
            (None, Some(load), None) => LoadWork::for_library(load, spec.clients).map(Self::Load),
            (None, None, Some(queries)) => QueryWork::for_library(queries, spec).map(Self::Queries),
            _ => Err(DriveError::bad_spec(
                "a library either runs queries or loads rows".to_owned(),
                "set exactly one of load and queries",
            )),
        }
    }

    /// What one client of a library does. Fails when the operating system refuses what it needs.
    pub(crate) fn blocking_program(
        &self,
        draw: &ClientSeeds,
    ) -> std::io::Result<Option<Box<dyn BlockingProgram>>> {
        match self {
            Self::Load(load) => load.blocking_program(draw).map(Some),
            Self::Queries(queries) => Ok(Some(queries.blocking_program())),
            Self::Scripts(_) | Self::Lua(_) => Ok(None),
        }
    }

    pub(crate) fn labels(&self) -> Labels {
        match self {
            Self::Scripts(scripts) => scripts.labels(),
            Self::Load(load) => load.labels(),
            Self::Queries(queries) => queries.labels(),
            Self::Lua(lua) => lua.labels(),
        }
    }

    /// The program of one client.
    pub(crate) fn program<P: Protocol>(
        &self,
        spec: &DriveSpec,
        draw: &ClientSeeds,
    ) -> Box<dyn Program<P> + Send> {
        match self {
            Self::Scripts(scripts) => scripts.program(spec, draw),
            Self::Load(load) => load.program(draw),
            Self::Queries(queries) => queries.program(),
            Self::Lua(lua) => lua.program(draw.client),
        }
    }

    /// Where lines for the user go, if that is wanted.
    pub(crate) fn messages(&self) -> Option<Arc<Messages>> {
        match self {
            Self::Scripts(scripts) => scripts.messages(),
            Self::Lua(lua) => Some(lua.messages()),
            Self::Load(_) | Self::Queries(_) => None,
        }
    }

    /// How statements are sent, as the account names it.
    pub(crate) fn mode(&self) -> String {
        match self {
            Self::Scripts(scripts) => scripts.mode().to_string(),
            Self::Load(load) => load.mode(),
            Self::Queries(queries) => queries.mode(),
            Self::Lua(lua) => lua.mode(),
        }
    }

    /// Statements are followed by a sync of their own.
    pub(crate) fn is_extended(&self) -> bool {
        match self {
            Self::Scripts(scripts) => scripts.mode() != QueryMode::Simple,
            Self::Load(_) | Self::Queries(_) | Self::Lua(_) => true,
        }
    }

    /// Programs may have to wait for what other threads make, and are woken.
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Scripts(_) | Self::Queries(_) | Self::Lua(_) => false,
            Self::Load(_) => true,
        }
    }

    /// Programs ask for their connections when they need them, and do something before and after transactions.
    pub(crate) fn connects_late(&self) -> bool {
        matches!(self, Self::Lua(_))
    }

    /// What a client does after an error, where the work decides that.
    pub(crate) fn on_error(&self) -> Option<OnError> {
        matches!(self, Self::Lua(_)).then_some(OnError::AbortClient)
    }

    /// The script whose clients and whose end are to be watched.
    pub(crate) fn lua(&self) -> Option<&LuaWork> {
        match self {
            Self::Lua(lua) => Some(lua),
            _ => None,
        }
    }

    /// The run is to end after this time, and with it what computes without end.
    pub(crate) fn end_within(&self, time: Duration) {
        if let Some(lua) = self.lua() {
            lua.end_within(time);
        }
    }

    /// The run is over: all that was done for it ends.
    pub(crate) fn over(&self) {
        if let Some(lua) = self.lua() {
            lua.over();
        }
    }

    /// Rows are stored.
    pub(crate) fn is_load(&self) -> bool {
        match self {
            Self::Load(_) => true,
            Self::Scripts(_) | Self::Queries(_) | Self::Lua(_) => false,
        }
    }

    /// The load, if it is one of ours.
    pub(crate) fn load(&self) -> Option<&LoadWork> {
        match self {
            Self::Load(load) => Some(load),
            Self::Scripts(_) | Self::Queries(_) | Self::Lua(_) => None,
        }
    }

    /// Why the work as a whole has failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        match self {
            Self::Scripts(scripts) => scripts.failure(),
            Self::Load(load) => load.failure(),
            Self::Queries(queries) => queries.failure(),
            Self::Lua(lua) => lua.failure(),
        }
    }

    /// Hand over what one of several hosts has learnt beside its records.
    pub(crate) fn parts(
        &self,
        take: &mut dyn FnMut(Value) -> Result<(), DriveError>,
    ) -> Result<(), DriveError> {
        match self {
            Self::Scripts(_) | Self::Load(_) => Ok(()),
            Self::Queries(queries) => queries.parts(take),
            Self::Lua(lua) => take(lua.part()),
        }
    }

    /// Take in what another host has handed over.
    pub(crate) fn join(&self, part: Value) {
        match self {
            Self::Scripts(_) | Self::Load(_) => {}
            Self::Queries(queries) => queries.join(part),
            Self::Lua(lua) => lua.join(part),
        }
    }

    /// Where several hosts were given different answers, in words.
    pub(crate) fn differences(&self) -> Vec<String> {
        match self {
            Self::Queries(queries) => queries.differences(),
            Self::Scripts(_) | Self::Load(_) | Self::Lua(_) => Vec::new(),
        }
    }

    /// All other hosts have done their part.
    pub(crate) fn others_ended(&self) {
        if let Self::Lua(lua) = self {
            lua.others_ended();
        }
    }

    /// What the account says besides, by key.
    pub(crate) fn account(&self, totals: &Record) -> Map<String, Value> {
        match self {
            Self::Scripts(_) => Map::new(),
            Self::Lua(lua) => lua.account(),
            Self::Load(load) => load.account(),
            Self::Queries(queries) => queries.account(totals),
        }
    }
}
