//! The list of queries: one after the other, to whoever asks.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::DriveError;
use crate::share::Share;
use crate::spec::queries::QueriesSpec;

/// A file up to this size is kept in memory.
const HELD_MAX: u64 = 64 << 20;

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
    File(Lines),
}

/// The lines of a file.
#[derive(Debug)]
struct Lines {
    path: PathBuf,
    file: File,
    /// All of it, where it is not too large.
    held: Option<Vec<u8>>,
    /// Where each line begins, and where the last one ends.
    bounds: Vec<u64>,
}

/// The list, shared by all clients. A query is taken without a lock: whoever held one could lose its core to others,
/// and all clients would wait for it.
#[derive(Debug)]
pub(super) struct Feed {
    source: Source,
    listed: u64,
    turns: Option<u64>,
    /// Which of the turns are this host's, and how many in a row.
    share: Share,
    together: u64,
    /// Own turns that were given out.
    turn: AtomicU64,
    /// Queries whose client was lost before it could begin.
    returned: Mutex<Vec<Query>>,
    returned_count: AtomicUsize,
    failure: OnceLock<String>,
}

impl Feed {
    /// Check all queries; those of `share` are given out.
    pub(super) fn new(spec: &QueriesSpec, share: Share) -> Result<Self, DriveError> {
        let labels = spec.labels.len();
        let source = match (&spec.queries, &spec.file) {
            (Some(list), _) => {
                for (number, (label, sql)) in list.iter().enumerate() {
                    check(*label, sql, labels)
                        .map_err(|why| bad(&format!("query {number}"), &why))?;
                }
                Source::List(list.clone())
            }
            (None, Some(path)) => Source::File(Lines::check(path, labels)?),
            (None, None) => Source::List(Vec::new()),
        };
        let listed = source.len() as u64;
        if listed == 0 && spec.probe.is_none() {
            return Err(bad("the list", "it contains no query"));
        }
        let listed_max = (!spec.repeat).then_some(listed);
        let asked_max = (spec.max_queries > 0).then_some(spec.max_queries);
        let turns = match (listed_max, asked_max) {
            (Some(listed), Some(asked)) => Some(listed.min(asked)),
            (listed, asked) => listed.or(asked),
        };
        Ok(Self {
            source,
            listed,
            turns,
            share,
            together: spec.together.max(1),
            turn: AtomicU64::new(0),
            returned: Mutex::default(),
            returned_count: AtomicUsize::new(0),
            failure: OnceLock::new(),
        })
    }

    /// Queries in the list.
    pub(super) fn listed(&self) -> u64 {
        self.listed
    }

    /// Queries that all hosts will run; `None` when only the clock or the clients end it.
    pub(super) fn total(&self) -> Option<u64> {
        self.turns
    }

    /// Why there are no more queries, when that is not as it should be.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    /// Put the next query into `query`; false when there is none.
    pub(super) fn take(&self, query: &mut Query) -> bool {
        if self.take_returned(query) {
            return true;
        }
        if self.failure.get().is_some() {
            return false;
        }
        let turn = self.dealt(self.turn.fetch_add(1, Ordering::Relaxed));
        if self.turns.is_some_and(|turns| turn >= turns) {
            return false;
        }
        (query.turn, query.number) = (turn, turn % self.listed.max(1));
        match self.source.read(query) {
            Ok(()) => true,
            Err(why) => {
                self.failure.get_or_init(|| why);
                false
            }
        }
    }

    /// The turn among those of all hosts, of one of our own.
    fn dealt(&self, own: u64) -> u64 {
        let (run, within) = (own / self.together, own % self.together);
        (run * self.share.of + self.share.number) * self.together + within
    }

    /// The text of the query at this place of the list.
    pub(super) fn text(&self, number: u64) -> Option<String> {
        let mut query = Query {
            number,
            ..Query::default()
        };
        let read = (number < self.listed).then(|| self.source.read(&mut query));
        read.is_some_and(|read| read.is_ok()).then_some(query.sql)
    }

    /// A client has left with this query: another will run it.
    pub(super) fn give_back(&self, query: &Query) {
        let mut returned = self.returned();
        returned.push(query.clone());
        self.returned_count.store(returned.len(), Ordering::Release);
    }

    fn take_returned(&self, query: &mut Query) -> bool {
        if self.returned_count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut returned = self.returned();
        let found = returned.pop().map(|found| *query = found).is_some();
        self.returned_count.store(returned.len(), Ordering::Release);
        found
    }

    fn returned(&self) -> MutexGuard<'_, Vec<Query>> {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source {
    fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::File(lines) => lines.bounds.len() - 1,
        }
    }

    fn read(&self, query: &mut Query) -> Result<(), String> {
        let at = usize::try_from(query.number).unwrap_or(usize::MAX);
        match self {
            Self::List(list) => {
                let (label, sql) = list.get(at).ok_or("the list is shorter than before")?;
                query.label = *label as usize;
                query.sql.clone_from(sql);
            }
            Self::File(lines) => {
                let (label, sql) = lines
                    .read(at)
                    .map_err(|why| format!("{}: {why}", lines.path.display()))?;
                (query.label, query.sql) = (label as usize, sql);
            }
        }
        Ok(())
    }
}

