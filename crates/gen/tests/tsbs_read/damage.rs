//! Damaged texts: what is said, and of which line.

use std::io::{self, Cursor, Read};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use loadstone_gen::dataset::{Source, SourceError};
use loadstone_gen::tsbs::TextSource;

use super::{fault, open, read};

const HEADER: &str = "tags,name string,load float32\ncpu,user,idle\ngeneric_metrics,a,b\n\n";
const ROW: &str = "tags,name=x,load=5\ncpu,10,1,2\n";

/// The message of the fault in a text, which must begin at this line.
fn message(text: impl Into<Vec<u8>>, line: u64) -> String {
    let text = text.into();
    let error = read(text.clone(), 7, 1000)
        .map(|chunks| chunks.len())
        .expect_err("a fault");
    assert_eq!(
        fault(&text, &error).map(|(line, _)| line),
        Some(line),
        "{error}"
    );
    let SourceError::Format { message, hint, .. } = error else {
        panic!("{error}");
    };
    format!("{message}: {hint}")
}

#[test]
fn what_is_no_text_of_tsbs_is_recognised() {
    let cases: [(&[u8], &str); 9] = [
        (b"", "there is no data"),
        (
            b"\x1f\x8b\x08\0\0\0\0\0",
            "compressed with gzip: pipe it through zcat",
        ),
        (
            b"\x28\xb5\x2f\xfd\x04",
            "compressed with zstd: pipe it through zstdcat",
        ),
        (b"PAR1\x15\x04", "Parquet"),
        (b"ARROW1\0\0", "Arrow"),
        (
            b"cpu,hostname=host_0 usage_user=58i 1451606400000000000\n",
            "begins with \"tags,\"",
        ),
        (b"tags\n", "no tags"),
        (
            b"tags,hostname=host_0,region=x\ncpu,1,2\n",
            "the header before it is missing",
        ),
        (b"tags,name string\r\n", "carriage return"),
    ];
    for (text, expected) in cases {
        let given = message(text, 1);
        assert!(given.contains(expected), "{given}");
    }
}

#[test]
fn a_damaged_header_is_refused() {
    let cases = [
        ("tags,name string\n", 2, "does not end"),
        ("tags,name string\n\n", 2, "no tables"),
        ("tags,name string\ncpu,user", 2, "does not end"),
        ("tags,name string\ncpu\n\n", 2, "no fields"),
        (
            "tags,name string\ncpu,user,user\n\n",
            2,
            "\"user\" is there twice",
        ),
        (
            "tags,name string\ncpu,time\n\n",
            2,
            "\"time\" is there twice",
        ),
        (
            "tags,name string\ncpu,a\ncpu,b\n\n",
            3,
            "\"cpu\" is there twice",
        ),
        (
            "tags,name string\ntags,name string\n\n",
            2,
            "\"tags\" cannot be",
        ),
        (
            "tags,name string,name string\ncpu,a\n\n",
            1,
            "\"name\" is there twice",
        ),
        ("tags,name date\ncpu,a\n\n", 1, "type \"date\""),
        ("tags,name\ncpu,a\n\n", 1, "\"name\" has no type"),
        ("tags,name string\ncpu,a,\n\n", 2, "\"\" cannot be"),
    ];
    for (text, line, expected) in cases {
        let given = message(text, line);
        assert!(given.contains(expected), "{given}");
    }
    assert!(message(&b"tags,name string\ncpu,\xff\n\n"[..], 2).contains("not UTF-8"));
}

/// Lines after a good row, the line of the fault, and words of its message.
#[rustfmt::skip]
const DAMAGED_ROWS: [(&str, u64, &str); 24] = [
    ("tags,name=x,load=5\n", 7, "ends after a line of tags"),
    ("tags,name=x,load=5\ncpu,10,1,2", 8, "\"cpu,10,1,2\", has no end"),
    ("tags,name=x,lo", 7, "has no end"),
    ("tags,name=x,load=5\ntags,name=x,load=5\n", 8, "whose row is missing"),
    ("cpu,10,1,2\n", 7, "instead of a line of tags"),
    ("\n", 7, "an empty line"),
    ("tags,name=x,load=5\nmem,10,1\n", 8, "\"mem\" is not among those of the header: cpu, generic_metrics"),
    ("tags,name=x,load=5\ncpu,10,1\n", 8, "has 1 fields, but cpu has 2"),
    ("tags,name=x,load=5\ncpu,10,1,2,3\n", 8, "has 3 fields, but cpu has 2"),
    ("tags,name=x,load=5\ngeneric_metrics,10,1,2,3\n", 8, "has 3 fields, but generic_metrics has 2"),
    ("tags,name=x,load=5\ncpu,10,1,2x\n", 8, "idle is \"2x\", which is not a number"),
    ("tags,name=x,load=5\ncpu,10,1e999,2\n", 8, "user is \"1e999\""),
    ("tags,name=x,load=5\ncpu,1.5,1,2\n", 8, "\"1.5\" is not a time"),
    ("tags,name=x,load=5\ncpu,9223372036854775808,1,2\n", 8, "is not a time"),
    ("tags,name=x,load=5\ncpu,,1,2\n", 8, "\"\" is not a time"),
    ("tags,name=x,load=5\ncpu,10,1,2\r\n", 8, "carriage return: TSBS ends lines with a line feed alone"),
    ("tags,name=x,load=5\r\ncpu,10,1,2\r\n", 7, "carriage return"),
    ("tags,name=x\ncpu,10,1,2\n", 7, "has 1 tags, the header has 2"),
    ("tags,other=x,load=5\ncpu,10,1,2\n", 7, "tag 1 is \"other=x\", the header says \"name=\""),
    ("tags,name=a,b,load=5\ncpu,10,1,2\n", 7, "cannot contain a comma"),
    ("tags,name=x,load=five\ncpu,10,1,2\n", 7, "load=\"five\" is not a number"),
    ("tags,name=x,load=5,own=1,own=2\ncpu,10,1,2\n", 7, "\"own\" is there twice"),
    ("tags,name=x,load=5,name=2\ncpu,10,1,2\n", 7, "\"name\" is there twice"),
    ("tags,name=x,load=5,own\ncpu,10,1,2\n", 7, "\"own\" is not a tag"),
];

