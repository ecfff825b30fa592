//! Rows of which some columns are looked up are the same as if none were.

#![expect(
    clippy::expect_used,
    reason = "what is not as expected must fail the test"
)]

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Date32Array, Float32Array, Int16Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use loadstone_gen::dataset::Source;
use loadstone_gen::dictionary_batch::{
    AnyBatch, ColumnGroup, Dictionary, DictionaryBatch, Entries, KeyedColumns,
};
use loadstone_gen::encode::{EncodeError, copy_binary, copy_text, csv};
use loadstone_gen::rows::{Config, RowsSource, logical_bytes};
use proptest::prelude::*;

/// What an entry of a column is made of, and whether there is one.
type Seed = (bool, i16, String);

/// A column of one of four types.
fn entries(kind: u8, seeds: &[Seed]) -> Entries {
    let given = || seeds.iter().map(|seed| seed.0.then_some(seed));
    let small = || given().map(|seed| seed.map(|seed| seed.1));
    match kind {
        0 => Entries::Small(small().collect()),
        1 => Entries::Days(
            small()
                .map(|days| days.map(i32::from))
                .collect::<Date32Array>(),
        ),
        2 => Entries::Single(
            small()
                .map(|value| value.map(|value| f32::from(value) / 8.0))
                .collect::<Float32Array>(),
        ),
        _ => Entries::Text(
            given()
                .map(|seed| seed.map(|seed| &*seed.2))
                .collect::<StringArray>(),
        ),
    }
}

fn seeds(count: usize) -> impl Strategy<Value = Vec<Seed>> {
    let text = prop_oneof![
        4 => "[a-z]{0,9}",
        2 => "[A-Za-z ]{0,70}",
        1 => "[\\\\\"',\\t\\n é]{0,12}",
        1 => "[a-z]{150,250}",
    ];
    let share = prop::sample::select(vec![1.0, 1.0, 0.7, 0.0]);
    share.prop_flat_map(move |share| {
        let seed = (prop::bool::weighted(share), any::<i16>(), text.clone());
        prop::collection::vec(seed, count)
    })
}

/// One to four columns, of one to thirty entries.
fn dictionary() -> impl Strategy<Value = Arc<Dictionary>> {
    (1..30_usize).prop_flat_map(|count| {
        let columns = prop::collection::vec((0..4_u8, seeds(count)), 1..5);
        columns.prop_map(|columns| {
            let columns = columns.iter().map(|(kind, seeds)| entries(*kind, seeds));
            Arc::new(Dictionary::new(columns.collect()))
        })
    })
}

/// A group of so many rows, and how many keys its dictionary has.
fn group(rows: usize) -> impl Strategy<Value = ColumnGroup> {
    let own = (0..4_u8, seeds(rows))
        .prop_map(|(kind, seeds)| ColumnGroup::Column(ArrayRef::from(entries(kind, &seeds))));
    let looked = dictionary().prop_flat_map(move |dictionary| {
        let last = u16::try_from(dictionary.len()).expect("few") - 1;
        let keys = prop::collection::vec(0..=last, rows);
        keys.prop_map(move |keys| KeyedColumns::new(&dictionary, keys).into())
    });
    prop_oneof![own, looked]
}

fn batches() -> impl Strategy<Value = DictionaryBatch> {
    let rows = prop_oneof![0..5_usize, 60..70_usize, 0..300_usize];
    rows.prop_flat_map(|rows| {
        let groups = prop::collection::vec(group(rows), 1..7);
        groups.prop_map(|groups| {
            DictionaryBatch::try_new(schema(&groups), groups).expect("the groups fit")
        })
    })
}

/// Nullable columns of the types that the groups have.
fn schema(groups: &[ColumnGroup]) -> SchemaRef {
    let columns = groups.iter().flat_map(ColumnGroup::columns).enumerate();
    let field = |(number, column): (usize, &ArrayRef)| {
        Field::new(format!("c{number}"), column.data_type().clone(), true)
    };
    Arc::new(Schema::new(columns.map(field).collect::<Vec<_>>()))
}

