//! The set `import`: sightings of mobile phones, twelve columns, about 190 bytes a row as text.
//!
//! The table is `test(a..k text, l timestamp)`. There are 20,000,000 persons; each row is about one of them, *p* = `take
//! 20,000,000` of `r(i, 0)`, drawn evenly. What belongs to the person is made of `q(p, n)`, which is `r` with another
//! key (`mix(key + γ)`), so that the same person has the same values in every row.
//!
//! | column | holds | bytes | made of | different values |
//! |---|---|---|---|---|
//! | a | version 4 uuid | 36 | `r(i, 1)`, `r(i, 2)` | every row its own |
//! | b | number of the record: 1 to 9, then 18 digits | 19 | `r(i, 3)` | 9·10^18, so as good as every row its own |
//! | c | name: one of 100 family names, frequent ones first, and one (a quarter) or two of 120 characters | 6 or 9 | `q(p, 0)` | 1,452,000 |
//! | d | telephone: one of 32 prefixes, 8 digits | 11 | `q(p, 1)` | 20 million persons, 3.2·10^9 numbers |
//! | e | number plate: one of 31 provinces, one of 24 letters, 5 of 34 characters | 9 | `q(p, 2)` | as d, 3.4·10^10 |
//! | f | IMEI: one of 1000 models, frequent ones first, 6 digits, check digit (Luhn) | 15 | `q(p, 3)` | as d, 10^9 |
//! | g | IMSI: 460, one of 8 networks, 10 digits | 15 | `q(p, 4)` | as d, 8·10^10 |
//! | h | MAC: one of 200 makers, 3 bytes | 17 | `q(p, 5)` | as d, 3.4·10^9 |
//! | i | account: 1 to 9, then 9 digits | 10 | `q(p, 6)` | as d, 9·10^9 |
//! | j | session: 11 of 36 characters | 11 | `r(i, 4)` | 1.3·10^17, so as good as every row its own |
//! | k | generation of the network: 2G 3 %, 3G 7 %, 4G 60 %, 5G 30 % | 2 | `r(i, 0)`, what *p* leaves | 4 |
//! | l | time: 2018-11-01 00:00 UTC, and 10 ms a row | 8 | *i* | every row its own, growing |
//!
//! Of *n* rows, 20 million (1 − e^(−n / 20 million)) persons are seen: 63 % of them in the first 20 million rows.
//! Published were the columns and, of eleven, one value each; which belongs to which letter, the cardinalities and `k` are
//! our choice. Indexes are usually added in the order a, b, f, i, l, as published; then the others.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::{DataType, Schema};

use super::columns::{Memory, TIME, field, texts_of, texts_up_to, times};
use super::number::{Fraction, Stream, THREE_DIGITS, hexadecimal, pairs};
use super::{ROWS_MAX, Set, SetSpec};
use crate::dataset::{Plain, Sequence, Table};
use crate::dictionary_batch::ColumnGroup;
use crate::mix::{GAMMA, finalize};

pub(super) const SPEC: SetSpec = SetSpec {
    name: "import",
    about: "sightings of mobile phones, 12 columns, about 190 bytes a row",
    options: &[],
    rows_max: ROWS_MAX,
    make: |seed, _| Box::new(Import::new(seed)),
};

const USUAL_INDEXES: [&str; 12] = ["a", "b", "f", "i", "l", "c", "d", "e", "g", "h", "j", "k"];
const PERSONS: u64 = 20_000_000;
/// 2018-11-01 00:00 UTC, microseconds since 1970.
const START_US: i64 = 1_541_030_400_000_000;
const STEP_US: i64 = 10_000;
/// Average octets of the texts, a quarter of the names being short, and 8 of the time.
const ROW_BYTES: f64 =
    36.0 + 19.0 + 8.25 + 11.0 + 9.0 + 15.0 + 15.0 + 17.0 + 10.0 + 11.0 + 2.0 + 8.0;

const FAMILY_NAMES: &str = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤";
const GIVEN_NAMES: &str = "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰红建国文斌辉鹏飞宇浩然子轩梓涵欣怡佳慧雪梅琳颖婷倩雅诗思雨晨曦阳光海波峰山川志远博学良才家兴荣贵祥瑞福安宁康健乐春夏秋冬云龙凤鸣翔天星月晶莹洁冰清心灵智仁义礼信诚正德厚道生泽睿哲彤菲蕾松柏";
const PROVINCES: &str = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼";

