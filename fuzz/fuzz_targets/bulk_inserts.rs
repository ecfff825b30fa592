//! Inserts of scripts: what is read of one as data is what the statement says, and so is the same written again.

#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use loadstone_lua::inserts::plain_rows;

const SEEDS: &[&[u8]] = &[
    b"INSERT INTO sbtest1(k, c, pad) VALUES(1, 'a''b', '-'),(-20, '', NULL)",
    b"insert into s.t values ('x\ty\r\n', 0) , ( null,'' )",
    b"INSERT INTO t (a) VALUES ('a\\b')",
    b"INSERT INTO tVALUES(1)",
];
static SEEDED: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    SEEDED.call_once(|| SEEDS.iter().copied().for_each(read));
    // Chance alone hardly ever writes the words that an insert begins with.
    for head in ["", "INSERT INTO ", "INSERT INTO t VALUES "] {
        read(&[head.as_bytes(), data].concat());
    }
});

fn read(sql: &[u8]) {
    let mut rows = Vec::new();
    let Some(plain) = plain_rows(sql, &mut rows) else {
        return;
    };
    let lines: Vec<&[u8]> = rows.split(|&byte| byte == b'\n').collect();
    let (last, lines) = lines.split_last().expect("never empty");
    assert!(last.is_empty());
    assert_eq!(lines.len(), plain.rows);
    let mut again = format!("INSERT INTO {} {} VALUES ", plain.table, plain.columns).into_bytes();
    for (number, line) in lines.iter().enumerate() {
        again.extend_from_slice(if number > 0 { b", (" } else { b"(" });
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
        assert_eq!(fields.len(), plain.width);
        for (place, field) in fields.iter().enumerate() {
            again.extend_from_slice(if place > 0 { b", " } else { b"" });
            put_value(field, &mut again);
        }
        again.push(b')');
    }
    let mut rows_again = Vec::new();
    assert_eq!(plain_rows(&again, &mut rows_again), Some(plain));
    assert_eq!(rows_again, rows);
}

/// A field as a value of SQL.
fn put_value(field: &[u8], out: &mut Vec<u8>) {
    if field == b"\\N" {
        return out.extend_from_slice(b"NULL");
    }
    out.push(b'\'');
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        match byte {
            b'\\' => out.push(match bytes.next() {
                Some(b't') => b'\t',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                other => panic!("an escape of {other:?}"),
            }),
            b'\'' => out.extend_from_slice(b"\'\'"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}
