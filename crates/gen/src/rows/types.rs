//! The set `types`: tables of one type of column each, and one of all, to see what a value costs on disk.
//!
//! The option `table` says which: `table_T(id, data)` for *T* = bigint, int, float, json, text or varchar, or
//! `table_union(id, data1 int, data2 varchar(2000), data3 text, data4 bigint, data5 json, data6 double
//! precision)`. `id` is *i* + 1. The option `distribution` says what the other values are:
//!
//! * `random`: nothing to gain by compression but what the alphabet leaves;
//! * `compressible`: few digits, few words;
//! * `repeated`: as random, but of one of 100 places, drawn evenly for each value: `data` of row *i* is what
//!   random has in row `take 100` of `r(i, 0)`. Each value is incompressible; the column is not.
//!
//! Each column has streams of its own: `r` with the key `mix(key + γ c)` for its values, *c* counting the columns
//! behind `id` from 1, and with `mix(key + γ (c + 16))` for the characters of its texts.
//!
//! | type | random | compressible | logical bytes |
//! |---|---|---|---|
//! | int | the lower 32 bits of `r(i, 1)` | `take 1000` of it | 4 |
//! | bigint | `r(i, 1)` | 10^9 and `take 1000` of it | 8 |
//! | float | the upper 53 bits of `r(i, 1)`, over 2^53 | `take 10,000` of it, over 100 | 8 |
//! | varchar | 200 to 2000 characters | so many bytes of words | 1100 |
//! | text | 1000 to 3999 characters | so many bytes of words | 2499.5 |
//! | json | `{"code":"C","kind":"C","level":D,"score":S,"tags":["C","C"],"note":"N"}`: C 8 characters, N 100 to 499 | C a word, N so many bytes of words | 406.5, 396.6 |
//!
//! Lengths are drawn evenly, from `r(i, 2)`. Characters are the 63 from `0` to `o` without the backslash, and `z` in
//! its place, eight of them for each number of the stream: number 512 *i* + *k* has the characters from 8 *k* on, the lower
//! six bits of each byte. Words are 64 of English, a space behind each, ten for each number; the last one is cut off.
//! In an object, the C have the numbers 512 *i* + 500 to 503, and `r(i, 1)` gives D (`take 10`) and S (100 and `take
//! 900`, a point, three digits).
//! Of text, two thirds of the rows pass the 2 kB from which PostgreSQL compresses and moves values.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_schema::{DataType, Field, Schema};

use super::columns::{Memory, SLACK, field, numbers, room, texts};
use super::number::{Stream, THREE_DIGITS};
use super::{Choice, Options, Set, SetSpec};
use crate::dataset::{Plain, Sequence, Table};
use crate::dictionary_batch::ColumnGroup;
use crate::encode::sql_text_field;

pub(super) const SPEC: SetSpec = SetSpec {
    name: "types",
    about: "a table of one type of column, or of all: bigint, int, float, json, text, varchar, union",
    options: &[
        Choice {
            name: "table",
            values: &["text", "bigint", "int", "float", "json", "varchar", "union"],
        },
        Choice {
            name: "distribution",
            values: &["random", "compressible", "repeated"],
        },
    ],
    rows_max: i32::MAX as u64,
    make: |seed, options| Box::new(Types::new(seed, options)),
};

/// Places of repeated values.
const REPEATED: u64 = 100;
/// Numbers of the characters' stream that each place has: enough for the longest text.
const PLACE_NUMBERS: u64 = 512;
/// The first of a place's numbers that the parts of an object are made of; those before make its note.
const PARTS: u64 = 500;
/// What an object has besides its parts and its note.
const OBJECT_BYTES: f64 = 9.0 + 10.0 + 10.0 + 1.0 + 9.0 + 7.0 + 10.0 + 3.0 + 11.0 + 2.0;
/// Room for what an object has besides its note.
const OBJECT_BYTES_MAX: usize = 128;
/// The longest value that a B-tree takes for certain: a third of a page.
const INDEXED_BYTES_MAX: u64 = 2700;
/// The first of the characters' streams.
const CHARACTERS: u64 = 16;