/// The rows in every format.
fn encoded(rows: &impl AnyBatch) -> Result<[Vec<u8>; 3], EncodeError> {
    let mut out = [const { Vec::new() }; 3];
    let [text, binary, values] = &mut out;
    copy_text(rows, text)?;
    copy_binary(rows, binary)?;
    csv(rows, values)?;
    Ok(out)
}

fn check(rows: &DictionaryBatch, batch: &RecordBatch) -> Result<(), TestCaseError> {
    prop_assert_eq!(&rows.batch(), batch);
    prop_assert_eq!(rows.num_rows(), batch.num_rows());
    prop_assert_eq!(rows.num_columns(), batch.num_columns());
    prop_assert_eq!(logical_bytes(rows), logical_bytes(batch));
    prop_assert_eq!(encoded(rows), encoded(batch));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn rows_are_the_same_looked_up_and_as_columns(
        rows in batches(),
        first in any::<prop::sample::Index>(),
        count in any::<prop::sample::Index>(),
    ) {
        let batch = rows.batch();
        check(&rows, &batch)?;
        let first = first.index(rows.num_rows() + 1);
        let count = count.index(rows.num_rows() - first + 1);
        check(&rows.slice(first, count), &batch.slice(first, count))?;
    }

    #[test]
    fn flights_are_the_same_looked_up_and_as_columns(
        seed: i64,
        first in 0..1_u64 << 40,
        size in prop_oneof![1..3_usize, 1..1000_usize],
    ) {
        let config = Config { first, ..Config::new("flights", seed, 1000) };
        let mut source = RowsSource::new(&config).expect("the configuration is good");
        let (mut looked, mut columns) = (Vec::new(), Vec::new());
        while let Some(chunk) = source.next(size).expect("rows") {
            let rows = &chunk.tables[0].rows;
            check(rows, &rows.batch())?;
            copy_text(rows, &mut looked).expect("encodable");
            copy_text(&rows.batch(), &mut columns).expect("encodable");
        }
        prop_assert!(looked == columns);
    }
}

#[test]
fn parts_that_are_not_the_columns_are_refused() {
    let small = |values: Vec<Option<i16>>| Int16Array::from(values);
    let dictionary = |values| Arc::new(Dictionary::new(vec![Entries::Small(small(values))]));
    let whole = dictionary(vec![Some(1), Some(2)]);
    let keyed = |dictionary: &Arc<Dictionary>, keys: &[u16]| {
        ColumnGroup::from(KeyedColumns::new(dictionary, keys.to_vec()))
    };
    let schema = |kind, is_nullable| -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("a", kind, is_nullable)]))
    };
    let good =
        DictionaryBatch::try_new(schema(DataType::Int16, false), vec![keyed(&whole, &[1, 0])]);
    let expected: ArrayRef = Arc::new(small(vec![Some(2), Some(1)]));
    assert_eq!(good.expect("it fits").batch().column(0), &expected);
    let two = vec![keyed(&whole, &[0]), keyed(&whole, &[0])];
    for (kind, groups) in [
        (DataType::Int16, vec![keyed(&whole, &[0, 2])]),
        (DataType::Int32, vec![keyed(&whole, &[0])]),
        (DataType::Int16, vec![keyed(&dictionary(vec![None]), &[0])]),
        (
            DataType::Int16,
            vec![keyed(&Arc::new(Dictionary::new(vec![])), &[])],
        ),
        (DataType::Int16, two),
        (DataType::Int16, vec![]),
    ] {
        let refusal =
            DictionaryBatch::try_new(schema(kind, false), groups).expect_err("it does not fit");
        let words = "the groups of these rows are not the columns of their table";
        assert!(refusal.to_string().ends_with(words), "{refusal}");
    }
    let uneven = vec![keyed(&whole, &[0, 0]), keyed(&whole, &[0])];
    let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int16, false));
    let refusal = DictionaryBatch::try_new(Arc::new(Schema::new(fields.to_vec())), uneven);
    assert!(refusal.is_err());
}
