//! A client of a library that asks the same question in a fixed rhythm, and writes each answer down with its times.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use super::probe::Probe;
use crate::client::library::{Call, LibraryClient, LibraryError};
use crate::workload::blocking::BlockingProgram;
use crate::workload::{End, LoadCount, Readiness};

pub(super) struct LibraryProbe {
    probe: Arc<Probe>,
    value: Option<i64>,
}

impl LibraryProbe {
    pub(super) fn new(probe: Arc<Probe>) -> Self {
        Self { probe, value: None }
    }
}

impl BlockingProgram for LibraryProbe {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        if self.probe.failure().is_some() {
            Readiness::Ended
        } else {
            Readiness::Ready
        }
    }

    fn begin(&mut self) -> usize {
        0
    }

    fn call(&mut self, client: &mut dyn LibraryClient, call: &Call) -> Result<(), LibraryError> {
        self.value = None;
        let mut is_first = true;
        for batch in client.query(self.probe.sql(), call)? {
            let batch = batch.map_err(|error| LibraryError::new("answer", &error.to_string()))?;
            if is_first && batch.num_rows() > 0 {
                (is_first, self.value) = (false, first_value(&batch));
            }
        }
        Ok(())
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        if let End::Done { sent_ns, acked_ns } = *end {
            self.probe.write(sent_ns, acked_ns, self.value);
        }
        LoadCount::default()
    }
}

/// The first column of the first row as a whole number; none where it is null or none.
fn first_value(rows: &RecordBatch) -> Option<i64> {
    let column = rows.columns().first().filter(|column| column.is_valid(0))?;
    match column.data_type() {
        DataType::Int32 => Some(column.as_primitive::<Int32Type>().value(0).into()),
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(0)),
        DataType::UInt64 => i64::try_from(column.as_primitive::<UInt64Type>().value(0)).ok(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "times in microseconds are far below the limits"
        )]
        DataType::Float64 => Some(column.as_primitive::<Float64Type>().value(0) as i64),
        DataType::Decimal128(_, scale @ 0..) => {
            let digits = column.as_primitive::<Decimal128Type>().value(0);
            i64::try_from(digits / 10_i128.pow(u32::from(scale.unsigned_abs()))).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn the_first_value_is_read_as_a_whole_number() {
        let decimal = Decimal128Array::from(vec![1230]).with_precision_and_scale(20, 1);
        let columns: [(ArrayRef, Option<i64>); 5] = [
            (Arc::new(Int64Array::from(vec![7, 8])), Some(7)),
            (Arc::new(Int64Array::from(vec![None, Some(8)])), None),
            (Arc::new(Float64Array::from(vec![7.0])), Some(7)),
            (Arc::new(decimal.unwrap()), Some(123)),
            (Arc::new(StringArray::from(vec!["7"])), None),
        ];
        for (column, expected) in columns {
            let rows = RecordBatch::try_from_iter([("value", column)]).unwrap();
            assert_eq!(first_value(&rows), expected, "{rows:?}");
        }
    }
}
