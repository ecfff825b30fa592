//! The scripts that pgbench has built in.

/// A built-in script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The name that `-b` takes.
    pub name: &'static str,
    /// How reports call it.
    pub description: &'static str,
    /// Its text.
    pub source: &'static str,
}

/// No single built-in script has the wanted name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuiltinError {
    /// None begins with it.
    #[error(
        "no builtin script found for name \"{0}\" (give tpcb-like, simple-update or select-only)"
    )]
    Unknown(String),
    /// Several begin with it.
    #[error("ambiguous builtin name: {count} builtin scripts found for prefix \"{prefix}\"")]
    Ambiguous {
        /// What was given.
        prefix: String,
        /// How many begin with it.
        count: usize,
    },
}

// Rows per unit of scale: 100000 accounts, 1 branch, 10 tellers.
macro_rules! draw_account {
    () => {
        "\\set aid random(1, 100000 * :scale)\n"
    };
}
macro_rules! draw_rest {
    () => {
        concat!(
            "\\set bid random(1, 1 * :scale)\n",
            "\\set tid random(1, 10 * :scale)\n",
            "\\set delta random(-5000, 5000)\n",
        )
    };
}
macro_rules! read_account {
    () => {
        "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    };
}
macro_rules! change {
    ($table:literal, $balance:literal, $key:literal) => {
        concat!(
            "UPDATE pgbench_",
            $table,
            " SET ",
            $balance,
            " = ",
            $balance,
            " + :delta WHERE ",
            $key,
            " = :",
            $key,
            ";\n",
        )
    };
}
macro_rules! write_history {
    () => {
        concat!(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) ",
            "VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n",
        )
    };
}

const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        description: "<builtin: TPC-B (sort of)>",
        source: concat!(
            draw_account!(),
            draw_rest!(),
            "BEGIN;\n",
            change!("accounts", "abalance", "aid"),
            read_account!(),
            change!("tellers", "tbalance", "tid"),
            change!("branches", "bbalance", "bid"),
            write_history!(),
            "END;\n",
        ),
    },
    Builtin {
        name: "simple-update",
        description: "<builtin: simple update>",
        source: concat!(
            draw_account!(),
            draw_rest!(),
            "BEGIN;\n",
            change!("accounts", "abalance", "aid"),
            read_account!(),
            write_history!(),
            "END;\n",
        ),
    },
    Builtin {
        name: "select-only",
        description: "<builtin: select only>",
        source: concat!(draw_account!(), read_account!()),
    },
];

/// All built-in scripts, in the order in which `-b list` shows them.
#[must_use]
pub const fn builtins() -> &'static [Builtin] {
    &BUILTINS
}

/// The one built-in script whose name begins with `name_prefix`.
pub fn builtin(name_prefix: &str) -> Result<&'static Builtin, BuiltinError> {
    let mut found = BUILTINS
        .iter()
        .filter(|builtin| builtin.name.starts_with(name_prefix));
    match (found.next(), found.count()) {
        (Some(only), 0) => Ok(only),
        (None, _) => Err(BuiltinError::Unknown(name_prefix.to_owned())),
        (Some(_), more) => Err(BuiltinError::Ambiguous {
            prefix: name_prefix.to_owned(),
            count: more + 1,
        }),
    }
}