const WORDS: [&str; WORD_COUNT] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "it", "with", "as", "was", "on", "are",
    "by", "this", "order", "value", "table", "index", "server", "client", "number", "report",
    "system", "record", "state", "error", "update", "change", "message", "process", "request",
    "account", "result", "time", "date", "name", "line", "page", "disk", "memory", "network",
    "storage", "query", "answer", "column", "field", "length", "total", "first", "last", "open",
    "closed", "failed", "ready", "waiting", "morning", "evening", "north", "south", "station",
    "vehicle", "driver",
];
const WORD_COUNT: usize = 64;
/// Words that one random number chooses.
const WORDS_OF_NUMBER: usize = 10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Distribution {
    Random,
    Compressible,
    Repeated,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Int,
    Bigint,
    Float,
    Json,
    /// Of this length, drawn evenly.
    Text(Lengths),
}

#[derive(Clone, Copy, Debug)]
struct Lengths {
    least: u64,
    count: u64,
}

const TEXT: Lengths = Lengths {
    least: 1000,
    count: 3000,
};
const VARCHAR: Lengths = Lengths {
    least: 200,
    count: 1801,
};
const NOTE: Lengths = Lengths {
    least: 100,
    count: 400,
};

/// One column behind `id`.
struct Column {
    field: Field,
    kind: Kind,
    values: Values,
}

/// Where the values of a column come from.
struct Values {
    distribution: Distribution,
    numbers: Stream,
    characters: Stream,
    words: Arc<[Word; WORD_COUNT]>,
}

struct Types {
    table: &'static str,
    columns: Vec<Column>,
    memory: Memory,
}

impl Types {
    fn new(seed: i64, options: &Options) -> Self {
        let distribution = match options.get("distribution") {
            "compressible" => Distribution::Compressible,
            "repeated" => Distribution::Repeated,
            _ => Distribution::Random,
        };
        let (table, columns) = columns_of(options.get("table"));
        let words = Arc::new(WORDS.map(Word::new));
        let streams = Stream::new(seed);
        let columns = (1..).zip(columns).map(|(number, (field, kind))| Column {
            field,
            kind,
            values: Values {
                distribution,
                numbers: streams.other(number),
                characters: streams.other(number + CHARACTERS),
                words: Arc::clone(&words),
            },
        });
        Self {
            table,
            columns: columns.collect(),
            memory: Memory::default(),
        }
    }
}

/// The name of a table, and its columns behind `id`.
fn columns_of(table: &str) -> (&'static str, Vec<(Field, Kind)>) {
    let int = |name| (field(name, DataType::Int32), Kind::Int);
    let bigint = |name| (field(name, DataType::Int64), Kind::Bigint);
    let float = |name| (field(name, DataType::Float64), Kind::Float);
    let text = |name| (field(name, DataType::Utf8), Kind::Text(TEXT));
    let varchar = |name, sql| (sql_text_field(name, sql), Kind::Text(VARCHAR));
    let json = |name| (sql_text_field(name, "json"), Kind::Json);
    match table {
        "bigint" => ("table_bigint", vec![bigint("data")]),
        "int" => ("table_int", vec![int("data")]),
        "float" => ("table_float", vec![float("data")]),
        "json" => ("table_json", vec![json("data")]),
        "varchar" => ("table_varchar", vec![varchar("data", "varchar")]),
        "union" => {
            let columns = vec![
                int("data1"),
                varchar("data2", "varchar(2000)"),
                text("data3"),
                bigint("data4"),
                json("data5"),
                float("data6"),
            ];
            ("table_union", columns)
        }
        _ => ("table_text", vec![text("data")]),
    }
}

impl Set for Types {
    fn table(&self) -> Table {
        let mut fields = vec![field("id", DataType::Int32)];
        fields.extend(self.columns.iter().map(|column| column.field.clone()));
        let indexable = self
            .columns
            .iter()
            .filter(|column| column.kind.can_be_indexed());
        let indexable = indexable.map(|column| column.field.name().as_str());
        let bytes = self.columns.iter().map(Column::average_bytes);
        Table {
            name: self.table.to_owned(),
            metrics: fields.len(),
            schema: Arc::new(Schema::new(fields)),
            plain: Some(Plain {
                usual_indexes: std::iter::once("id")
                    .chain(indexable)
                    .map(str::to_owned)
                    .collect(),
                sequence: Some(Sequence {
                    column: "id",
                    first: 1,
                    step: 1,
                }),
                row_bytes: 4.0 + bytes.sum::<f64>(),
            }),
        }
    }

