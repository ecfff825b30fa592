use proptest::prelude::*;

use super::{PlainRows, plain_rows};

fn read(sql: &str) -> Option<(PlainRows<'_>, String)> {
    let mut rows = Vec::new();
    let found = plain_rows(sql.as_bytes(), &mut rows)?;
    Some((found, String::from_utf8(rows).unwrap()))
}

#[test]
fn plain_rows_become_lines() {
    let sql = "INSERT INTO s.t(k, c) VALUES(-1, 'a''b'),( 20 , 'x\ty\nz' ), (NULL, '')";
    let (found, rows) = read(sql).unwrap();
    assert_eq!(
        (found.table, found.columns, found.rows, found.width),
        ("s.t", "(k, c)", 3, 2)
    );
    assert_eq!(rows, "-1\ta'b\n20\tx\\ty\\nz\n\\N\t\n");
    let (found, rows) = read("insert into t values (2,1),(3,4)").unwrap();
    assert_eq!((found.table, found.columns), ("t", ""));
    assert_eq!(rows, "2\t1\n3\t4\n");
}

#[test]
fn values_that_are_not_plain_are_left_alone() {
    let values = [
        "(1",
        "(1,)",
        "()",
        "(1) x",
        "(1),",
        "1",
        "(1,2)",
        "(1.5)",
        "(01)",
        "(-0)",
        "(+1)",
        "(1e3)",
        "(0x1)",
        "('a)",
        "('a\\b')",
        "(E'a')",
        "(N'a')",
        "('a' 'b')",
        "('a'\n'b')",
        "('a' || 'b')",
        "(\"a\")",
        "(now())",
        "(DEFAULT)",
        "(NULLS)",
        "(null::text)",
        "(1) ON CONFLICT DO NOTHING",
        "(1) ON DUPLICATE KEY UPDATE a = 1",
        "(1) RETURNING id",
        "('a'::text)",
        "(nullif(1,1))",
        "(1234567890123456789)",
        "(1); DELETE FROM t",
        "(1) -- x",
        "(1) /* x */",
        "(true)",
        "('a\0')",
    ];
    for value in values {
        let sql = format!("INSERT INTO t (a) VALUES ('x'), {value}");
        assert_eq!(read(&sql), None, "{value}");
    }
}

#[test]
fn targets_that_are_not_plain_are_left_alone() {
    let heads = [
        "INSERT INTO \"T\" VALUES ",
        "INSERT INTO `t` VALUES ",
        "INSERT INTO t AS u VALUES ",
        "INSERT INTO ONLY t VALUES ",
        "INSERT INTO t (a, b) VALUES ",
        "INSERT INTO t () VALUES ",
        "INSERT INTO t (a) (b) VALUES ",
        "INSERT INTO t (a[1]) VALUES ",
        "INSERT INTO t (a.b) VALUES ",
        "INSERT INTO tVALUES",
        "INSERT INTO myvalues VALUES ",
        "INSERT INTO t OVERRIDING SYSTEM VALUE VALUES ",
        "INSERT IGNORE INTO t VALUES ",
        "INSERT INTO t /* VALUES */ VALUES ",
        "INSERT INTO t\u{a0}VALUES ",
        "REPLACE INTO t VALUES ",
        "WITH x AS (SELECT 1) INSERT INTO t VALUES ",
        " INSERT INTO t VALUES ",
        "",
    ];
    for head in heads {
        assert_eq!(read(&format!("{head}('x')")), None, "{head}");
    }
}

/// A value as SQL, and as a field.
fn value() -> impl Strategy<Value = (String, String)> {
    let escaped = |text: &str| {
        text.replace('\t', "\\t")
            .replace('\n', "\\n")
            .replace('\r', "\\r")
    };
    prop_oneof![
        Just(("NULL".to_owned(), "\\N".to_owned())),
        (-999_999_999_999i64..1_000_000_000_000).prop_map(|n| (n.to_string(), n.to_string())),
        "[^\\\\\0]{0,20}"
            .prop_map(move |text| { (format!("'{}'", text.replace('\'', "''")), escaped(&text)) }),
    ]
}

proptest! {
    #[test]
    fn rows_are_the_fields_of_their_values(
        rows in prop::collection::vec(prop::array::uniform3(value()), 1..5),
        gap in "[ \n]{0,2}",
    ) {
        let texts = rows.iter().map(|row| {
            let values = row.iter().map(|(sql, _)| sql.as_str()).collect::<Vec<_>>();
            format!("({gap}{}{gap})", values.join(&format!("{gap},{gap}")))
        });
        let sql = format!("INSERT INTO t VALUES{gap}{}", texts.collect::<Vec<_>>().join(","));
        let fields = rows.iter().map(|row| row.each_ref().map(|(_, field)| field.as_str()).join("\t") + "\n");
        let (found, lines) = read(&sql).unwrap();
        prop_assert_eq!(lines, fields.collect::<String>());
        prop_assert_eq!((found.rows, found.width), (rows.len(), 3));
    }
}
