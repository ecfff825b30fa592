//! Against the simulation that wrote the text, and from arbitrary data sets and bytes.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use loadstone_gen::dataset::{Chunk, Source};
use loadstone_gen::tsbs::{Config, SimulationSource, UseCase, write};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::{chunks, fault, open, read};

fn text_of(config: &Config) -> Vec<u8> {
    let mut text = Vec::new();
    write(config, &mut text).expect("the configuration is good");
    text
}

/// What a chunk holds, comparable.
type Content = (Option<RecordBatch>, Vec<(usize, RecordBatch)>, u64, u64);

fn content(chunks: Vec<Chunk>) -> Vec<Content> {
    let tables = |chunk: &Chunk| {
        chunk
            .tables
            .iter()
            .map(|t| (t.table, t.rows.batch()))
            .collect()
    };
    chunks
        .into_iter()
        .map(|c| (c.tags.clone(), tables(&c), c.rows, c.metrics))
        .collect()
}

fn short(use_case: UseCase, seed: i64, scale: u64, epochs: i64) -> Config {
    let start = Config::new(use_case, seed);
    let end_ns = start.start_ns + epochs * start.interval_ns;
    Config {
        scale,
        end_ns,
        ..start
    }
}

fn check_against_simulation(config: &Config, piece: usize, rows: usize) {
    let mut simulated = SimulationSource::new(config).expect("the configuration is good");
    let mut read = open(text_of(config), piece).expect("a header");
    let (expected, given) = (simulated.dataset(), read.dataset());
    let schema = |table: &loadstone_gen::dataset::Table| {
        (table.name.clone(), table.schema.clone(), table.metrics)
    };
    assert_eq!(
        given.tags.as_ref().map(schema),
        expected.tags.as_ref().map(schema)
    );
    assert!(
        given
            .tables
            .iter()
            .map(schema)
            .eq(expected.tables.iter().map(schema))
    );
    let expected = content(chunks(&mut simulated, rows).expect("a simulation"));
    assert_eq!(
        content(chunks(&mut read, rows).expect("TSBS's text")),
        expected
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_text_of_a_simulation_is_read_as_its_chunks(
        which in 0..UseCase::NAMES.len(),
        seed: i64,
        scale in 1..40_u64,
        initial_scale in 0..40_u64,
        epochs in 0..40_i64,
        piece in prop_oneof![1..300_usize, Just(1 << 20)],
        rows in 1..3000_usize,
    ) {
        let (_, use_case) = UseCase::NAMES[which];
        let config = Config { initial_scale, max_metrics: 30, ..short(use_case, seed, scale, epochs) };
        check_against_simulation(&config, piece, rows);
    }
}

#[test]
fn larger_data_sets_are_read_as_their_simulation_makes_them() {
    for (_, use_case) in UseCase::NAMES {
        let config = short(use_case, 123, 300, 60);
        check_against_simulation(&config, usize::MAX, 10_000);
    }
}

/// Device and its own tag, time, values.
type Row = (usize, Option<String>, i64, Vec<Option<f64>>);

/// A data set of one table with each value as text, and what it is read as.
#[derive(Clone, Debug)]
struct TextTable {
    tags: Vec<String>,
    fields: Vec<String>,
    rows: Vec<Row>,
    /// Values of each device's tags and its load; devices differ by the first one.
    devices: Vec<(Vec<String>, Option<f32>)>,
}

impl TextTable {
    fn text(&self) -> String {
        let tags = self.tags.iter().map(|name| format!("{name} string,"));
        let tags: String = tags.collect();
        let fields = self.fields.join(",");
        let rows = self.rows.iter().map(|row| self.row_text(row));
        let rows: String = rows.collect();
        format!("tags,{tags}load float32\nother,a\nt,{fields}\n\n{rows}")
    }

    fn row_text(&self, (device, own, time, values): &Row) -> String {
        let (tags, load) = &self.devices[*device];
        let shown = |number: Option<String>| number.unwrap_or_default();
        let pairs = self.tags.iter().zip(tags);
        let pairs: Vec<_> = pairs
            .map(|(name, value)| format!("{name}={value},"))
            .collect();
        let pairs = pairs.concat();
        let load = shown(load.map(|load| load.to_string()));
        let own = shown(own.as_ref().map(|own| format!(",own={own}")));
        let values = values
            .iter()
            .map(|value| format!(",{}", shown(value.map(|value| value.to_string()))));
        let values: String = values.collect();
        format!("tags,{pairs}load={load}{own}\nt,{time}{values}\n")
    }
}

prop_compose! {
    fn any_rows()(
        tags in btree_set("[a-z]{1,8}[0-9]", 1..5),
        fields in btree_set("[a-z]{1,8}[0-9]", 1..12),
        count in 1..20_usize,
    )(
        devices in vec((vec("[^,=\n\r\0]{0,12}", tags.len()), proptest::option::of(-1e9_f32..1e9)), count),
        rows in vec((
            0..count,
            proptest::option::weighted(0.3, "[^,=\n\r\0]{0,12}"),
            any::<i64>(),
            vec(proptest::option::weighted(0.9, prop_oneof![
                any::<f64>().prop_filter("a number", |value| value.is_finite()),
                (-999_999_i32..999_999, 0..6_i32).prop_map(|(n, p)| f64::from(n) / 10_f64.powi(p)),
            ]), fields.len()),
        ), 0..60),
        tags in Just(tags),
        fields in Just(fields),
    ) -> TextTable {
        let devices = devices.into_iter().enumerate().map(|(number, (mut tags, load))| {
            tags[0] = format!("{number}{}", tags[0]);
            (tags, load)
        });
        TextTable {
            devices: devices.collect(),
            tags: tags.into_iter().collect(),
            fields: fields.into_iter().collect(),
            rows,
        }
    }
}

fn text_at(column: &dyn Array, row: usize) -> Option<String> {
    column
        .is_valid(row)
        .then(|| column.as_string::<i32>().value(row).to_owned())
}

/// A row of `tags`: its id, its texts, its load.
type TagsRow = (i32, Vec<String>, Option<f32>);

fn tags_rows(batch: &RecordBatch) -> impl Iterator<Item = TagsRow> {
    let ids = batch.column(0).as_primitive::<Int32Type>();
    let (load, texts) = batch.columns()[1..].split_last().expect("a load");
    let load = load.as_primitive::<Float32Type>();
    (0..batch.num_rows()).map(move |row| {
        let texts = texts
            .iter()
            .map(|column| text_at(column, row).unwrap_or_default());
        (
            ids.value(row),
            texts.collect(),
            load.is_valid(row).then(|| load.value(row)),
        )
    })
}

/// A row: its id, its own tag, its time, the bits of its fields.
type SeriesRow = (i32, Option<String>, i64, Vec<Option<u64>>);

fn series_rows(batch: &RecordBatch) -> impl Iterator<Item = SeriesRow> {
    let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let ids = batch.column(1).as_primitive::<Int32Type>();
    let (own, fields) = batch.columns()[2..].split_last().expect("a column");
    let bits = |column: &ArrayRef, row: usize| {
        let column = column.as_primitive::<Float64Type>();
        column.is_valid(row).then(|| column.value(row).to_bits())
    };
    (0..batch.num_rows()).map(move |row| {
        let fields = fields.iter().map(|column| bits(column, row)).collect();
        (ids.value(row), text_at(own, row), times.value(row), fields)
    })
}

/// Devices are numbered by order of appearance.
fn check_rows(expected: &TextTable, chunks: &[Chunk]) {
    let mut order: Vec<usize> = Vec::new();
    for (device, ..) in &expected.rows {
        if !order.contains(device) {
            order.push(*device);
        }
    }
    let tags = chunks.iter().filter_map(|chunk| chunk.tags.as_ref());
    let devices = (1..).zip(&order).map(|(id, &device)| {
        let (texts, load) = expected.devices[device].clone();
        (id, texts, load)
    });
    assert!(tags.flat_map(tags_rows).eq(devices));
    let tables = chunks.iter().flat_map(|chunk| &chunk.tables);
    assert!(tables.clone().all(|table| table.table == 1));
    let rows = expected.rows.iter().map(|(device, own, time, values)| {
        let id = order
            .iter()
            .position(|known| known == device)
            .expect("it has appeared");
        let own = own
            .as_ref()
            .map(|own| serde_json::json!({ "own": own }).to_string());
        let bits = values.iter().map(|value| value.map(f64::to_bits)).collect();
        (i32::try_from(id + 1).expect("few"), own, *time, bits)
    });
    let read: Vec<_> = tables
        .flat_map(|table| series_rows(&table.rows.batch()).collect::<Vec<_>>())
        .collect();
    assert_eq!(read, rows.collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn any_data_set_is_read_as_it_was_written(
        rows in any_rows(), piece in 1..400_usize, chunk in 1..50_usize,
    ) {
        let chunks = read(rows.text(), piece, chunk).expect("rows");
        check_rows(&rows, &chunks);
    }

    #[test]
    fn any_bytes_are_rows_or_a_fault(text: Vec<u8>, piece in 1..100_usize) {
        if let Err(error) = read(text.clone(), piece, 3) {
            prop_assert!(fault(&text, &error).is_some());
        }
    }

    /// However the bytes arrive, and however many rows are requested, the same fault is found.
    #[test]
    fn damage_is_found_where_it_is(
        rows in any_rows(), at: prop::sample::Index, damage in vec(any::<u8>(), 0..4), removed in 0..4_usize,
        pieces in vec(1..400_usize, 2), chunks in vec(1..50_usize, 2),
    ) {
        let mut text = rows.text().into_bytes();
        let at = at.index(text.len());
        let end = text.len().min(at + removed);
        text.splice(at..end, damage);
        let found: Vec<_> = pieces.iter().zip(&chunks).map(|(&piece, &chunk)| {
            read(text.clone(), piece, chunk).map(|chunks| chunks.iter().map(|chunk| chunk.rows).sum::<u64>())
        }).collect();
        match (&found[0], &found[1]) {
            (Ok(a), Ok(b)) => prop_assert_eq!(a, b),
            (Err(a), Err(b)) => {
                prop_assert_eq!(a.to_string(), b.to_string());
                prop_assert!(fault(&text, a).is_some());
            }
            (a, b) => prop_assert!(false, "{a:?} and {b:?}"),
        }
    }
}
