//! Compression by pieces: each becomes a gzip member or a zstd frame of its own.
//!
//! Members and frames that follow each other are one valid stream (RFC 1952 §2.2, RFC 8878 §3), so every core
//! can compress, and the result does not depend on how many there are.

use std::io;

use flate2::{Compress, Compression as Level, FlushCompress, Status};
use serde::Deserialize;

use crate::data::formats::{Compress as Codec, formats};

/// How the output is compressed.
#[derive(Debug, Clone, Copy, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

const GZIP_LEVEL: u32 = 6;
/// Of DEFLATE: the largest.
const WINDOW_BITS: u8 = 15;

/// A compressor with its memory, for one thread.
pub(super) enum Compressor {
    None,
    Gzip(Compress),
    Zstd(Box<dyn Codec>),
}

impl Compression {
    /// What the names of files compressed so end in.
    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }

    pub(super) fn compressor(self) -> io::Result<Compressor> {
        Ok(match self {
            Self::None => Compressor::None,
            Self::Gzip => {
                let level = Level::new(GZIP_LEVEL);
                Compressor::Gzip(Compress::new_gzip(level, WINDOW_BITS))
            }
            Self::Zstd => Compressor::Zstd(formats()?.zstd()?),
        })
    }
}

impl Compressor {
    /// What is to be written for `plain`: itself, or what it becomes in `packed`.
    pub(super) fn pack<'a>(
        &mut self,
        plain: &'a [u8],
        packed: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        packed.clear();
        match self {
            Self::None => return Ok(plain),
            Self::Gzip(compress) => deflate(compress, plain, packed)?,
            Self::Zstd(codec) => codec.compress(plain, packed)?,
        }
        Ok(packed)
    }
}

fn deflate(compress: &mut Compress, plain: &[u8], packed: &mut Vec<u8>) -> io::Result<()> {
    compress.reset();
    // A margin over deflate's own bound; should it not do, the loop goes round again.
    packed.reserve(plain.len() + plain.len() / 1000 + 64);
    loop {
        let done = usize::try_from(compress.total_in()).map_err(io::Error::other)?;
        match compress.compress_vec(&plain[done..], packed, FlushCompress::Finish)? {
            Status::StreamEnd => return Ok(()),
            Status::Ok | Status::BufError => packed.reserve(plain.len() / 8 + 64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;

    fn packed(compression: Compression, pieces: &[Vec<u8>]) -> Vec<u8> {
        let mut compressor = compression.compressor().unwrap();
        let (mut all, mut buffer) = (Vec::new(), Vec::new());
        for piece in pieces {
            all.extend_from_slice(compressor.pack(piece, &mut buffer).unwrap());
        }
        all
    }

    fn unpacked(compression: Compression, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        match compression {
            Compression::None => plain.extend_from_slice(bytes),
            Compression::Gzip => {
                let mut reader = flate2::read::MultiGzDecoder::new(bytes);
                reader.read_to_end(&mut plain).unwrap();
            }
            Compression::Zstd => unreachable!("zstd is not ours"),
        }
        plain
    }

    proptest! {
        #[test]
        fn joined_pieces_are_one_stream(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..5000), 1..6)
        ) {
            for compression in [Compression::None, Compression::Gzip] {
                let bytes = packed(compression, &pieces);
                prop_assert_eq!(unpacked(compression, &bytes), pieces.concat());
            }
        }
    }

    #[test]
    fn text_becomes_smaller() {
        let text = vec![b"tags,name=truck_1\nreadings,1451606400000000000,1,2,3\n".repeat(20_000)];
        let bytes = packed(Compression::Gzip, &text);
        assert!(bytes.len() * 20 < text[0].len(), "{}", bytes.len());
        assert_eq!(unpacked(Compression::Gzip, &bytes), text[0]);
    }
}
