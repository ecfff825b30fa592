//! The scripts of a run, as all clients share them.

use std::sync::Arc;

use loadstone_gen::random::Prng;
use loadstone_script::{QueryMode, Script, Symbols};

use crate::messages::Messages;

/// The scripts of a run, parsed once and shared by all clients.
#[derive(Debug)]
pub(crate) struct ScriptSet {
    pub(crate) scripts: Vec<Script>,
    /// Running totals of the weights.
    weights: Vec<u64>,
    pub(crate) symbols: Symbols,
    pub(crate) mode: QueryMode,
    /// Number of each script's first command among all commands.
    pub(super) offsets: Vec<u32>,
    /// Names of prepared statements, by flat number.
    pub(super) names: Vec<Box<str>>,
    /// Longest time that a shell command may take.
    pub(super) shell_limit_ns: u64,
    /// Where lines for the user go; then shell commands write where we do, too.
    pub(super) messages: Option<Arc<Messages>>,
}

impl ScriptSet {
    pub(crate) fn new(
        scripts: Vec<Script>,
        weights: &[u32],
        symbols: Symbols,
        mode: QueryMode,
        shell_limit_ns: u64,
        messages: Option<Arc<Messages>>,
    ) -> Self {
        let mut offsets = Vec::with_capacity(scripts.len());
        let mut names = Vec::new();
        for (number, script) in scripts.iter().enumerate() {
            offsets.push(u32::try_from(names.len()).unwrap_or(u32::MAX));
            names.extend(
                (0..script.commands.len()).map(|i| format!("P{number}_{i}").into_boxed_str()),
            );
        }
        let weights = weights
            .iter()
            .scan(0_u64, |total, &weight| {
                *total += u64::from(weight);
                Some(*total)
            })
            .collect();
        Self {
            scripts,
            weights,
            symbols,
            mode,
            offsets,
            names,
            shell_limit_ns,
            messages,
        }
    }

    /// Number of commands over all scripts: the statements' flat numbers lie below it.
    pub(crate) fn commands(&self) -> usize {
        self.names.len()
    }

    pub(super) fn measures_commands(&self) -> bool {
        self.messages.as_ref().is_some_and(|t| t.spec.times)
    }

    /// Script and command of a flat number.
    pub(crate) fn locate(&self, flat: usize) -> (usize, usize) {
        let script = self.offsets.partition_point(|&o| o as usize <= flat) - 1;
        (script, flat - self.offsets[script] as usize)
    }

    pub(super) fn choose(&self, prng: &mut Prng) -> usize {
        let total = self.weights.last().copied().unwrap_or(1);
        if self.scripts.len() == 1 {
            return 0;
        }
        let last = i64::try_from(total - 1).unwrap_or(i64::MAX);
        let drawn = u64::try_from(prng.uniform(0, last)).unwrap_or(0);
        self.weights.partition_point(|&w| w <= drawn)
    }
}
