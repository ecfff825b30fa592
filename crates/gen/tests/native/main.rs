//! Native data: pinned, the same in slices as in one piece, and like the real thing.

#![expect(
    clippy::expect_used,
    reason = "what is not as expected must fail the test"
)]

mod slices;
mod values;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, TimestampNanosecondType};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use loadstone_gen::dataset::{Chunk, Source};
use loadstone_gen::native::{Config, ConfigError, NativeSource};
use loadstone_gen::tsbs::{self, SimulationSource, UseCase};

fn config(use_case: UseCase, seed: i64, scale: u64, epochs: i64) -> Config {
    let start = Config::new(use_case, seed);
    let end_ns = start.start_ns + epochs * start.interval_ns;
    Config {
        scale,
        end_ns,
        ..start
    }
}

fn source(config: &Config) -> NativeSource {
    NativeSource::new(config).expect("the configuration is good")
}

fn chunks(source: &mut dyn Source, rows: usize) -> Vec<Chunk> {
    std::iter::from_fn(|| source.next(rows).expect("rows")).collect()
}

/// A column's content as bytes: each value, or the text and a zero.
fn column_bytes(column: &dyn Array) -> Vec<u8> {
    match column.data_type() {
        DataType::Int32 => {
            let values = column.as_primitive::<Int32Type>().values();
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        }
        DataType::Timestamp(..) => {
            let values = column.as_primitive::<TimestampNanosecondType>().values();
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        }
        DataType::Float64 => {
            let values = column.as_primitive::<Float64Type>().values();
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        }
        DataType::Float32 => {
            let values = column.as_primitive::<Float32Type>().values();
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        }
        _ => {
            let texts = column.as_string::<i32>().iter();
            texts
                .flat_map(|text| [text.unwrap_or("").as_bytes(), b"\0"].concat())
                .collect()
        }
    }
}

#[test]
fn hosts_are_those_of_tsbs() {
    for use_case in [UseCase::CpuOnly, UseCase::Devops] {
        let native = config(use_case, 42, 30, 1);
        let tsbs = tsbs::Config {
            scale: 30,
            end_ns: native.end_ns,
            ..tsbs::Config::new(use_case, 42)
        };
        let mut simulation = SimulationSource::new(&tsbs).expect("good");
        let (native, tsbs) = (
            chunks(&mut source(&native), 10_000),
            chunks(&mut simulation, 10_000),
        );
        assert_eq!(native[0].tags, tsbs[0].tags);
        for (native, tsbs) in native[0].tables.iter().zip(&tsbs[0].tables) {
            let fixed = [
                "time",
                "tags_id",
                "additional_tags",
                "boot_time",
                "uptime_in_seconds",
                "total",
                "inodes_total",
            ];
            let (native, tsbs) = (native.rows.batch(), tsbs.rows.batch());
            assert_eq!(native.schema(), tsbs.schema());
            for name in fixed {
                assert_eq!(
                    native.column_by_name(name),
                    tsbs.column_by_name(name),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn trucks_are_those_of_tsbs() {
    let native = config(UseCase::Iot, 42, 30, 1);
    let tsbs = tsbs::Config {
        scale: 30,
        ..tsbs::Config::new(UseCase::Iot, 42)
    };
    let mut simulation = SimulationSource::new(&tsbs).expect("good");
    let states = simulation
        .next(10_000)
        .expect("rows")
        .expect("a chunk")
        .tags
        .expect("tags");
    let tags = source(&native)
        .next(1)
        .expect("rows")
        .expect("a chunk")
        .tags
        .expect("tags");
    let row = |batch: &RecordBatch, row: usize| -> Vec<_> {
        batch.columns()[1..]
            .iter()
            .map(|column| column_bytes(&column.slice(row, 1)))
            .collect()
    };
    let states: Vec<_> = (0..states.num_rows())
        .map(|number| row(&states, number))
        .collect();
    assert_eq!(tags.num_rows(), 30);
    for number in 0..30 {
        assert!(states.contains(&row(&tags, number)));
    }
}

#[test]
fn a_device_is_the_same_among_more_devices() {
    let (few, many) = (
        config(UseCase::Devops, 3, 4, 1),
        config(UseCase::Devops, 3, 9, 1),
    );
    let (few, many) = (
        chunks(&mut source(&few), 1000),
        chunks(&mut source(&many), 1000),
    );
    for (few, many) in few[0].tables.iter().zip(&many[0].tables) {
        assert_eq!(few.rows.batch(), many.rows.batch().slice(0, 4));
    }
}

fn refusal(change: impl FnOnce(&mut Config)) -> ConfigError {
    let mut config = config(UseCase::Devops, 1, 2, 3);
    change(&mut config);
    NativeSource::new(&config)
        .map(|_| ())
        .expect_err("a refusal")
}

#[test]
fn what_cannot_be_made_is_refused() {
    let generic = refusal(|config| config.use_case = UseCase::DevopsGeneric);
    assert!(matches!(generic, ConfigError::Generic));
    for slice in [(2, 2), (0, 0), (u32::MAX, 1)] {
        let error = refusal(|config| config.slice = slice);
        assert!(matches!(error, ConfigError::Slice { index, count } if (index, count) == slice));
    }
    for interval_ns in [0, -5] {
        let error = refusal(|config| config.interval_ns = interval_ns);
        assert!(matches!(error, ConfigError::Interval(given) if given == interval_ns));
    }
    for scale in [0, 1 << 31, u64::MAX] {
        let error = refusal(|config| config.scale = scale);
        assert!(
            matches!(error, ConfigError::Tsbs(_) | ConfigError::Rows),
            "{error}"
        );
    }
    let endless = refusal(|config| {
        (config.start_ns, config.end_ns, config.interval_ns) = (i64::MIN, i64::MAX, 1);
    });
    assert!(matches!(endless, ConfigError::Rows));
}

#[test]
fn chunks_have_rows_but_not_too_many() {
    let good = config(UseCase::Devops, 1, 2, 3);
    assert!(source(&good).next(0).is_err() && source(&good).next(usize::MAX).is_err());
    let empty = Config {
        end_ns: good.start_ns - 1,
        ..good
    };
    assert!(source(&empty).next(10).expect("no rows").is_none());
}