const PREFIXES: [&[u8; 3]; 32] = [
    b"130", b"131", b"132", b"133", b"134", b"135", b"136", b"137", b"138", b"139", b"150", b"151",
    b"152", b"153", b"155", b"156", b"157", b"158", b"159", b"170", b"176", b"177", b"178", b"180",
    b"181", b"182", b"183", b"185", b"186", b"187", b"188", b"189",
];
const NETWORKS: [&[u8; 5]; 8] = [
    b"46000", b"46001", b"46002", b"46003", b"46006", b"46007", b"46009", b"46011",
];
const GENERATIONS: [[u8; 2]; 100] = {
    let mut table = [*b"4G"; 100];
    let mut n = 0;
    while n < 40 {
        table[n] = if n < 3 {
            *b"2G"
        } else if n < 10 {
            *b"3G"
        } else {
            *b"5G"
        };
        n += 1;
    }
    table
};

const MODELS: u64 = 1000;
const MAKERS: u64 = 200;

const ALPHANUMERICS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// As on plates: without I and O.
const PLATE: &[u8; 34] = b"0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
static ALPHANUMERIC_PAIRS: [[u8; 2]; 36 * 36] = pairs(ALPHANUMERICS);
static PLATE_PAIRS: [[u8; 2]; 34 * 34] = pairs(PLATE);

/// A row's person, as a place of the persons' stream.
type Person = u64;

struct Import {
    rows: Stream,
    persons: Stream,
    tables: Tables,
    memory: Memory,
    /// The rows' own fractions, and their persons; kept for their memory.
    seen: Vec<(Fraction, Person)>,
}

/// What values are put together from.
struct Tables {
    family_names: Vec<[u8; 3]>,
    given_names: Vec<[u8; 3]>,
    plates: Vec<[u8; 4]>,
    models: Vec<Model>,
    makers: Vec<[u8; 9]>,
}

/// The type allocation code of a model, and its part of the check digit's sum.
struct Model {
    code: [u8; 8],
    sum: u8,
}

impl Import {
    fn new(seed: i64) -> Self {
        let rows = Stream::new(seed);
        Self {
            rows,
            persons: rows.other(1),
            tables: Tables::new(),
            memory: Memory::default(),
            seen: Vec::new(),
        }
    }
}

impl Set for Import {
    fn table(&self) -> Table {
        let texts = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        let mut columns: Vec<_> = texts.map(|name| field(name, DataType::Utf8)).into();
        columns.push(field("l", TIME));
        Table {
            name: "test".to_owned(),
            metrics: columns.len(),
            schema: Arc::new(Schema::new(columns)),
            plain: Some(Plain {
                usual_indexes: USUAL_INDEXES.map(str::to_owned).into(),
                sequence: Some(Sequence {
                    column: "l",
                    first: START_US,
                    step: STEP_US,
                }),
                row_bytes: ROW_BYTES,
            }),
        }
    }

    fn text_bytes_max(&self) -> usize {
        36
    }