    fn text_bytes_max(&self) -> usize {
        4096
    }

    fn column_groups(&mut self, rows: Range<u64>) -> Vec<ColumnGroup> {
        let ids = rows
            .clone()
            .map(|row| i32::try_from(row + 1).unwrap_or(i32::MAX));
        let mut columns = vec![numbers::<Int32Type>(ids).into()];
        for column in &self.columns {
            columns.push(column.make(&rows, &mut self.memory).into());
        }
        columns
    }
}

/// A word and the space behind it, and how many bytes that is.
#[derive(Clone, Copy)]
struct Word {
    text: [u8; 8],
    bytes: usize,
}

impl Word {
    fn new(word: &str) -> Self {
        let mut text = [b' '; 8];
        text[..word.len()].copy_from_slice(word.as_bytes());
        Self {
            text,
            bytes: word.len() + 1,
        }
    }
}

impl Kind {
    /// Whether every value of it fits an index.
    fn can_be_indexed(self) -> bool {
        match self {
            Self::Int | Self::Bigint | Self::Float => true,
            Self::Json => false,
            Self::Text(lengths) => lengths.least + lengths.count <= INDEXED_BYTES_MAX,
        }
    }
}

impl Lengths {
    /// The length in this place.
    #[inline]
    fn of(self, stream: Stream, place: u64) -> usize {
        let least = usize::try_from(self.least).unwrap_or(0);
        least + stream.fraction(place, 2).take(self.count)
    }
}

impl Column {
    /// The values of these rows.
    fn make(&self, rows: &Range<u64>, memory: &mut Memory) -> ArrayRef {
        let values = &self.values;
        let count = usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX);
        let places = (0..count).map(|row| values.place(rows.start + row as u64));
        match self.kind {
            Kind::Int => numbers::<Int32Type>(places.map(|place| values.int(place))),
            Kind::Bigint => numbers::<Int64Type>(places.map(|place| values.bigint(place))),
            Kind::Float => numbers::<Float64Type>(places.map(|place| values.float(place))),
            Kind::Json => texts(memory, places, |place, out, at| {
                values.put_object(place, out, at)
            }),
            Kind::Text(lengths) => texts(memory, places, |place, out, at| {
                values.put_text(place, lengths.of(values.numbers, place), out, at)
            }),
        }
    }

    /// Average bytes of a value: over its places where it is repeated, as expected otherwise.
    fn average_bytes(&self) -> f64 {
        let average = |lengths: Lengths| match self.values.distribution {
            Distribution::Repeated => {
                let all = (0..REPEATED).map(|place| lengths.of(self.values.numbers, place));
                mean(all.map(|length| length as u64).sum(), REPEATED)
            }
            _ => mean(lengths.least + lengths.least + lengths.count - 1, 2),
        };
        match self.kind {
            Kind::Int => 4.0,
            Kind::Bigint | Kind::Float => 8.0,
            Kind::Text(lengths) => average(lengths),
            Kind::Json => OBJECT_BYTES + 4.0 * self.values.part_bytes() + average(NOTE),
        }
    }
}

impl Values {
    /// The place that a row has its value from.
    #[inline]
    fn place(&self, row: u64) -> u64 {
        match self.distribution {
            Distribution::Repeated => self.numbers.fraction(row, 0).take(REPEATED) as u64,
            _ => row,
        }
    }