#[test]
fn a_damaged_row_is_refused_with_its_line() {
    for (rows, line, expected) in DAMAGED_ROWS {
        let given = message(format!("{HEADER}{ROW}{rows}"), line);
        assert!(given.contains(expected), "{given}");
    }
    let text = [HEADER.as_bytes(), b"tags,name=\xff,load=5\ncpu,10,1,2\n"].concat();
    assert!(message(text, 5).contains("not UTF-8"));
}

#[test]
fn a_fault_stays_where_it_is() {
    let text = format!("{HEADER}{ROW}{ROW}tags,name=x,load=5\ncpu,10,1,x\n");
    let mut source = open(text, 1000).expect("a header");
    assert_eq!(
        source.next(1).expect("a row").map(|chunk| chunk.rows),
        Some(1)
    );
    let first = source.next(10).expect_err("a fault").to_string();
    assert_eq!(source.next(10).expect_err("a fault").to_string(), first);
}

#[test]
fn lines_may_be_long_but_not_endless() {
    let long = "x".repeat(16 << 20);
    let row = format!("{HEADER}tags,name={},load=5\ncpu,10,1,2\n", &long[20..]);
    assert_eq!(read(row, usize::MAX, 10).expect("a row").len(), 1);
    let row = format!("{HEADER}tags,name={long},load=5\ncpu,10,1,2\n");
    assert!(
        read(row, usize::MAX, 10)
            .expect_err("a fault")
            .to_string()
            .starts_with("line 5 (byte 65): the line is longer than 16 MiB")
    );
    let row = format!("{HEADER}tags,name=x,load=5\ncpu,10,1,{long}");
    assert!(
        read(row, usize::MAX, 10)
            .expect_err("a fault")
            .to_string()
            .starts_with("line 6 (byte 84): the line is longer")
    );
    let endless = TextSource::new(io::repeat(b'x'))
        .map(|_| ())
        .expect_err("a fault");
    assert_eq!(
        endless.to_string(),
        "line 1 (byte 0): the line is longer than 16 MiB"
    );
}

#[test]
fn hosts_of_devops_generic_may_have_fewer_fields_than_the_header() {
    let text = format!(
        "{HEADER}tags,name=x,load=5\ngeneric_metrics,10,1\ntags,name=y,load=\ngeneric_metrics,10,3,4\n"
    );
    let chunks = read(text, 5, 10).expect("two rows");
    let [chunk] = &chunks[..] else {
        panic!("{chunks:?}");
    };
    assert_eq!((chunk.rows, chunk.metrics), (2, 3));
    let rows = chunk.tables[0].rows.batch();
    let column = rows.column(3).as_primitive::<Float64Type>();
    assert_eq!(column.iter().collect::<Vec<_>>(), [None, Some(4.0)]);
}

#[test]
fn numbers_among_tags_are_the_same_device_however_they_are_written() {
    let row = |load: &str| format!("tags,name=x,load={load}\ncpu,10,1,2\n");
    let text = format!(
        "{HEADER}{}{}{}{}",
        row("2000"),
        row("2000.0"),
        row("2e3"),
        row("2000")
    );
    let chunks = read(text, 1000, 10).expect("rows");
    assert_eq!(chunks[0].tags.as_ref().map(RecordBatch::num_rows), Some(1));
}

#[test]
fn a_reader_that_fails_is_named_with_its_place() {
    struct Failing(Cursor<Vec<u8>>, bool);
    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the disk is gone")),
                count => Ok(count),
            }
        }
    }
    let text = format!("{HEADER}{ROW}");
    let length = text.len();
    let mut source =
        TextSource::new(Failing(Cursor::new(text.into_bytes()), false)).expect("a header");
    assert_eq!(
        source.next(1).expect("a row").map(|chunk| chunk.rows),
        Some(1)
    );
    let error = source.next(1).expect_err("a failure").to_string();
    assert_eq!(
        error,
        format!("reading after {length} bytes: the disk is gone")
    );
}
