use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use proptest::prelude::*;

use super::*;
use crate::encode::{copy_binary, copy_text, csv};

/// Rows of a number and two texts, as a file of the format, and each row on its own.
fn encoded(format: Format, rows: &[(i32, Option<String>, String)]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "n",
            Arc::new(rows.iter().map(|row| row.0).collect::<Int32Array>()),
        ),
        (
            "a",
            Arc::new(
                rows.iter()
                    .map(|row| row.1.clone())
                    .collect::<StringArray>(),
            ),
        ),
        (
            "b",
            Arc::new(
                rows.iter()
                    .map(|row| Some(row.2.clone()))
                    .collect::<StringArray>(),
            ),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let each: Vec<Vec<u8>> = (0..rows.len())
        .map(|row| {
            let (one, mut out) = (batch.slice(row, 1), Vec::new());
            match format {
                Format::Text => copy_text(&one, &mut out),
                Format::Csv => csv(&one, &mut out),
                Format::Binary => copy_binary(&one, &mut out),
            }
            .unwrap();
            out
        })
        .collect();
    let mut file = each.concat();
    if format == Format::Binary {
        file = [&copy_binary::HEADER[..], &file, &copy_binary::TRAILER].concat();
    }
    (file, each)
}

/// All rows of a file that comes in pieces of this size, by at most so many at a time.
fn read(
    mut finder: RowFinder,
    file: &[u8],
    piece: usize,
    most: usize,
) -> Result<(Vec<u8>, u64), RowError> {
    let (mut kept, mut rows, mut come) = (Vec::new(), Vec::new(), 0);
    loop {
        let found = finder.find(&kept, come == file.len(), most)?;
        assert!(
            found.rows <= most && found.bytes.end <= found.consumed && found.consumed <= kept.len()
        );
        rows.extend_from_slice(&kept[found.bytes.clone()]);
        kept.drain(..found.consumed);
        if found.rows == 0 && found.consumed == 0 {
            if come == file.len() {
                assert!(kept.is_empty(), "{kept:?} is left");
                return Ok((rows, finder.rows()));
            }
            let next = (come + piece).min(file.len());
            kept.extend_from_slice(&file[come..next]);
            come = next;
        }
    }
}

fn format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::Text), Just(Format::Csv), Just(Format::Binary)]
}

/// Texts that are full of what means something to a format.
fn text() -> impl Strategy<Value = String> {
    "[a,\"\\\\.\t\n\r,é]{0,9}"
}

proptest! {
    #[test]
    fn any_rows_that_were_encoded_are_found_again(
        format in format(), piece in 1_usize..40, most in 1_usize..7,
        rows in prop::collection::vec((any::<i32>(), prop::option::of(text()), text()), 0..9),
    ) {
        let (file, each) = encoded(format, &rows);
        let (found, count) = read(RowFinder::new(format, 3, false), &file, piece, most).unwrap();
        prop_assert_eq!(count, each.len() as u64);
        prop_assert_eq!(found, each.concat());
    }

    #[test]
    fn what_is_no_row_is_found_at_the_same_place_whatever_the_pieces(
        format in format(), piece in 1_usize..9, most in 1_usize..4, header: bool, columns in 1_usize..4,
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            "([a,\"\\\\.\t\n\r]{0,6}\n){0,6}".prop_map(String::into_bytes),
        ],
    ) {
        let finder = RowFinder::new(format, columns, header);
        let small = read(finder.clone(), &bytes, piece, most);
        prop_assert_eq!(small, read(finder, &bytes, 1 << 20, 1000));
    }
}

/// Where, and what is wrong.
fn refused(format: Format, columns: usize, file: &[u8]) -> String {
    read(RowFinder::new(format, columns, false), file, 7, 2)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_row_of_another_shape_is_told_with_its_place() {
    let text = refused(Format::Text, 2, b"a\tb\nc\td\ne\nf\tg\n");
    assert_eq!(text, "row 3 (byte 8): it has 1 fields, but 2 are needed");
    let csv = refused(Format::Csv, 2, b"a,\"b,\nc\"\r\nd,e,f\r\n");
    assert_eq!(csv, "row 2 (byte 10): it has 3 fields, but 2 are needed");
    let open = refused(Format::Csv, 2, b"a,b\nc,\"d\n");
    assert_eq!(open, "row 2 (byte 4): a quoted field does not end");
    let header = &copy_binary::HEADER[..];
    let tuple = b"\0\x02\0\0\0\x01a\xff\xff\xff\xff";
    let wide = refused(Format::Binary, 1, &[header, tuple].concat());
    assert_eq!(wide, "row 1 (byte 19): it has 2 fields, but 1 are needed");
    let short = refused(Format::Binary, 2, &[header, tuple].concat());
    assert!(
        short.starts_with("row 2 (byte 30): the file ends in the middle"),
        "{short}"
    );
    let not = refused(Format::Binary, 2, b"a\tb\n");
    assert!(
        not.starts_with("row 1 (byte 0): the file does not begin"),
        "{not}"
    );
    let negative = refused(
        Format::Binary,
        1,
        &[header, b"\0\x01\xff\xff\xff\xfe"].concat(),
    );
    assert!(negative.contains("field 1 has the length -2"), "{negative}");
    for file in [
        &b"a\tb\n\\.\nc\td\n"[..],
        &[header, tuple, b"\xff\xff", tuple].concat(),
    ] {
        let format = if file[0] == b'P' {
            Format::Binary
        } else {
            Format::Text
        };
        let after = refused(format, 2, file);
        assert!(
            after.contains("after the mark that ends the data"),
            "{after}"
        );
    }
    let mark = refused(Format::Csv, 1, b"a\n\\.\n");
    assert!(
        mark.starts_with("row 2 (byte 2): a line contains nothing but"),
        "{mark}"
    );
}

#[test]
fn headers_marks_and_a_missing_end_of_line_are_no_rows() {
    let all = |format, columns, header, file: &[u8]| {
        let (bytes, rows) = read(RowFinder::new(format, columns, header), file, 3, 10).unwrap();
        (String::from_utf8(bytes).unwrap(), rows)
    };
    assert_eq!(
        all(Format::Csv, 2, true, b"x,y\r\na,b\r\n"),
        ("a,b\r\n".to_owned(), 1)
    );
    assert_eq!(
        all(Format::Text, 2, false, b"a\tb\n\\.\n"),
        ("a\tb\n".to_owned(), 1)
    );
    assert_eq!(
        all(Format::Text, 2, false, b"a\tb\n\\."),
        ("a\tb\n".to_owned(), 1)
    );
    assert_eq!(
        all(Format::Text, 1, false, b"a\\\nb\n"),
        ("a\\\nb\n".to_owned(), 1)
    );
    assert_eq!(all(Format::Csv, 1, true, b""), (String::new(), 0));
    assert_eq!(
        all(Format::Csv, 2, false, b"a,b\nc,d"),
        ("a,b\nc,d".to_owned(), 2)
    );
}