    fn column_groups(&mut self, numbers: Range<u64>) -> Vec<ColumnGroup> {
        let (rows, persons, tables) = (self.rows, self.persons, &self.tables);
        let memory = &mut self.memory;
        self.seen.clear();
        self.seen.extend(numbers.clone().map(|row| {
            let mut own = rows.fraction(row, 0);
            let person = own.take(PERSONS) as u64;
            (own, person)
        }));
        let seen = || self.seen.iter().map(|(_, person)| *person);
        let own = || self.seen.iter().map(|(own, _)| *own);
        let count = usize::try_from(numbers.end - numbers.start).unwrap_or(usize::MAX);
        let rows_of = || (0..count).map(|index| numbers.start + index as u64);
        let times_us = rows_of().map(|row| START_US + row.cast_signed() * STEP_US);
        let columns = [
            texts_of(memory, rows_of(), |row, value| uuid(rows, row, value)),
            texts_of(memory, rows_of(), |row, value| {
                record(rows.fraction(row, 3), value);
            }),
            texts_up_to(memory, seen(), |p, value| {
                tables.name(persons.fraction(p, 0), value)
            }),
            texts_of(memory, seen(), |p, value| {
                telephone(persons.fraction(p, 1), value);
            }),
            texts_of(memory, seen(), |p, value| {
                tables.plate(persons.fraction(p, 2), value);
            }),
            texts_of(memory, seen(), |p, value| {
                tables.imei(persons.fraction(p, 3), value);
            }),
            texts_of(memory, seen(), |p, value| {
                imsi(persons.fraction(p, 4), value);
            }),
            texts_of(memory, seen(), |p, value| {
                tables.mac(persons.fraction(p, 5), value);
            }),
            texts_of(memory, seen(), |p, value| {
                account(persons.fraction(p, 6), value);
            }),
            texts_of(memory, rows_of(), |row, value| {
                session(rows.fraction(row, 4), value);
            }),
            texts_of(memory, own(), |mut own, value| {
                *value = GENERATIONS[own.take(100)];
            }),
            times(times_us.collect()),
        ];
        columns.map(ColumnGroup::from).into()
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "halves of a word")]
fn uuid(rows: Stream, row: u64, value: &mut [u8; 36]) {
    let high = rows.number(row, 1) & !0xf000 | 0x4000;
    let low = rows.number(row, 2) & !(0b11 << 62) | 0b10 << 62;
    let parts = [high >> 32, high, low >> 32, low].map(|half| hexadecimal(half as u32));
    *value = *b"........-....-....-....-............";
    value[..8].copy_from_slice(&parts[0]);
    value[9..13].copy_from_slice(&parts[1][..4]);
    value[14..18].copy_from_slice(&parts[1][4..]);
    value[19..23].copy_from_slice(&parts[2][..4]);
    value[24..28].copy_from_slice(&parts[2][4..]);
    value[28..].copy_from_slice(&parts[3]);
}

/// Digits in threes from a place to the end. Each three overwrite the byte behind them, but the last.
#[inline]
fn put_threes(value: &mut [u8], fraction: &mut Fraction) {
    let last = value.len() - 3;
    for at in (0..last).step_by(3) {
        value[at..at + 4].copy_from_slice(&fraction.three());
    }
    value[last..].copy_from_slice(&fraction.three()[..3]);
}

#[inline]
fn record(mut fraction: Fraction, value: &mut [u8; 19]) {
    value[0] = fraction.leading();
    put_threes(&mut value[1..], &mut fraction);
}

#[inline]
fn telephone(mut fraction: Fraction, value: &mut [u8; 11]) {
    value[..3].copy_from_slice(PREFIXES[fraction.take(32)]);
    put_threes(&mut value[3..9], &mut fraction);
    value[9..].copy_from_slice(&THREE_DIGITS[fraction.take(100)][1..3]);
}

#[inline]
fn imsi(mut fraction: Fraction, value: &mut [u8; 15]) {
    value[..5].copy_from_slice(NETWORKS[fraction.take(8)]);
    put_threes(&mut value[5..14], &mut fraction);
    value[14] = fraction.one();
}

#[inline]
fn account(mut fraction: Fraction, value: &mut [u8; 10]) {
    value[0] = fraction.leading();
    put_threes(&mut value[1..], &mut fraction);
}

#[inline]
fn session(mut fraction: Fraction, value: &mut [u8; 11]) {
    for at in [0, 2, 4, 6, 8] {
        value[at..at + 2].copy_from_slice(&ALPHANUMERIC_PAIRS[fraction.take(36 * 36)]);
    }
    value[10] = ALPHANUMERICS[fraction.take(36)];
}

impl Tables {
    fn new() -> Self {
        let letters = PLATE
            .iter()
            .filter(|character| character.is_ascii_uppercase());
        let plates = characters(PROVINCES).into_iter().flat_map(|[a, b, c]| {
            let letters = letters.clone();
            letters.map(move |letter| [a, b, c, *letter])
        });
        Self {
            family_names: characters(FAMILY_NAMES),
            given_names: characters(GIVEN_NAMES),
            plates: plates.collect(),
            models: (0..MODELS).map(Model::new).collect(),
            makers: (0..MAKERS).map(maker).collect(),
        }
    }

