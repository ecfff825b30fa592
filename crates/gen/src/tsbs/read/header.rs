//! The lines before the first row: `tags,hostname string,…`, then `cpu,usage_user,…` for each table, then an
//! empty line.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::DataType;

use super::fault::{CUT, DAMAGED, Fault, MAGIC_BYTES, NOT_TSBS, excerpt, wrong_magic};
use super::input::{Input, LINE_MAX, More};
use crate::dataset::{Dataset, SourceError};
use crate::tsbs::arrow::schema::{series_table, tags_table};

/// More tables than that are no data set.
const TABLES_MAX: usize = 4096;
/// Columns of every table besides its fields.
const RESERVED: [&str; 3] = ["time", "tags_id", "additional_tags"];

/// The tables of a text, and how many lines it took to say so.
pub(super) struct Header {
    pub(super) dataset: Arc<Dataset>,
    pub(super) lines: u64,
}

impl Header {
    pub(super) fn read(input: &mut Input) -> Result<Self, SourceError> {
        if let Some(fault) = wrong_magic(input.peek(MAGIC_BYTES)?) {
            return Err(fault.at(1, 0));
        }
        let mut lines = 1;
        let tags = header_line(input, lines, parse_tags)?;
        let mut tables = Vec::new();
        let mut names = BTreeSet::new();
        loop {
            lines += 1;
            let table = header_line(input, lines, |line| parse_table(line, &mut names))?;
            let Some((name, fields)) = table else { break };
            tables.push(series_table(&name, fields.iter().map(String::as_str)));
        }
        let tags = tags_table(
            tags.iter()
                .map(|(name, kind)| (name.as_str(), kind.clone())),
        );
        let dataset = Arc::new(Dataset {
            tags: Some(tags),
            tables,
        });
        Ok(Self { dataset, lines })
    }
}

/// Reads a line and lets `parse` understand it.
fn header_line<T>(
    input: &mut Input,
    number: u64,
    parse: impl FnOnce(&str) -> Result<T, Fault>,
) -> Result<T, SourceError> {
    let byte = input.position(input.at);
    let parsed = match input.line()? {
        Ok(line) if line.len() > LINE_MAX => Err(Fault::long_line()),
        Ok(line) if line.ends_with(b"\r") => Err(Fault::carriage_return()),
        Ok(line) => match std::str::from_utf8(line) {
            Ok(text) if !text.contains('\0') => parse(text),
            Ok(_) => Err(Fault::new("the header contains a zero byte", NOT_TSBS)),
            Err(_) => Err(Fault::new("the header is not UTF-8", NOT_TSBS)),
        },
        Err(More::LongLine) => Err(Fault::long_line()),
        Err(_) => {
            let message =
                "the header does not end; it must end with an empty line after its last table";
            Err(Fault::new(message, CUT))
        }
    };
    parsed.map_err(|fault| fault.at(number, byte))
}

/// Names and types of the tags.
fn parse_tags(line: &str) -> Result<Vec<(String, DataType)>, Fault> {
    let Some(tags) = line.strip_prefix("tags,") else {
        if line == "tags" {
            return Err(Fault::new("the header has no tags", NOT_TSBS));
        }
        let message = format!(
            "{} is not a header of TSBS: it begins with \"tags,\"",
            excerpt(line.as_bytes())
        );
        return Err(Fault::new(message, NOT_TSBS));
    };
    let mut names = BTreeSet::from(["id"]);
    let mut parsed = Vec::new();
    for tag in tags.split(',') {
        let Some((name, kind)) = tag.split_once(' ') else {
            let hint = if tag.contains('=') {
                "this is a row, and the header before it is missing; give the text from its first byte"
            } else {
                NOT_TSBS
            };
            return Err(Fault::new(
                format!("tag {} has no type", excerpt(tag.as_bytes())),
                hint,
            ));
        };
        let kind = match kind {
            "string" => DataType::Utf8,
            "float32" => DataType::Float32,
            _ => {
                let message = format!(
                    "tag {name:?} has the type {}; TSBS's tags are string or float32",
                    excerpt(kind.as_bytes())
                );
                return Err(Fault::new(message, NOT_TSBS));
            }
        };
        check_name(name, "tag", &mut names)?;
        parsed.push((name.to_owned(), kind));
    }
    Ok(parsed)
}

/// A name and its fields; none at the end of the header.
type NamedFields = (String, Vec<String>);

fn parse_table(line: &str, names: &mut BTreeSet<String>) -> Result<Option<NamedFields>, Fault> {
    if line.is_empty() {
        return if names.is_empty() {
            Err(Fault::new("the header names no tables", NOT_TSBS))
        } else {
            Ok(None)
        };
    }
    let Some((name, fields)) = line.split_once(',') else {
        let message = format!("table {} has no fields", excerpt(line.as_bytes()));
        return Err(Fault::new(message, NOT_TSBS));
    };
    if name == "tags" || name.is_empty() {
        return Err(Fault::new(
            format!("{name:?} cannot be the name of a table"),
            DAMAGED,
        ));
    }
    if names.len() == TABLES_MAX {
        return Err(Fault::new(
            format!("the header names more than {TABLES_MAX} tables"),
            NOT_TSBS,
        ));
    }
    if !names.insert(name.to_owned()) {
        return Err(Fault::new(
            format!("table {name:?} is there twice"),
            DAMAGED,
        ));
    }
    let mut seen = BTreeSet::from(RESERVED);
    let mut parsed = Vec::new();
    for field in fields.split(',') {
        check_name(field, "field", &mut seen)?;
        parsed.push(field.to_owned());
    }
    Ok(Some((name.to_owned(), parsed)))
}

/// Refuses names that no table can have, and those that were seen before.
fn check_name<'a>(name: &'a str, what: &str, seen: &mut BTreeSet<&'a str>) -> Result<(), Fault> {
    if name.is_empty() || name.contains(['=', '\r']) {
        return Err(Fault::new(
            format!(
                "{} cannot be the name of a {what}",
                excerpt(name.as_bytes())
            ),
            DAMAGED,
        ));
    }
    if seen.insert(name) {
        return Ok(());
    }
    let message = format!(
        "{what} {} is there twice, or a name that tables need themselves",
        excerpt(name.as_bytes())
    );
    Err(Fault::new(message, DAMAGED))
}
