//! Any bytes as a file of rows: looking for them never panics, rows lie one behind the other, and a fault is found
//! at the same place whatever the sizes of the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadstone_gen::rowfile::{Format, RowError, RowFinder};

fuzz_target!(|data: &[u8]| {
    let Some((&how, bytes)) = data.split_first() else {
        return;
    };
    let columns = 1 + usize::from(how >> 4);
    for format in [Format::Text, Format::Csv, Format::Binary] {
        // A header that is right lets more inputs come to the rows.
        let file = match format {
            Format::Binary if how & 1 == 0 => {
                [&b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0"[..], bytes].concat()
            }
            _ => bytes.to_vec(),
        };
        let finder = RowFinder::new(format, columns, how & 2 == 0);
        let piece = 1 + usize::from(how >> 2 & 3);
        assert_eq!(
            read(finder.clone(), &file, piece, 1),
            read(finder, &file, 1 << 20, 1000)
        );
    }
});

/// How many rows there are, and how many bytes they take.
fn read(
    mut finder: RowFinder,
    file: &[u8],
    piece: usize,
    most: usize,
) -> Result<(u64, usize), RowError> {
    let (mut kept, mut come, mut total) = (Vec::new(), 0, 0);
    loop {
        let found = finder.find(&kept, come == file.len(), most)?;
        assert!(found.rows <= most && found.bytes.start <= found.bytes.end);
        assert!(found.bytes.end <= found.consumed && found.consumed <= kept.len());
        total += found.bytes.len();
        kept.drain(..found.consumed);
        if found.rows == 0 && found.consumed == 0 {
            if come == file.len() {
                assert!(kept.is_empty());
                return Ok((finder.rows(), total));
            }
            let next = (come + piece).min(file.len());
            kept.extend_from_slice(&file[come..next]);
            come = next;
        }
    }
}
