//! The list of queries: one after the other, to whoever asks.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::DriveError;
use crate::spec::queries::QueriesSpec;

/// A query as a client holds it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// How many were given out before it.
    pub(super) turn: u64,
    /// Its place in the list.
    pub(super) number: u64,
    pub(super) label: usize,
    pub(super) sql: String,
}

#[derive(Debug)]
enum Source {
    List(Vec<(u32, String)>),
    File {
        path: PathBuf,
        reader: BufReader<File>,
    },
}

#[derive(Debug)]
struct State {
    source: Source,
    turn: u64,
    /// Queries whose client was lost before it could begin.
    returned: Vec<Query>,
    failure: Option<String>,
}

/// The list, shared by all clients.
#[derive(Debug)]
pub(super) struct Feed {
    state: Mutex<State>,
    listed: u64,
    turns: Option<u64>,
}

impl Feed {
    /// Check all queries.
    pub(super) fn new(spec: &QueriesSpec) -> Result<Self, DriveError> {
        let labels = spec.labels.len();
        let (source, listed) = match (&spec.queries, &spec.file) {
            (Some(list), _) => {
                for (number, (label, sql)) in list.iter().enumerate() {
                    check(*label, sql, labels)
                        .map_err(|why| bad(&format!("query {number}"), &why))?;
                }
                (Source::List(list.clone()), list.len() as u64)
            }
            (None, Some(path)) => {
                let listed = check_file(path, labels)?;
                let reader = open(path)?;
                let path = path.clone();
                (Source::File { path, reader }, listed)
            }
            (None, None) => (Source::List(Vec::new()), 0),
        };
        if listed == 0 && spec.probe.is_none() {
            return Err(bad("the list", "it holds no query"));
        }
        let listed_max = (!spec.repeat).then_some(listed);
        let asked_max = (spec.max_queries > 0).then_some(spec.max_queries);
        let turns = match (listed_max, asked_max) {
            (Some(listed), Some(asked)) => Some(listed.min(asked)),
            (listed, asked) => listed.or(asked),
        };
        let state = Mutex::new(State {
            source,
            turn: 0,
            returned: Vec::new(),
            failure: None,
        });
        Ok(Self {
            state,
            listed,
            turns,
        })
    }

    /// Queries in the list.
    pub(super) fn listed(&self) -> u64 {
        self.listed
    }

    /// Queries that will be run; `None` when only the clock or the clients end it.
    pub(super) fn total(&self) -> Option<u64> {
        self.turns
    }

    /// Why there are no more queries, when that is not as it should be.
    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// Put the next query into `query`; false when there is none.
    pub(super) fn take(&self, query: &mut Query) -> bool {
        match self.next(query) {
            None => false,
            Some(Text::Ready) => true,
            // All clients wait for who holds the list: a line is understood by whoever has taken it.
            Some(Text::Line) => query.understand() || self.fail(),
        }
    }

    fn next(&self, query: &mut Query) -> Option<Text> {
        let mut state = self.lock();
        if let Some(returned) = state.returned.pop() {
            *query = returned;
            return Some(Text::Ready);
        }
        if state.failure.is_some() || self.turns.is_some_and(|turns| state.turn >= turns) {
            return None;
        }
        query.turn = state.turn;
        query.number = state.turn % self.listed.max(1);
        match state.source.read(query) {
            Ok(text) => {
                state.turn += 1;
                Some(text)
            }
            Err(why) => {
                state.failure = Some(why);
                None
            }
        }
    }

    /// Note that a line of the file is none any more; false, as there is no query.
    fn fail(&self) -> bool {
        let mut state = self.lock();
        let why = state.source.failed("it has changed since it was checked");
        state.failure.get_or_insert(why);
        false
    }

    /// A client has left with this query: another will run it.
    pub(super) fn give_back(&self, query: &Query) {
        self.lock().returned.push(query.clone());
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`Source::read`] has put into a query.
enum Text {
    /// Label and SQL.
    Ready,
    /// A line of the file, in the place of the SQL.
    Line,
}

impl Query {
    /// Take a line apart; false when it is none.
    fn understand(&mut self) -> bool {
        let Ok((label, sql)) = serde_json::from_str::<(u32, String)>(&self.sql) else {
            return false;
        };
        (self.label, self.sql) = (label as usize, sql);
        true
    }
}

impl Source {
    fn read(&mut self, query: &mut Query) -> Result<Text, String> {
        query.sql.clear();
        match self {
            Self::List(list) => {
                let at = usize::try_from(query.number).unwrap_or(usize::MAX);
                let (label, sql) = list.get(at).ok_or("the list is shorter than it was")?;
                query.label = *label as usize;
                query.sql.push_str(sql);
                Ok(Text::Ready)
            }
            Self::File { reader, .. } => {
                let rewound = if query.number == 0 {
                    reader.rewind()
                } else {
                    Ok(())
                };
                let read = rewound.and_then(|()| reader.read_line(&mut query.sql));
                read.map_err(|error| self.failed(&error.to_string()))?;
                Ok(Text::Line)
            }
        }
    }

    fn failed(&self, why: &str) -> String {
        match self {
            Self::List(_) => why.to_owned(),
            Self::File { path, .. } => format!("{}: {why}", path.display()),
        }
    }
}

fn check(label: u32, sql: &str, labels: usize) -> Result<(), String> {
    if label as usize >= labels {
        return Err(format!("label {label} is not among the {labels} labels"));
    }
    if sql.trim().is_empty() {
        return Err("its text is empty".to_owned());
    }
    if sql.contains('\0') {
        return Err("its text contains a NUL byte, which PostgreSQL cannot hold".to_owned());
    }
    Ok(())
}

/// Read the whole file once; returns the number of queries.
fn check_file(path: &Path, labels: usize) -> Result<u64, DriveError> {
    let mut reader = open(path)?;
    let mut line = String::new();
    let mut count = 0;
    loop {
        line.clear();
        let place = || format!("{} line {}", path.display(), count + 1);
        let read = reader
            .read_line(&mut line)
            .map_err(|e| bad(&place(), &e.to_string()))?;
        if read == 0 {
            return Ok(count);
        }
        let (label, sql): (u32, String) = serde_json::from_str(&line).map_err(|e| {
            bad(
                &place(),
                &format!("no pair of a label's number and a text: {e}"),
            )
        })?;
        check(label, &sql, labels).map_err(|why| bad(&place(), &why))?;
        count += 1;
    }
}

fn open(path: &Path) -> Result<BufReader<File>, DriveError> {
    let file = File::open(path).map_err(|e| bad(&path.display().to_string(), &e.to_string()))?;
    Ok(BufReader::with_capacity(1 << 16, file))
}

fn bad(place: &str, why: &str) -> DriveError {
    let hint = "give each query as [number of its label, \"text\"], in a file one a line";
    DriveError::bad_spec(format!("queries: {place}: {why}"), hint)
}