    /// The name; how many bytes of the value count.
    #[inline]
    fn name(&self, mut fraction: Fraction, value: &mut [u8; 9]) -> usize {
        let given = self.given_names.len() as u64;
        value[..3].copy_from_slice(&self.family_names[fraction.take_skewed(100)]);
        value[3..6].copy_from_slice(&self.given_names[fraction.take(given)]);
        value[6..].copy_from_slice(&self.given_names[fraction.take(given)]);
        if fraction.take(4) == 0 { 6 } else { 9 }
    }

    #[inline]
    fn plate(&self, mut fraction: Fraction, value: &mut [u8; 9]) {
        value[..4].copy_from_slice(&self.plates[fraction.take(31 * 24)]);
        value[4..6].copy_from_slice(&PLATE_PAIRS[fraction.take(34 * 34)]);
        value[6..8].copy_from_slice(&PLATE_PAIRS[fraction.take(34 * 34)]);
        value[8] = PLATE[fraction.take(34)];
    }

    #[inline]
    fn imei(&self, mut fraction: Fraction, value: &mut [u8; 15]) {
        let model = &self.models[fraction.take_skewed(MODELS)];
        value[..8].copy_from_slice(&model.code);
        let (high, low) = (fraction.take(1000), fraction.take(1000));
        value[8..12].copy_from_slice(&THREE_DIGITS[high]);
        value[11..15].copy_from_slice(&THREE_DIGITS[low]);
        let sum = model.sum + LUHN_MIDDLE[high] + LUHN_OUTER[low];
        value[14] = b'0' + (10 - sum % 10) % 10;
    }

    #[inline]
    fn mac(&self, mut fraction: Fraction, value: &mut [u8; 17]) {
        value[..9].copy_from_slice(&self.makers[fraction.take(MAKERS)]);
        let digits = hexadecimal(u32::try_from(fraction.take(1 << 24)).unwrap_or(0));
        value[9..].copy_from_slice(b"..:..:..");
        value[9..11].copy_from_slice(&digits[2..4]);
        value[12..14].copy_from_slice(&digits[4..6]);
        value[15..17].copy_from_slice(&digits[6..8]);
    }
}

impl Model {
    fn new(number: u64) -> Self {
        let reporting = if number.is_multiple_of(2) { 35 } else { 86 };
        let code = reporting * 1_000_000 + (number * 7919 + 10_007) % 1_000_000;
        let mut digits = [0; 8];
        digits.copy_from_slice(format!("{code:08}").as_bytes());
        let sum = digits.iter().enumerate().map(|(place, digit)| {
            let digit = digit - b'0';
            if place % 2 == 1 {
                doubled(digit.into())
            } else {
                digit
            }
        });
        Self {
            code: digits,
            sum: sum.sum::<u8>() % 10,
        }
    }
}

/// The sum of the digits of twice a digit.
#[expect(clippy::cast_possible_truncation, reason = "digits")]
const fn doubled(digit: usize) -> u8 {
    (if digit < 5 { 2 * digit } else { 2 * digit - 9 }) as u8
}

/// What three digits add to the check digit's sum, the middle one doubled.
static LUHN_MIDDLE: [u8; 1000] = luhn(true);
/// The same, the outer ones doubled.
static LUHN_OUTER: [u8; 1000] = luhn(false);

#[expect(clippy::cast_possible_truncation, reason = "digits")]
const fn luhn(middle: bool) -> [u8; 1000] {
    let mut table = [0; 1000];
    let mut n = 0;
    while n < 1000 {
        let (first, second, third) = (n / 100, n / 10 % 10, n % 10);
        table[n] = if middle {
            first as u8 + doubled(second) + third as u8
        } else {
            doubled(first) + second as u8 + doubled(third)
        };
        n += 1;
    }
    table
}

/// The first half of a MAC and its colons; neither a group's nor locally administered.
#[expect(clippy::cast_possible_truncation, reason = "the lower bytes are meant")]
fn maker(number: u64) -> [u8; 9] {
    let word = finalize(number.wrapping_mul(GAMMA)) as u32;
    let digits = hexadecimal(word & 0x00fc_ffff);
    let mut text = *b"..:..:..:";
    text[..2].copy_from_slice(&digits[2..4]);
    text[3..5].copy_from_slice(&digits[4..6]);
    text[6..8].copy_from_slice(&digits[6..]);
    text
}

/// The characters of a text, all of three bytes.
fn characters(text: &str) -> Vec<[u8; 3]> {
    text.as_bytes().as_chunks::<3>().0.to_vec()
}
