//! Scripts of which it is known by construction whether pgbench takes them: bytes choose among the rules of a
//! grammar, and at most one of many mistakes is put in.

/// Deepest nesting of expressions and conditions.
const DEPTH_MAX: u32 = 4;
/// Most pieces in a row.
const PIECES_MAX: u8 = 5;

/// A script, and whether pgbench takes it.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) text: String,
    pub(crate) accepted: bool,
}

/// Makes a script of any bytes; no bytes are a script of one statement.
pub(crate) fn script(bytes: &[u8]) -> Generated {
    let mut writer = Writer {
        bytes,
        text: String::new(),
    };
    writer.pieces(0);
    writer.text.push_str("SELECT 1;\n");
    let broken = writer.below(3) == 0;
    if broken {
        let mistake = writer.pick(MISTAKES);
        writer.text.push_str(mistake);
        writer.pieces(0);
    }
    let tail = writer.pick(TAILS);
    writer.text.push_str(tail);
    Generated {
        text: writer.text,
        accepted: !broken,
    }
}

/// Each makes any script invalid, wherever it is put between two pieces.
pub(crate) const MISTAKES: &[&str] = &[
    "\\nosuch\n",
    "\\set\n",
    "\\set x\n",
    "\\set x 1 +\n",
    "\\set x (1\n",
    "\\set x 1)\n",
    "\\set x 1 2\n",
    "\\set x 'a'\n",
    "\\set x :\n",
    "\\set x 1 = = 2\n",
    "\\set x 1 is 2\n",
    "\\set x nosuch(1)\n",
    "\\set x abs()\n",
    "\\set x abs(1, 2)\n",
    "\\set x pi(1)\n",
    "\\set x least()\n",
    "\\set x random(1)\n",
    "\\set x random_zipfian(1, 2)\n",
    "\\set x hash(1, 2, 3)\n",
    "\\set x permute(1)\n",
    "\\set x case when 1 then 2\n",
    "\\set x case end\n",
    "\\set x case 1 when 1 then 2 end\n",
    "\\set x 9223372036854775808\n",
    "\\set x 1e999\n",
    "\\sleep\n",
    "\\sleep x\n",
    "\\sleep 1 h\n",
    "\\sleep 1h\n",
    "\\sleep 1 s s\n",
    "\\sleep 1s s\n",
    "\\if\n\\endif\n",
    "\\if 1 +\n\\endif\n",
    "\\if 1\n",
    "\\if 1\n\\else\n\\else\n\\endif\n",
    "\\if 1\n\\else\n\\elif 1\n\\endif\n",
    "\\if 1\n\\elif\n\\endif\n",
    "\\if 1\n\\else 1\n\\endif\n",
    "\\endif\n",
    "\\else\n",
    "\\elif 1\n",
    "\\set y 1\n\\gset\n",
    "SELECT 1 AS a \\gset a b\n",
    "SELECT 1 AS a \\gset\n\\gset\n",
    "\\setshell\n",
    "\\setshell x\n",
    "\\shell\n",
    "\\startpipeline now\n",
    "\\endpipeline now\n",
];

/// Ends of scripts that pgbench takes: what does not end is for the server to complain about.
const TAILS: &[&str] = &[
    "",
    "SELECT 2",
    "-- the end",
    "SELECT 'it''s",
    "SELECT E'a\\'",
    "SELECT \"a\\set",
    "SELECT $x$ a $y$;",
    "SELECT $$ \\set",
    "SELECT /* /* */ 1;\n\\nosuch",
    "/* \\nosuch",
    "SELECT (1;",
    "SELECT ':x",
    "\\",
];

const STATEMENTS: &[&str] = &[
    "SELECT :a, :b::text",
    "SELECT ';', E'\\';', \";\", $$;$$, $q$ $$ ; $q$",
    "SELECT /* ; /* nested; */ ' */ 1 -- ; '\n",
    "SELECT (1; 2)",
    "SELECT 1\\; SELECT 2",
    "SELECT 'a:a', :{?a}, a[1:2]",
    "SELECT 'a' -- comment\n 'b'",
    "SELECT :\u{e4}\u{df}, '\u{20ac}'",
    "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END",
    "BEGIN",
    "SELECT 1e5, .5, 0x1f, 1_000, $1",
];
const OPERATORS: &[&str] = &[
    " + ", "-", " * ", "/", " % ", " = ", "<>", " != ", " < ", "<=", " > ", " >= ", " & ", "|",
    " # ", "<<", " >> ", " AND ", " or ",
];
const FUNCTIONS: &[(&str, u8)] = &[
    ("abs", 1),
    ("DEBUG", 1),
    ("double", 1),
    ("exp", 1),
    ("int", 1),
    ("ln", 1),
    ("sqrt", 1),
    ("pi", 0),
    ("pow", 2),
    ("Power", 2),
    ("mod", 2),
    ("greatest", 3),
    ("least", 1),
    ("random", 2),
    ("random_gaussian", 3),
    ("random_exponential", 3),
    ("random_zipfian", 3),
    ("hash", 1),
    ("hash_murmur2", 2),
    ("hash_fnv1a", 1),
    ("permute", 2),
    ("permute", 3),
];
const ATOMS: &[&str] = &[
    "0",
    "1",
    "9223372036854775807",
    "2.5",
    ".5e-3",
    "1e10",
    "true",
    "FALSE",
    "Null",
    ":a",
    ":b",
    ":\u{e4}",
];
const SPACES: &[&str] = &[" ", "  ", "\t", " \\\n", " \\\r\n "];
const TESTS: &[&str] = &[
    " IS NULL",
    " is not null",
    " IS TRUE",
    " ISNULL",
    " NOTNULL",
    " is not false",
];

