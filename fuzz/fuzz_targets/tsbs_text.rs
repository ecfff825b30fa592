//! Any bytes as TSBS's text: reading them never panics, every row is counted, and a fault is found at the same
//! place whatever the sizes of reads and chunks.

#![no_main]

use std::io::{self, Cursor, Read};

use libfuzzer_sys::fuzz_target;
use loadstone_gen::dataset::{Source, SourceError};
use loadstone_gen::tsbs::TextSource;

struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(self.1);
        self.0.read(&mut buffer[..length])
    }
}

fuzz_target!(|data: &[u8]| {
    // a header that is right lets more inputs come to the rows
    for header in [
        "",
        "tags,name string,load float32\ncpu,a,b\ngeneric_metrics,a,b,c\n\n",
    ] {
        let text = [header.as_bytes(), data].concat();
        let (small, large) = (read(&text, 5, 2), read(&text, 1 << 20, 1000));
        match (small, large) {
            (Ok(small), Ok(large)) => assert_eq!(small, large),
            (Err(small), Err(large)) => {
                assert!(
                    matches!(&small, SourceError::Format { line: 1.., hint, .. } if !hint.is_empty())
                );
                assert_eq!(small.to_string(), large.to_string());
            }
            (small, large) => panic!("{small:?} and {large:?}"),
        }
    }
});

/// Rows and metrics of a text.
fn read(text: &[u8], piece: usize, rows: usize) -> Result<(u64, u64), SourceError> {
    let mut source = TextSource::new(Pieces(Cursor::new(text.to_vec()), piece))?;
    let (mut total, mut metrics) = (0, 0);
    while let Some(chunk) = source.next(rows)? {
        let counted: usize = chunk.tables.iter().map(|table| table.rows.num_rows()).sum();
        assert_eq!(counted as u64, chunk.rows);
        total += chunk.rows;
        metrics += chunk.metrics;
    }
    Ok((total, metrics))
}