impl Lines {
    /// Read the whole file once.
    fn check(path: &Path, labels: usize) -> Result<Self, DriveError> {
        let unread = |error: std::io::Error| bad(&path.display().to_string(), &error.to_string());
        let file = File::open(path).map_err(unread)?;
        let keeps = file.metadata().map_err(unread)?.len() <= HELD_MAX;
        let mut reader = BufReader::with_capacity(1 << 16, &file);
        let (mut held, mut bounds, mut line) = (Vec::new(), vec![0], Vec::new());
        loop {
            line.clear();
            let place = || format!("{} line {}", path.display(), bounds.len());
            let read = reader
                .read_until(b'\n', &mut line)
                .map_err(|error| bad(&place(), &error.to_string()))?;
            if read == 0 {
                break;
            }
            let (label, sql) = parsed(&line).map_err(|why| {
                bad(
                    &place(),
                    &format!("not a pair of a label's number and a text: {why}"),
                )
            })?;
            check(label, &sql, labels).map_err(|why| bad(&place(), &why))?;
            if keeps {
                held.extend_from_slice(&line);
            }
            bounds.push(bounds[bounds.len() - 1] + read as u64);
        }
        Ok(Self {
            path: path.to_owned(),
            held: keeps.then_some(held),
            bounds,
            file,
        })
    }

    fn read(&self, at: usize) -> Result<(u32, String), String> {
        let changed = "it was changed after it was checked";
        let (begin, end) = (self.bounds[at], self.bounds[at + 1]);
        let place = |bound: u64| usize::try_from(bound).unwrap_or(usize::MAX);
        if let Some(held) = &self.held {
            return parsed(&held[place(begin)..place(end)]).map_err(|_| changed.to_owned());
        }
        let mut line = vec![0; place(end - begin)];
        let read = self.file.read_exact_at(&mut line, begin);
        read.map_err(|error| error.to_string())?;
        parsed(&line).map_err(|_| changed.to_owned())
    }
}

/// Label and text of a line.
fn parsed(line: &[u8]) -> serde_json::Result<(u32, String)> {
    serde_json::from_slice(line)
}

fn check(label: u32, sql: &str, labels: usize) -> Result<(), String> {
    if label as usize >= labels {
        return Err(format!("label {label} is not among the {labels} labels"));
    }
    if sql.trim().is_empty() {
        return Err("its text is empty".to_owned());
    }
    if sql.contains('\0') {
        return Err("its text contains a NUL byte, which no server accepts".to_owned());
    }
    Ok(())
}

fn bad(place: &str, why: &str) -> DriveError {
    let hint = "write each query as [number of its label, \"text\"], in a file one per line";
    DriveError::bad_spec(format!("queries: {place}: {why}"), hint)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn lines() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"[0,\"select 'a\\nb'\"]\n[1,\"select 2\"]\n[0,\"select 3\"]")
            .unwrap();
        file
    }

    fn feed(spec: &serde_json::Value) -> Feed {
        shared(spec, Share::WHOLE)
    }

    fn shared(spec: &serde_json::Value, share: Share) -> Feed {
        Feed::new(&serde_json::from_value(spec.clone()).unwrap(), share).unwrap()
    }

    fn all(feed: &Feed) -> Vec<(u64, u64, usize, String)> {
        let mut query = Query::default();
        let taken = std::iter::from_fn(|| {
            feed.take(&mut query)
                .then(|| (query.turn, query.number, query.label, query.sql.clone()))
        });
        taken.collect()
    }

    #[test]
    fn lines_are_taken_in_order_and_again_from_the_first() {
        let file = lines();
        let spec = serde_json::json!({
            "labels": ["a", "b"], "file": file.path(), "loop": true, "max_queries": 4
        });
        let mut feed = feed(&spec);
        let expected = [
            (0, 0, 0, "select 'a\nb'".to_owned()),
            (1, 1, 1, "select 2".to_owned()),
            (2, 2, 0, "select 3".to_owned()),
            (3, 0, 0, "select 'a\nb'".to_owned()),
        ];
        assert_eq!(all(&feed), expected);
        let Source::File(lines) = &mut feed.source else {
            panic!("not a file")
        };
        lines.held = None;
        feed.turn = AtomicU64::new(0);
        assert_eq!(all(&feed), expected, "a line at a time, from a large file");
        file.as_file().set_len(10).unwrap();
        feed.turn = AtomicU64::new(0);
        assert_eq!(all(&feed), []);
        assert!(feed.failure().is_some());
    }

    proptest! {
        #[test]
        fn hosts_together_ask_the_queries_of_one_and_keep_runs_together(
            runs in 1_u64..40, together in 1_u64..4, of in 1_u64..9, most in 0_u64..200, repeat: bool,
        ) {
            let list: Vec<_> = (0..runs * together).map(|n| (0, format!("select {n}"))).collect();
            let most = if repeat { most.max(1) } else { most };
            let spec = serde_json::json!({
                "labels": ["a"], "queries": list, "together": together, "max_queries": most, "loop": repeat,
            });
            let mut found: Vec<_> = (0..of).flat_map(|number| {
                let own = all(&shared(&spec, Share { number, of }));
                assert!(own.iter().all(|(turn, ..)| turn / together % of == number));
                own
            }).collect();
            found.sort_unstable();
            prop_assert_eq!(found, all(&feed(&spec)));
        }
    }

    #[test]
    fn what_is_given_back_is_given_out_again_and_nothing_twice() {
        let file = lines();
        let feed = feed(&serde_json::json!({"labels": ["a", "b"], "file": file.path()}));
        let mut query = Query::default();
        assert!(feed.take(&mut query));
        feed.give_back(&query);
        let turns: Vec<u64> = all(&feed).into_iter().map(|(turn, ..)| turn).collect();
        assert_eq!(turns, [0, 1, 2]);
        assert_eq!(all(&feed), []);
    }
}
