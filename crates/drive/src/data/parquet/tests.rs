use std::fs;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float32Array, Float64Array,
    Int16Array, Int64Array, LargeStringArray, StringArray, TimestampMillisecondArray,
    TimestampNanosecondArray, UInt8Array,
};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::TempDir;

use super::*;

/// Rows of several types, as a program would write them.
fn batch(first: i64, count: i64) -> RecordBatch {
    let numbers = first..first + count;
    let texts = numbers
        .clone()
        .map(|n| (n % 3 > 0).then(|| format!("text {n}")));
    let times: TimestampMillisecondArray = numbers.clone().map(|n| Some(n * 1001)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(numbers.clone().collect::<Int64Array>())),
        ("name", Arc::new(texts.collect::<LargeStringArray>())),
        (
            "day",
            Arc::new(
                numbers
                    .clone()
                    .map(|n| i32::try_from(n).ok())
                    .collect::<Date32Array>(),
            ),
        ),
        ("at", Arc::new(times)),
        (
            "small",
            Arc::new(
                numbers
                    .clone()
                    .map(|n| i16::try_from(n % 99).ok())
                    .collect::<Int16Array>(),
            ),
        ),
        (
            "is",
            Arc::new(
                numbers
                    .clone()
                    .map(|n| Some(n % 2 == 0))
                    .collect::<BooleanArray>(),
            ),
        ),
        (
            "real",
            Arc::new(
                numbers
                    .map(|n| Some(f32::from(u8::try_from(n % 100).unwrap()) / 8.0))
                    .collect::<Float32Array>(),
            ),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

fn write(folder: &TempDir, name: &str, batch: &RecordBatch) -> PathBuf {
    write_with(folder, name, batch, EnabledStatistics::Page)
}

fn write_with(
    folder: &TempDir,
    name: &str,
    batch: &RecordBatch,
    statistics: EnabledStatistics,
) -> PathBuf {
    let path = folder.path().join(name);
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder()
        .set_compression(zstd)
        .set_statistics_enabled(statistics)
        .set_max_row_group_row_count(Some(50))
        .build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path
}

fn spec(paths: &[PathBuf], columns: &[(&str, &str)]) -> ParquetSpec {
    let columns = columns.iter().map(|(name, kind)| WantedColumn {
        name: (*name).to_owned(),
        kind: (*kind).to_owned(),
    });
    ParquetSpec {
        paths: paths.to_vec(),
        columns: columns.collect(),
    }
}

fn all(source: &mut ParquetRows, size: usize) -> Result<Vec<RecordBatch>, SourceError> {
    let mut batches = Vec::new();
    while let Some(chunk) = source.next(size)? {
        assert!(chunk.rows <= size as u64);
        batches.push(chunk.tables[0].rows.batch());
    }
    Ok(batches)
}

#[test]
fn rows_come_in_the_order_of_files_and_columns_whatever_the_pieces() {
    let folder = TempDir::new().unwrap();
    let paths = [
        write(&folder, "a", &batch(0, 130)),
        write(&folder, "b", &batch(130, 7)),
    ];
    let wanted = [
        ("name", "text"),
        ("id", "int64"),
        ("at", "timestamp"),
        ("day", "date"),
        ("small", "int16"),
        ("real", "float32"),
        ("is", "bool"),
    ];
    let spec = spec(&paths, &wanted);
    let whole = all(&mut spec.open().unwrap(), 1000).unwrap().remove(0);
    assert_eq!(whole.num_rows(), 137);
    let names: Vec<_> = whole
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    assert_eq!(names, ["name", "id", "at", "day", "small", "real", "is"]);
    let texts: &StringArray = whole.column(0).as_string();
    assert!(texts.is_null(3) && texts.value(136) == "text 136");
    let times = whole.column(2).as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.value(136), 136 * 1_001_000);
    for size in [1, 10, 50, 136] {
        let pieces = all(&mut spec.open().unwrap(), size).unwrap();
        assert_eq!(pieces[0].num_rows(), size);
        assert_eq!(concat_batches(&whole.schema(), &pieces).unwrap(), whole);
    }
    let mut passing = spec.open().unwrap();
    assert_eq!(passing.pass(100).unwrap(), 100);
    let rest = all(&mut passing, 1000).unwrap().remove(0);
    assert_eq!(rest, whole.slice(100, 37));
}

#[test]
fn the_first_difference_of_columns_is_named() {
    let folder = TempDir::new().unwrap();
    let path = write(&folder, "a", &batch(0, 3));
    let good: Vec<(&str, &str)> = vec![
        ("id", "int64"),
        ("name", "text"),
        ("day", "date"),
        ("at", "timestamp"),
        ("small", "int16"),
        ("is", "bool"),
        ("real", "float32"),
    ];
    let refusal = |columns: &[(&str, &str)]| {
        let error = spec(std::slice::from_ref(&path), columns)
            .open()
            .err()
            .unwrap();
        error.to_string()
    };
    let mut other = good.clone();
    other[4] = ("small", "text");
    assert!(refusal(&other).ends_with("column \"small\" is int16, and text is wanted"));
    other[4] = ("small", "money");
    assert!(refusal(&other).ends_with("column \"small\" cannot be money"));
    other[4] = ("tiny", "int16");
    assert!(refusal(&other).ends_with("there is no column \"tiny\""));
    assert!(refusal(&good[..6]).ends_with("the table has no column \"real\""));
    let bytes: ArrayRef = Arc::new(UInt8Array::from(vec![1]));
    let strange = write(
        &folder,
        "u",
        &RecordBatch::try_from_iter([("u", bytes)]).unwrap(),
    );
    let error = spec(&[strange], &[]).open().err().unwrap().to_string();
    assert!(
        error.ends_with("column \"u\" is of the type UInt8, which is not loaded"),
        "{error}"
    );
    let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let second = write(
        &folder,
        "b",
        &RecordBatch::try_from_iter([("id", other)]).unwrap(),
    );
    let error = spec(&[path.clone(), second], &[])
        .open()
        .err()
        .unwrap()
        .to_string();
    assert!(error.ends_with("there is no column \"name\""), "{error}");
}

/// A table's worth of columns, typed as programs do by themselves.
fn loosely_typed(numbers: &[i64]) -> RecordBatch {
    let words: DictionaryArray<Int16Type> = numbers
        .iter()
        .map(|n| Some(["a", "b"][usize::from(n % 2 == 0)]))
        .collect();
    let reals = |by: i32| -> ArrayRef {
        let real = |n: &i64| i32::try_from(*n).map(|n| f64::from(n) / f64::from(by)).ok();
        Arc::new(numbers.iter().map(real).collect::<Float64Array>())
    };
    let times: TimestampNanosecondArray = numbers.iter().map(|n| Some(n * 5000)).collect();
    let days: TimestampMillisecondArray = numbers.iter().map(|n| Some(n * 86_400_000)).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("small", Arc::new(Int64Array::from(numbers.to_vec()))),
        ("gaps", reals(1)),
        ("real", reals(8)),
        ("word", Arc::new(words)),
        ("at", Arc::new(times)),
        ("day", Arc::new(days)),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

const STRICT: [(&str, &str); 6] = [
    ("small", "int16"),
    ("gaps", "int32"),
    ("real", "float32"),
    ("word", "text"),
    ("at", "timestamp"),
    ("day", "date"),
];

#[test]
fn values_of_other_types_are_cast_to_those_of_the_table() {
    let folder = TempDir::new().unwrap();
    let numbers: Vec<i64> = (-60..60).collect();
    let paths = [write(&folder, "a", &loosely_typed(&numbers))];
    let rows = all(&mut spec(&paths, &STRICT).open().unwrap(), 1000)
        .unwrap()
        .remove(0);
    let small = rows.column(0).as_primitive::<Int16Type>();
    assert!(small.values().iter().copied().eq(-60..60));
    let at = rows.column(4).as_primitive::<TimestampMicrosecondType>();
    assert_eq!((at.value(0), at.value(119)), (-300, 295));
    let expected: Vec<DataType> = [
        DataType::Int16,
        DataType::Int32,
        DataType::Float32,
        DataType::Utf8,
    ]
    .into();
    let kinds: Vec<_> = rows.columns()[..4]
        .iter()
        .map(|c| c.data_type().clone())
        .collect();
    assert_eq!(kinds, expected);
    let (gaps, day) = (
        cast::shown(rows.column(1), 0),
        cast::shown(rows.column(5), 0),
    );
    assert_eq!(
        (gaps.as_str(), day.as_str()),
        ("-60", "1969-11-02 00:00:00")
    );
    // The other way round it is the first file that decides, here of small numbers.
    let first = rows.project(&[0, 1, 2, 3, 4, 5]).unwrap();
    let both = [write(&folder, "first", &first), paths[0].clone()];
    let rows = all(&mut spec(&both, &[]).open().unwrap(), 1000)
        .unwrap()
        .remove(0);
    assert_eq!(rows.slice(0, 120), rows.slice(120, 120));
}

#[test]
fn a_value_that_does_not_fit_is_an_error_early_where_the_file_knows_and_in_its_row_where_not() {
    let folder = TempDir::new().unwrap();
    let mut numbers: Vec<i64> = (0..130).collect();
    numbers[107] = 40_000;
    let batch = loosely_typed(&numbers).project(&[0]).unwrap();
    let path = write(&folder, "known", &batch);
    let error = spec(&[path], &STRICT[..1]).open().err().unwrap();
    let words = "known: rows 101 to 130: column \"small\" has 40000, which int16 does not hold";
    assert!(error.to_string().ends_with(words), "{error}");
    assert_eq!(error.hint(), "mend that value, or leave its row out");
    let path = write_with(&folder, "unknown", &batch, EnabledStatistics::None);
    let error = all(&mut spec(&[path], &STRICT[..1]).open().unwrap(), 10)
        .err()
        .unwrap();
    let words = "unknown: row 108: column \"small\" has 40000, which int16 does not hold";
    assert!(error.to_string().ends_with(words), "{error}");
}

#[test]
fn times_of_two_zones_are_no_one_column() {
    let folder = TempDir::new().unwrap();
    let times: TimestampMillisecondArray = [Some(1)].into_iter().collect();
    let zoned: ArrayRef = Arc::new(times.clone().with_timezone("UTC"));
    let plain: ArrayRef = Arc::new(times);
    let paths = [("a", zoned), ("b", plain)].map(|(name, column)| {
        write(
            &folder,
            name,
            &RecordBatch::try_from_iter([("at", column)]).unwrap(),
        )
    });
    let error = spec(&paths, &[]).open().err().unwrap().to_string();
    assert!(
        error.ends_with("have another zone than in the first file"),
        "{error}"
    );
}

#[test]
fn what_is_no_parquet_is_refused_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("text");
    fs::write(&path, "1,2,3\n4,5,6\n".repeat(10)).unwrap();
    let error = spec(&[path], &[]).open().err().unwrap().to_string();
    assert!(error.contains("text is no Parquet: "), "{error}");
    let error = spec(&[folder.path().join("nosuch")], &[])
        .open()
        .err()
        .unwrap();
    assert!(error.to_string().starts_with("opening "), "{error}");
    assert!(spec(&[], &[]).check().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_damaged_file_is_an_error_or_rows_and_never_a_crash(
        damage in prop::collection::vec((any::<Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<Index>()), cast: bool,
    ) {
        let folder = TempDir::new().unwrap();
        let (rows, wanted) = if cast {
            (loosely_typed(&(0..60).collect::<Vec<_>>()), STRICT.as_slice())
        } else {
            (batch(0, 60), [].as_slice())
        };
        let path = write(&folder, "a", &rows);
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        for (place, byte) in damage {
            bytes[place.index(length)] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(length));
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(mut source) = spec(&[path], wanted).open() {
            let read = all(&mut source, 25).map(|batches| batches.len());
            prop_assert!(read.is_err() || read.unwrap() < 1000);
        }
    }
}