struct Writer<'a> {
    bytes: &'a [u8],
    text: String,
}

impl Writer<'_> {
    /// The next choice, below `limit`; the first one where the bytes have ended, so that all comes to an end.
    fn below(&mut self, limit: u8) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else {
            return limit - 1;
        };
        self.bytes = rest;
        first % limit
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        let limit = u8::try_from(among.len()).unwrap_or(u8::MAX);
        among[usize::from(self.below(limit))]
    }

    fn write(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn pieces(&mut self, depth: u32) {
        for _ in 0..PIECES_MAX {
            if self.bytes.is_empty() || !self.piece(depth) {
                return;
            }
        }
    }

    /// One piece; false for the end of a row.
    fn piece(&mut self, depth: u32) -> bool {
        match self.below(8) {
            0 => return false,
            1 | 2 => self.statement(),
            3 => self.set(),
            4 if depth < DEPTH_MAX => self.condition(depth),
            5 => {
                let line = self.pick(&[
                    "\\sleep 0 ms\n",
                    "\\sleep 1us\n",
                    "\\sleep :a\n",
                    "\\sleep -1 S\n",
                ]);
                self.write(line);
            }
            6 => {
                let line = self.pick(&[
                    "\\shell true :a ::b\n",
                    "\\setshell x echo 1\n",
                    "\\\n",
                    "-- ;\n",
                ]);
                self.write(line);
            }
            _ => {
                let line = self.pick(&["\\startpipeline\n", "\\endpipeline\n", "\\syncpipeline\n"]);
                self.write(line);
            }
        }
        true
    }

    fn statement(&mut self) {
        let statement = self.pick(STATEMENTS);
        self.write(statement);
        let end = self.pick(&[
            ";\n",
            "; ",
            ";;\n",
            "\n\\gset\n",
            "\n\\aset p_\n",
            "\n\\;;\n",
        ]);
        self.write(end);
    }

    fn set(&mut self) {
        self.write("\\set");
        self.space();
        // pgbench looks at the name when the command is run.
        let name = self.pick(&["x", "a", "_1", "\u{e4}", "1", "a-b"]);
        self.write(name);
        self.space();
        self.expression(0);
        self.write("\n");
    }

    fn condition(&mut self, depth: u32) {
        self.write("\\if ");
        self.expression(0);
        self.write("\n");
        self.pieces(depth + 1);
        for _ in 0..self.below(3) {
            self.write("\\elif ");
            self.expression(0);
            self.write("\n");
            self.pieces(depth + 1);
        }
        if self.below(2) == 0 {
            self.write("\\else\n");
            self.pieces(depth + 1);
        }
        self.write("\\endif\n");
    }

    fn space(&mut self) {
        let space = self.pick(SPACES);
        self.write(space);
    }

    fn expression(&mut self, depth: u32) {
        if depth >= DEPTH_MAX || self.bytes.is_empty() {
            return self.atom();
        }
        match self.below(7) {
            0 => self.bracketed(depth, "(", ")"),
            1 => self.bracketed(depth, "- (", ")"),
            2 => self.bracketed(depth, "not (", ")"),
            3 => {
                self.bracketed(depth, "(", ")");
                let operator = self.pick(OPERATORS);
                self.write(operator);
                self.bracketed(depth, "(", ")");
            }
            4 => self.call(depth),
            5 => {
                self.bracketed(depth, "case when ", " then");
                self.bracketed(depth, " ", " end");
            }
            _ => {
                self.atom();
                let test = self.pick(TESTS);
                self.write(test);
            }
        }
    }

    fn atom(&mut self) {
        let atom = self.pick(ATOMS);
        self.write(atom);
    }

    fn bracketed(&mut self, depth: u32, open: &str, close: &str) {
        self.write(open);
        self.expression(depth + 1);
        self.write(close);
    }

    fn call(&mut self, depth: u32) {
        let (name, arguments) = self.pick(FUNCTIONS);
        self.write(name);
        self.write("(");
        for number in 0..arguments {
            self.write(if number == 0 { "" } else { ", " });
            self.expression(depth + 1);
        }
        self.write(")");
    }
}
