//! The lines of tags of a text: which device each one is.
//!
//! A text repeats its lines of tags, mostly in the same order. So each known line leads to the one that
//! followed it the last time, which costs one comparison to be sure of; only where another one follows, its
//! hash finds it. Only new lines are understood.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use super::fault::{DAMAGED, Fault, SEPARATORS, excerpt};
use super::input::LINE_MAX;
use crate::dataset::SourceError;
use crate::tsbs::arrow::states::TagRows;

/// A known line: the tags that all lines have, then those that only some tables have.
#[derive(Clone, Debug)]
struct Line {
    common: Range<usize>,
    additional: Range<usize>,
    json: Range<usize>,
    hash: u64,
    id: i32,
    /// The line that followed this one the last time.
    next: u32,
}

/// A device's tags as they are first seen, numbers in one form.
#[derive(Clone, Debug)]
struct State {
    tags: Range<usize>,
    hash: u64,
    id: i32,
}

pub(super) struct Lines {
    /// `hostname=`, and whether it is a number, for each tag of the header.
    tags: Vec<(Vec<u8>, bool)>,
    /// All text that lines refer to.
    text: Vec<u8>,
    known: Vec<Line>,
    by_line: HashTable<u32>,
    states: HashTable<State>,
    hasher: FixedState,
    last: u32,
}

/// A line of tags that was found in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// After the line's end.
    pub(super) end: usize,
    pub(super) id: i32,
    /// Number of the line, to get more of it.
    pub(super) line: u32,
}

impl Lines {
    /// For tags of these names, those of numbers marked.
    pub(super) fn new<'a>(tags: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let tags = tags.map(|(name, number)| (format!("{name}=").into_bytes(), number));
        Self {
            tags: tags.collect(),
            text: Vec::new(),
            known: Vec::new(),
            by_line: HashTable::new(),
            states: HashTable::new(),
            hasher: FixedState::default(),
            last: 0,
        }
    }

    /// Bytes of all that is kept.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The additional tags of a line as JSON; empty if there are none.
    #[inline]
    pub(super) fn json(&self, line: u32) -> &[u8] {
        self.known
            .get(line as usize)
            .map_or(&[], |line| &self.text[line.json.clone()])
    }

    /// Finds the line at `at`, which ends before `complete`, and adds it to `rows` if its tags are new.
    #[inline]
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        at: usize,
        complete: usize,
        rows: &mut TagRows,
    ) -> Result<Found, LineError> {
        if let Some(last) = self.known.get(self.last as usize) {
            let next = last.next;
            if let Some(line) = self.known.get(next as usize) {
                let common = &self.text[line.common.clone()];
                let additional = &self.text[line.additional.clone()];
                let rest = &bytes[at..complete];
                if let Some(rest) = rest.strip_prefix(common)
                    && let Some([b'\n', ..]) = rest.strip_prefix(additional)
                {
                    let end = at + common.len() + additional.len() + 1;
                    self.last = next;
                    return Ok(Found {
                        end,
                        id: line.id,
                        line: next,
                    });
                }
            }
        }
        self.find_elsewhere(&bytes[at..complete], at, rows)
    }

    #[inline(never)]
    fn find_elsewhere(
        &mut self,
        lines: &[u8],
        at: usize,
        rows: &mut TagRows,
    ) -> Result<Found, LineError> {
        let length = memchr::memchr(b'\n', lines).unwrap_or(lines.len());
        let text = &lines[..length];
        let hash = self.hasher.hash_one(text);
        let same = |&number: &u32| self.known[number as usize].is(text, &self.text);
        let number = match self.by_line.find(hash, same) {
            Some(&number) => number,
            None => self.add(text, hash, rows)?,
        };
        if let Some(last) = self.known.get_mut(self.last as usize) {
            last.next = number;
        }
        self.last = number;
        let id = self.known[number as usize].id;
        Ok(Found {
            end: at + length + 1,
            id,
            line: number,
        })
    }

    /// Understands a new line.
    fn add(&mut self, line: &[u8], hash: u64, rows: &mut TagRows) -> Result<u32, LineError> {
        if line.len() > LINE_MAX {
            return Err(Fault::long_line().into());
        }
        let parsed = parse(line, &self.tags)?;
        let number = u32::try_from(self.known.len()).map_err(|_| too_many_lines())?;
        let (id, mut common) = self.state(&parsed.state, rows)?;
        if parsed.state != line[..parsed.common] {
            common = keep(&mut self.text, &line[..parsed.common]);
        }
        let additional = keep(&mut self.text, &line[parsed.common..]);
        let json = keep(&mut self.text, parsed.json.as_bytes());
        self.known.push(Line {
            common,
            additional,
            json,
            hash,
            id,
            next: 0,
        });
        let known = &self.known;
        self.by_line
            .insert_unique(hash, number, |&number| known[number as usize].hash);
        Ok(number)
    }

    /// The id of a device's tags, and where they are kept.
    fn state(&mut self, tags: &[u8], rows: &mut TagRows) -> Result<(i32, Range<usize>), LineError> {
        let hash = self.hasher.hash_one(tags);
        let text = &self.text;
        let known = self
            .states
            .find(hash, |state| text[state.tags.clone()] == *tags);
        if let Some(state) = known {
            return Ok((state.id, state.tags.clone()));
        }
        let values = tags.split(|&byte| byte == b',').skip(1);
        let names = self.tags.iter();
        let id = rows.push(
            values
                .zip(names)
                .map(|(pair, (name, _))| &pair[name.len()..]),
        )?;
        let kept = keep(&mut self.text, tags);
        let state = State {
            tags: kept.clone(),
            hash,
            id,
        };
        self.states.insert_unique(hash, state, |state| state.hash);
        Ok((id, kept))
    }
}

