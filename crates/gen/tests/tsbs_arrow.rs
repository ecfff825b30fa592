//! TSBS's stream as Arrow, against a plain reading of its text.

#![expect(
    clippy::expect_used,
    reason = "what is not as expected must fail the test"
)]

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use loadstone_gen::dataset::{Chunk, Source};
use loadstone_gen::tsbs::{Config, SimulationSource, UseCase, write};
use proptest::prelude::*;

/// A row with everything as text: the table, the time, the tags' id, the fields' bits, the JSON.
type Row = (String, i64, i32, Vec<Option<u64>>, Option<String>);

/// What the text of a data set says, row by row, and its states of tags in order of appearance.
#[derive(Debug, Default, PartialEq)]
struct Content {
    rows: BTreeMap<String, Vec<Row>>,
    tags: Vec<Vec<Option<String>>>,
}

fn text_content(config: &Config) -> Content {
    let mut text = Vec::new();
    write(config, &mut text).expect("the configuration is good");
    let text = String::from_utf8(text).expect("text is UTF-8");
    let mut lines = text.lines();
    let tag_count = lines.next().expect("tags").split(',').count() - 1;
    let mut widths = BTreeMap::new();
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        let (name, fields) = line.split_once(',').expect("fields");
        widths.insert(name, fields.split(',').count());
    }
    let (mut content, mut ids) = (Content::default(), BTreeMap::new());
    while let (Some(tags), Some(values)) = (lines.next(), lines.next()) {
        let pairs: Vec<_> = tags
            .split(',')
            .skip(1)
            .map(|pair| pair.split_once('=').expect("a pair"))
            .collect();
        let (common, own) = pairs.split_at(tag_count);
        let common: Vec<_> = common
            .iter()
            .map(|(_, value)| (!value.is_empty()).then(|| (*value).to_owned()))
            .collect();
        let next = i32::try_from(ids.len() + 1).expect("few");
        let id = *ids.entry(common.clone()).or_insert(next);
        if id == next {
            content.tags.push(common);
        }
        let own: Vec<_> = own
            .iter()
            .map(|(name, value)| format!("\"{name}\":\"{value}\""))
            .collect();
        let json = (!own.is_empty()).then(|| format!("{{{}}}", own.join(",")));
        let mut values = values.split(',');
        let name = values.next().expect("a name").to_owned();
        let time = values.next().expect("a time").parse().expect("a number");
        let bits = |text: &str| text.parse::<f64>().ok().map(f64::to_bits);
        let mut fields: Vec<_> = values.map(bits).collect();
        fields.resize(widths[&*name], None);
        let rows = content.rows.entry(name.clone()).or_default();
        rows.push((name, time, id, fields, json));
    }
    content
}

fn add_rows(content: &mut Content, name: &str, rows: &RecordBatch) {
    let times = rows.column(0).as_primitive::<TimestampNanosecondType>();
    let tags = rows.column(1).as_primitive::<Int32Type>();
    let (last, fields) = rows.columns()[2..].split_last().expect("columns");
    let additional = last.as_string::<i32>();
    let to = content.rows.entry(name.to_owned()).or_default();
    for row in 0..rows.num_rows() {
        let field = |column: &std::sync::Arc<dyn Array>| {
            let column = column.as_primitive::<Float64Type>();
            column.is_valid(row).then(|| column.value(row).to_bits())
        };
        let json = additional
            .is_valid(row)
            .then(|| additional.value(row).to_owned());
        let fields = fields.iter().map(field).collect();
        to.push((
            name.to_owned(),
            times.value(row),
            tags.value(row),
            fields,
            json,
        ));
    }
}

fn add_tags(content: &mut Content, tags: &RecordBatch) {
    let ids = tags.column(0).as_primitive::<Int32Type>();
    for row in 0..tags.num_rows() {
        assert_eq!(
            usize::try_from(ids.value(row)),
            Ok(content.tags.len() + 1),
            "ids count up"
        );
        let tag = |column: &std::sync::Arc<dyn Array>| match column.data_type() {
            _ if column.is_null(row) => None,
            DataType::Float32 => Some(column.as_primitive::<Float32Type>().value(row).to_string()),
            _ => Some(column.as_string::<i32>().value(row).to_owned()),
        };
        let values = tags.columns()[1..].iter().map(tag).collect();
        content.tags.push(values);
    }
}

