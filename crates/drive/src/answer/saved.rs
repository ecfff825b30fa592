//! A digest exactly as it is, so that the answers that several hosts have had can be put together: what users see
//! leaves out what a kind does not need, and decimal digits would round.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Column, Digest};
use crate::protocol::value::Kind;

#[derive(Serialize, Deserialize)]
struct Saved {
    rows: u64,
    keys: u64,
    columns: Vec<SavedColumn>,
}

#[derive(Serialize, Deserialize)]
struct SavedColumn {
    name: String,
    kind: Kind,
    type_oid: Option<u32>,
    count: u64,
    crc: u64,
    times_us: (i64, i64),
    /// Bits of sum, abs and weighted.
    sums: [u64; 3],
    /// NaN, infinity, negative infinity.
    beyond: [u64; 3],
}

/// Write a digest.
pub(crate) fn serialize<S: Serializer>(digest: &Digest, serializer: S) -> Result<S::Ok, S::Error> {
    let columns = digest.columns.iter().map(|column| SavedColumn {
        name: column.name.clone(),
        kind: column.kind,
        type_oid: column.type_oid,
        count: column.count,
        crc: column.crc,
        times_us: (column.min_us, column.max_us),
        sums: [column.sum, column.abs, column.weighted].map(f64::to_bits),
        beyond: [column.nan, column.inf, column.neg_inf],
    });
    let (rows, keys) = (digest.rows, digest.keys);
    let saved = Saved {
        rows,
        keys,
        columns: columns.collect(),
    };
    saved.serialize(serializer)
}

/// Read one.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
    let saved = Saved::deserialize(deserializer)?;
    let columns = saved.columns.into_iter().map(|column| {
        let [sum, abs, weighted] = column.sums.map(f64::from_bits);
        let [nan, inf, neg_inf] = column.beyond;
        let (min_us, max_us) = column.times_us;
        Column {
            name: column.name,
            kind: column.kind,
            type_oid: column.type_oid,
            count: column.count,
            crc: column.crc,
            min_us,
            max_us,
            sum,
            abs,
            weighted,
            nan,
            inf,
            neg_inf,
        }
    });
    Ok(Digest {
        rows: saved.rows,
        keys: saved.keys,
        columns: columns.collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] Digest);

    fn column() -> impl Strategy<Value = Column> {
        let kind = prop::sample::select(vec![Kind::Number, Kind::Span, Kind::Time, Kind::Text]);
        let numbers = prop::array::uniform3(any::<f64>().prop_filter("no NaN", |x| !x.is_nan()));
        let counts = prop::array::uniform5(any::<u64>());
        (
            ".*",
            kind,
            any::<Option<u32>>(),
            numbers,
            counts,
            any::<(i64, i64)>(),
        )
            .prop_map(
                |(name, kind, type_oid, [sum, abs, weighted], counts, (min_us, max_us))| {
                    let [count, crc, nan, inf, neg_inf] = counts;
                    Column {
                        name,
                        kind,
                        type_oid,
                        count,
                        crc,
                        min_us,
                        max_us,
                        sum,
                        abs,
                        weighted,
                        nan,
                        inf,
                        neg_inf,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn a_digest_that_was_saved_is_the_same_to_the_last_bit(
            rows: u64, keys: u64, columns in prop::collection::vec(column(), 0..4),
        ) {
            let digest = Digest { rows, keys, columns };
            let text = serde_json::to_string(&Holder(digest.clone())).unwrap();
            let Holder(read) = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(read, digest);
        }
    }
}
