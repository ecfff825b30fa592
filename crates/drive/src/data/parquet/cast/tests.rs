use arrow_array::{
    BinaryArray, BooleanArray, Date32Array, Int16Array, Int32Array, TimestampNanosecondArray,
    UInt64Array,
};
use proptest::prelude::*;

use super::*;

fn of<A: Array + 'static>(values: A) -> ArrayRef {
    Arc::new(values)
}

fn micros() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, None)
}

#[test]
fn values_become_those_of_another_type_where_they_fit() {
    let whole = of(Int16Array::from(vec![Some(1), None, Some(-3)]));
    let days = of(Date32Array::from(vec![Some(0), Some(-1)]));
    let cases = [
        (of(Int64Array::from(vec![Some(1), None, Some(-3)])), &whole),
        (of(Int32Array::from(vec![Some(1), None, Some(-3)])), &whole),
        (
            of(Float64Array::from(vec![Some(1.0), None, Some(-3.0)])),
            &whole,
        ),
        (
            of(Float32Array::from(vec![Some(1.0), None, Some(-3.0)])),
            &whole,
        ),
        (
            of(BooleanArray::from(vec![Some(true), None, Some(false)])),
            &of(Int16Array::from(vec![Some(1), None, Some(0)])),
        ),
        (
            of(UInt64Array::from(vec![40_000])),
            &of(Int32Array::from(vec![40_000])),
        ),
        (
            of(Float64Array::from(vec![33.636_7, f64::INFINITY])),
            &of(Float32Array::from(vec![33.636_7, f32::INFINITY])),
        ),
        (
            of(Float32Array::from(vec![0.5])),
            &of(Float64Array::from(vec![0.5])),
        ),
        (
            of(Int64Array::from(vec![1 << 53])),
            &of(Float64Array::from(vec![9_007_199_254_740_992.0])),
        ),
        (
            of(TimestampNanosecondArray::from(vec![-1000, 2_000_000])),
            &of(TimestampMicrosecondArray::from(vec![-1, 2000])),
        ),
        (
            of(TimestampNanosecondArray::from(vec![0, -DAY_US * 1000])),
            &days,
        ),
        (
            of(Date32Array::from(vec![Some(0), Some(-1)])),
            &of(TimestampMicrosecondArray::from(vec![0, -DAY_US])),
        ),
        (
            of(BinaryArray::from(vec![Some("ü".as_bytes()), None])),
            &of(StringArray::from(vec![Some("ü"), None])),
        ),
    ];
    for (from, to) in cases {
        let become_ = cast(&from, to.data_type()).unwrap();
        assert_eq!(&become_, to, "{} as {}", from.data_type(), to.data_type());
        assert!(fits(from.data_type(), to.data_type()));
    }
}

#[test]
fn the_first_row_that_does_not_fit_is_told_with_its_value() {
    let nanoseconds = PrimitiveArray::<TimestampNanosecondType>::from(vec![1001]);
    let cases = [
        (
            of(Int64Array::from(vec![
                None,
                Some(1),
                Some(32_768),
                Some(-40_000),
            ])),
            DataType::Int16,
            (2, "32768"),
        ),
        (
            of(Float64Array::from(vec![2.0, f64::NAN])),
            DataType::Int64,
            (1, "NaN"),
        ),
        (
            of(Float64Array::from(vec![ABOVE_INT64])),
            DataType::Int64,
            (0, "9.223372036854776e18"),
        ),
        (
            of(Float64Array::from(vec![1e300])),
            DataType::Float32,
            (0, "1e300"),
        ),
        (
            of(Int64Array::from(vec![(1 << 53) + 1])),
            DataType::Float64,
            (0, "9007199254740993"),
        ),
        (
            of(UInt64Array::from(vec![u64::MAX])),
            DataType::Int64,
            (0, "18446744073709551615"),
        ),
        (
            of(nanoseconds),
            micros(),
            (0, "1970-01-01 00:00:00.000001001"),
        ),
        (
            of(TimestampMicrosecondArray::from(vec![0, 1_000_000])),
            DataType::Date32,
            (1, "1970-01-01 00:00:01"),
        ),
        (
            of(BinaryArray::from(vec![b"a".as_slice(), b"\xff"])),
            DataType::Utf8,
            (1, "bytes that are no UTF-8"),
        ),
    ];
    for (from, to, (row, value)) in cases {
        assert_eq!(cast(&from, &to), Err(row), "{} as {to}", from.data_type());
        assert_eq!(shown(&from, row), value);
    }
}

#[test]
fn a_fraction_is_no_whole_number() {
    let halves = of(Float64Array::from(vec![2.0, 2.5]));
    assert_eq!(cast(&halves, &DataType::Int64), Err(1));
    assert_eq!(shown(&halves, 1), "2.5");
}

#[test]
fn types_that_have_nothing_in_common_do_not_fit() {
    for (from, to) in [
        (DataType::Utf8, DataType::Int16),
        (DataType::Int16, DataType::Utf8),
        (DataType::Int64, micros()),
        (micros(), DataType::Int64),
        (DataType::Int16, DataType::Boolean),
        (DataType::Int32, DataType::Date32),
        (DataType::Boolean, DataType::Float64),
        (DataType::Time64(TimeUnit::Microsecond), DataType::Int64),
    ] {
        assert!(!fits(&from, &to), "{from} as {to}");
    }
}

proptest! {
    #[test]
    fn integers_are_narrowed_as_rust_does_it(
        values in prop::collection::vec(prop::option::of(-40_000_i64..40_000), 0..50), from in 0_usize..50,
    ) {
        let from = from.min(values.len());
        let column = of(Int64Array::from(values.clone())).slice(from, values.len() - from);
        let wanted: Result<Vec<_>, usize> = values[from..]
            .iter()
            .enumerate()
            .map(|(row, value)| value.map(i16::try_from).transpose().map_err(|_| row))
            .collect();
        let found = cast(&column, &DataType::Int16);
        prop_assert_eq!(found, wanted.map(|values| of(Int16Array::from(values))));
    }

    #[test]
    fn numbers_that_come_back_are_the_same(values in prop::collection::vec(any::<f64>(), 1..20)) {
        let column = of(Float64Array::from(values.clone()));
        if let Ok(whole) = cast(&column, &DataType::Int64) {
            let back = cast(&whole, &DataType::Float64);
            prop_assert!(back.is_err() || back.unwrap().as_primitive::<Float64Type>().values().iter().zip(&values).all(|(a, b)| (a - b).abs() < f64::EPSILON));
        }
    }
}