    fn is_compressible(&self) -> bool {
        self.distribution == Distribution::Compressible
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    fn int(&self, place: u64) -> i32 {
        if self.is_compressible() {
            let small = self.numbers.fraction(place, 1).take(1000);
            return i32::try_from(small).unwrap_or(0);
        }
        self.numbers.number(place, 1) as i32
    }

    #[inline]
    fn bigint(&self, place: u64) -> i64 {
        if self.is_compressible() {
            let more = self.numbers.fraction(place, 1).take(1000);
            return 1_000_000_000 + i64::try_from(more).unwrap_or(0);
        }
        self.numbers.number(place, 1).cast_signed()
    }

    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "the numbers are below 2^53")]
    fn float(&self, place: u64) -> f64 {
        if self.is_compressible() {
            return self.numbers.fraction(place, 1).take(10_000) as f64 / 100.0;
        }
        (self.numbers.number(place, 1) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Writes a text of this length, and returns where it ends.
    #[inline]
    fn put_text(&self, place: u64, length: usize, out: &mut Vec<u8>, at: usize) -> usize {
        let index = place.wrapping_mul(PLACE_NUMBERS);
        let window = room(out, at, length + SLACK);
        if self.is_compressible() {
            self.put_words(index, length, window);
        } else {
            self.put_characters(index, length, window);
        }
        at + length
    }

    #[inline]
    fn put_characters(&self, first: u64, length: usize, out: &mut [u8]) {
        let mut numbers = self.characters.from(first);
        let pieces = &mut out.as_chunks_mut::<8>().0[..length.div_ceil(8)];
        for piece in &mut *pieces {
            *piece = numbers.next().to_le_bytes();
        }
        // Apart from the loop above, this one goes by many bytes at a time.
        for byte in pieces.as_flattened_mut() {
            *byte = character(*byte);
        }
    }

    #[inline]
    fn put_words(&self, first: u64, length: usize, out: &mut [u8]) {
        let mut at = 0;
        for index in first.. {
            if at >= length {
                return;
            }
            let mut number = self.characters.at(index);
            for _ in 0..WORDS_OF_NUMBER {
                let word = &self.words[lowest_six(number)];
                out[at..at + 8].copy_from_slice(&word.text);
                at += word.bytes;
                number >>= 6;
            }
        }
    }

    /// Writes an object, and returns where it ends.
    fn put_object(&self, place: u64, out: &mut Vec<u8>, start: usize) -> usize {
        let mut at = start;
        let window = room(out, start, OBJECT_BYTES_MAX);
        let mut put = |bytes: &[u8]| {
            window[at - start..][..bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let parts = place.wrapping_mul(PLACE_NUMBERS).wrapping_add(PARTS);
        let mut parts = self.characters.from(parts);
        let mut put_part = |before: &[u8], put: &mut dyn FnMut(&[u8])| {
            put(before);
            let number = parts.next();
            if self.is_compressible() {
                let word = &self.words[lowest_six(number)];
                put(&word.text[..word.bytes - 1]);
            } else {
                put(&number.to_le_bytes().map(character));
            }
        };
        let mut digits = self.numbers.fraction(place, 1);
        put_part(b"{\"code\":\"", &mut put);
        put_part(b"\",\"kind\":\"", &mut put);
        put(b"\",\"level\":");
        put(&[digits.one()]);
        put(b",\"score\":");
        put(&THREE_DIGITS[100 + digits.take(900)][..3]);
        put(b".");
        put(&digits.three()[..3]);
        put_part(b",\"tags\":[\"", &mut put);
        put_part(b"\",\"", &mut put);
        put(b"\"],\"note\":\"");
        let end = self.put_text(place, NOTE.of(self.numbers, place), out, at);
        out[end..end + 2].copy_from_slice(b"\"}");
        end + 2
    }

    /// Average bytes of a part of an object.
    fn part_bytes(&self) -> f64 {
        if !self.is_compressible() {
            return 8.0;
        }
        let bytes = self.words.iter().map(|word| word.bytes as u64 - 1);
        mean(bytes.sum(), WORD_COUNT as u64)
    }
}

/// The character of a byte of a random number, see the module.
#[inline]
fn character(byte: u8) -> u8 {
    match (byte & 0x3f) + b'0' {
        b'\\' => b'z',
        other => other,
    }
}

#[inline]
fn lowest_six(number: u64) -> usize {
    usize::try_from(number & 0x3f).unwrap_or(0)
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn mean(sum: u64, count: u64) -> f64 {
    sum as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_need_no_escape() {
        let characters: Vec<_> = (0..=255).map(character).collect();
        let expected = b"0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[z]^_`abcdefghijklmno";
        assert_eq!(characters, expected.repeat(4));
    }
}
