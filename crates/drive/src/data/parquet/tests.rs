use std::fs;

use arrow_array::{
    Array, BooleanArray, Date32Array, Float32Array, Int16Array, Int64Array, LargeStringArray,
    StringArray, TimestampMillisecondArray, UInt8Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
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
    let path = folder.path().join(name);
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let properties = WriterProperties::builder()
        .set_compression(zstd)
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
    other[4] = ("small", "int32");
    assert!(refusal(&other).ends_with("column \"small\" is int16, and int32 is wanted"));
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
        cut in prop::option::of(any::<Index>()),
    ) {
        let folder = TempDir::new().unwrap();
        let path = write(&folder, "a", &batch(0, 60));
        let mut bytes = fs::read(&path).unwrap();
        let length = bytes.len();
        for (place, byte) in damage {
            bytes[place.index(length)] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(length));
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(mut source) = spec(&[path], &[]).open() {
            let read = all(&mut source, 25).map(|batches| batches.len());
            prop_assert!(read.is_err() || read.unwrap() < 1000);
        }
    }
}
