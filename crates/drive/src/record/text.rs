//! Latencies as text, exact: moments as whole numbers, histograms as their log format has them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer as Reader, Serializer as _, V2DeflateSerializer};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Latency, Moments};

#[derive(Serialize, Deserialize)]
struct LatencyText {
    moments: Moments,
    histogram: String,
}

impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.moments.count == 0 {
            return serializer.serialize_none();
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .map_err(S::Error::custom)?;
        let written = LatencyText {
            moments: self.moments,
            histogram: STANDARD.encode(&bytes),
        };
        written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(written) = Option::<LatencyText>::deserialize(deserializer)? else {
            return Ok(Self::unused());
        };
        let bytes = (STANDARD.decode(&written.histogram)).map_err(D::Error::custom)?;
        let histogram: Histogram<u32> = Reader::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(D::Error::custom)?;
        // With the bounds of all others, so that it can be added to them.
        let mut latency = Self::new();
        latency.moments = written.moments;
        (latency.histogram.add(&histogram)).map_err(D::Error::custom)?;
        Ok(latency)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn latencies_come_back_as_they_were(samples in prop::collection::vec(0_u64..4_000_000_000_000, 0..200)) {
            let mut latency = Latency::new();
            for &ns in &samples {
                latency.record(ns);
            }
            let text = serde_json::to_string(&latency).unwrap();
            let back: Latency = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(back.moments, latency.moments);
            if samples.is_empty() {
                prop_assert_eq!(text, "null");
            } else {
                prop_assert_eq!(back.histogram, latency.histogram);
            }
        }
    }
}
