//! Names of transactions and statements in drive.json and latency.hlog.

use serde_json::{Value, json};

use crate::record::{Record, ScriptRecord};

/// What transactions and statements are called in the account and in latency.hlog.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    /// Kinds of transactions, by the number that [`Program::begin`] returns.
    pub(crate) scripts: Vec<ScriptLabel>,
    /// Statements, by the number that [`Program::resume`] gives; none for a number that is no statement.
    pub(crate) statements: Vec<Option<StatementLabel>>,
}

/// One kind of transaction.
#[derive(Debug, Clone)]
pub(crate) struct ScriptLabel {
    pub(crate) name: String,
    pub(crate) weight: u32,
}

/// One statement.
#[derive(Debug, Clone)]
pub(crate) struct StatementLabel {
    /// Number of the kind of transaction that it belongs to.
    pub(crate) script: usize,
    /// Its number there.
    pub(crate) index: usize,
    /// Where it is in the script; none where there is no text.
    pub(crate) line: Option<u32>,
    pub(crate) text: String,
}

impl Labels {
    /// Kinds of transactions that have one statement each.
    pub(crate) fn plain(labels: &[String]) -> Self {
        let statement = |(script, label): (usize, &String)| {
            Some(StatementLabel {
                script,
                index: 0,
                line: None,
                text: label.clone(),
            })
        };
        let script = |label: &String| ScriptLabel {
            name: label.clone(),
            weight: 1,
        };
        Self {
            scripts: labels.iter().map(script).collect(),
            statements: labels.iter().enumerate().map(statement).collect(),
        }
    }

    /// What the account says of each kind of query.
    pub(crate) fn accounts(&self, totals: &Record) -> Vec<Value> {
        let labels = self.scripts.iter().zip(&totals.scripts);
        let account = |(label, script): (&ScriptLabel, &ScriptRecord)| {
            json!({
                "label": label.name,
                "counts": script.counts.measured,
                "service": script.service.stats(),
                "response": script.response.stats(),
            })
        };
        labels.map(account).collect()
    }
}