fn chunks(config: &Config, rows: usize) -> Vec<Chunk> {
    let mut source = SimulationSource::new(config).expect("the configuration is good");
    std::iter::from_fn(|| source.next(rows).expect("rows")).collect()
}

fn arrow_content(config: &Config, rows: usize) -> Content {
    let source = SimulationSource::new(config).expect("the configuration is good");
    let dataset = source.dataset().clone();
    let mut content = Content::default();
    for chunk in chunks(config, rows) {
        if let Some(tags) = &chunk.tags {
            add_tags(&mut content, tags);
        }
        for table in &chunk.tables {
            let name = &dataset.tables[table.table].name;
            add_rows(&mut content, name, &table.rows.batch());
        }
    }
    content
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn chunks_hold_what_the_text_says(
        which in 0..UseCase::NAMES.len(),
        seed: i64,
        scale in 1..40_u64,
        initial_scale in 0..40_u64,
        epochs in 1..40_i64,
        max_points in 0..4000_u64,
        (group, groups) in (0..4_u32, 1..5_u32).prop_filter("a group", |(a, b)| a < b),
        rows in 1..3000_usize,
    ) {
        let (_, use_case) = UseCase::NAMES[which];
        let config = Config {
            initial_scale, max_points, group, groups, max_metrics: 30,
            ..short(use_case, seed, scale, epochs)
        };
        prop_assert_eq!(arrow_content(&config, rows), text_content(&config));
    }

    #[test]
    fn chunks_are_full_and_counted(
        which in 0..UseCase::NAMES.len(),
        seed: i64,
        scale in 1..900_u64,
        rows in 1..3000_usize,
    ) {
        let (_, use_case) = UseCase::NAMES[which];
        let config = short(use_case, seed, scale, 3);
        let chunks = chunks(&config, rows);
        let written = write(&config, &mut std::io::sink()).expect("good");
        let total = |count: fn(&Chunk) -> u64| chunks.iter().map(count).sum::<u64>();
        prop_assert_eq!(total(|c| c.rows), written.rows);
        prop_assert_eq!(total(|c| c.metrics), written.metrics);
        for (index, chunk) in chunks.iter().enumerate() {
            let sum: usize = chunk.tables.iter().map(|table| table.rows.num_rows()).sum();
            prop_assert_eq!(sum as u64, chunk.rows);
            prop_assert!(sum == rows || index + 1 == chunks.len());
            prop_assert!(chunk.tables.is_sorted_by(|a, b| a.table < b.table));
        }
    }
}

#[test]
fn tables_are_those_of_the_header_in_its_order() {
    for (_, use_case) in UseCase::NAMES {
        let config = short(use_case, 1, 2, 1);
        let source = SimulationSource::new(&config).expect("good");
        let mut text = Vec::new();
        write(&config, &mut text).expect("good");
        let text = String::from_utf8(text).expect("UTF-8");
        let header = text.split_once("\n\n").expect("a header").0;
        let dataset = source.dataset();
        let names = |table: &loadstone_gen::dataset::Table| {
            let fields = &table.schema.fields()[2..2 + table.metrics];
            let fields: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
            format!("{},{}", table.name, fields.join(","))
        };
        let tables: Vec<_> = dataset.tables.iter().map(names).collect();
        assert_eq!(header.split_once('\n').expect("lines").1, tables.join("\n"));
        let tags = dataset.tags.as_ref().expect("tags");
        let kind = |kind: &DataType| match kind {
            DataType::Float32 => "float32",
            _ => "string",
        };
        let tags: Vec<_> = tags.schema.fields()[1..]
            .iter()
            .map(|tag| format!(",{} {}", tag.name(), kind(tag.data_type())))
            .collect();
        assert_eq!(
            header.lines().next(),
            Some(&*format!("tags{}", tags.concat()))
        );
    }
}

#[test]
fn chunks_that_cannot_be_are_refused() {
    let mut source = SimulationSource::new(&Config::new(UseCase::Iot, 1)).expect("good");
    for rows in [0, (1 << 24) + 1] {
        let refusal = source.next(rows).expect_err("no chunk has so many rows");
        assert!(refusal.to_string().contains("use 1 to 16777216"));
    }
}