impl Line {
    fn is(&self, line: &[u8], text: &[u8]) -> bool {
        line.strip_prefix(&text[self.common.clone()]) == Some(&text[self.additional.clone()])
    }
}

/// Why a line of tags has no device.
pub(super) enum LineError {
    Fault(Box<Fault>),
    /// There are too many.
    Refused(Box<SourceError>),
}

impl From<Fault> for LineError {
    fn from(fault: Fault) -> Self {
        Self::Fault(Box::new(fault))
    }
}

impl From<SourceError> for LineError {
    fn from(error: SourceError) -> Self {
        Self::Refused(Box::new(error))
    }
}

fn too_many_lines() -> SourceError {
    SourceError::Refused("there are more than 4294967295 different lines of tags".to_owned())
}

fn keep(text: &mut Vec<u8>, more: &[u8]) -> Range<usize> {
    let start = text.len();
    text.extend_from_slice(more);
    start..text.len()
}

/// What a new line says.
struct Parsed {
    /// The tags of the header, numbers in one form, as a line.
    state: Vec<u8>,
    /// Bytes of the line that these tags take.
    common: usize,
    /// The other tags as JSON, or nothing.
    json: String,
}

fn parse(line: &[u8], tags: &[(Vec<u8>, bool)]) -> Result<Parsed, Fault> {
    let text = std::str::from_utf8(line).map_err(|_| {
        Fault::new(
            format!("{} is not UTF-8", excerpt(line)),
            "tags must be UTF-8; convert the text, as with iconv",
        )
    })?;
    if text.contains('\0') {
        return Err(Fault::new(
            format!("there is a byte of zero in {}", excerpt(line)),
            DAMAGED,
        ));
    }
    let Some(pairs) = text.strip_prefix("tags,") else {
        return Err(no_tags(text));
    };
    if text.ends_with('\r') {
        return Err(Fault::carriage_return());
    }
    let mut state = b"tags".to_vec();
    let mut common = "tags".len();
    let mut pairs = pairs.split(',');
    for (index, (name, number)) in tags.iter().enumerate() {
        let pair = pairs.next().ok_or_else(|| {
            let message = format!("the line has {index} tags, the header has {}", tags.len());
            Fault::new(message, DAMAGED)
        })?;
        let value = value_of(pair, index, name)?;
        state.push(b',');
        state.extend_from_slice(name);
        if *number && !value.is_empty() {
            state.extend_from_slice(one_form(value, name)?.as_bytes());
        } else {
            state.extend_from_slice(value.as_bytes());
        }
        common += 1 + pair.len();
    }
    let json = additional_json(pairs, tags)?;
    Ok(Parsed {
        state,
        common,
        json,
    })
}

/// What a line is that should begin with `tags,` and does not.
fn no_tags(line: &str) -> Fault {
    let shown = excerpt(line.as_bytes());
    let message = match line {
        "" => "there is an empty line where a row should begin".to_owned(),
        "tags" => "the line has no tags".to_owned(),
        _ => format!(
            "there is {shown} instead of a line of tags: a row is \"tags,…\", then \"table,time,…\""
        ),
    };
    Fault::new(message, DAMAGED)
}

fn value_of<'a>(pair: &'a str, index: usize, name: &[u8]) -> Result<&'a str, Fault> {
    let value = pair
        .as_bytes()
        .strip_prefix(name)
        .map(|_| &pair[name.len()..]);
    value.ok_or_else(|| {
        let expected = String::from_utf8_lossy(name);
        let message = format!(
            "tag {} is {}, the header says {expected:?}",
            index + 1,
            excerpt(pair.as_bytes())
        );
        let hint = if pair.contains('=') {
            DAMAGED
        } else {
            SEPARATORS
        };
        Fault::new(message, hint)
    })
}

/// A number as the shortest text that is read back as itself.
fn one_form(value: &str, name: &[u8]) -> Result<String, Fault> {
    let number = value
        .parse::<f32>()
        .ok()
        .filter(|number| number.is_finite());
    number.map(|number| number.to_string()).ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        let message = format!(
            "{name}{} is not a number, but the header requires one",
            excerpt(value.as_bytes())
        );
        Fault::new(message, DAMAGED)
    })
}

/// The tags after those of the header as a JSON object of texts.
fn additional_json<'a>(
    pairs: impl Iterator<Item = &'a str>,
    tags: &[(Vec<u8>, bool)],
) -> Result<String, Fault> {
    let mut json = String::new();
    let mut seen = BTreeSet::new();
    for pair in pairs {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Fault::new(
                format!("{} is not a tag", excerpt(pair.as_bytes())),
                SEPARATORS,
            ));
        };
        let of_header =
            |(known, _): &(Vec<u8>, bool)| known.strip_suffix(b"=") == Some(name.as_bytes());
        if name.is_empty() {
            return Err(Fault::new(
                format!("{} is a tag without a name", excerpt(pair.as_bytes())),
                DAMAGED,
            ));
        }
        if !seen.insert(name) || tags.iter().any(of_header) {
            return Err(Fault::new(
                format!("tag {} is there twice", excerpt(name.as_bytes())),
                DAMAGED,
            ));
        }
        json.push(if json.is_empty() { '{' } else { ',' });
        let (name, value) = (
            serde_json::Value::from(name),
            serde_json::Value::from(value),
        );
        let _infallible = write!(json, "{name}:{value}");
    }
    if !json.is_empty() {
        json.push('}');
    }
    Ok(json)
}
