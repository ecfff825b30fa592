//! Scripts as the work of a drive: parsed once, with variables and random streams for each client.

use std::sync::Arc;

use loadstone_script::{CommandKind, QueryMode, Symbols, Value, Vars, parse, parse_as_pgbench};

use super::booking::Ledgers;
use super::{ScriptProgram, ScriptSet};
use crate::clock::ns;
use crate::error::DriveError;
use crate::messages::Messages;
use crate::protocol::Protocol;
use crate::spec::{DriveSpec, ScriptSpec, Variable};
use crate::workload::{ClientSeeds, Labels, Program, ScriptLabel, StatementLabel};

/// The scripts of a drive with their weights.
#[derive(Debug)]
pub(crate) struct ScriptWork {
    set: Arc<ScriptSet>,
    weights: Vec<u32>,
    ledgers: Option<Ledgers>,
}

impl ScriptWork {
    pub(crate) fn new(spec: &DriveSpec) -> Result<Self, DriveError> {
        let mode: QueryMode = spec.mode.parse().map_err(|_| {
            DriveError::bad_spec(
                format!("unknown mode {:?}", spec.mode),
                "use simple, extended or prepared",
            )
        })?;
        let asked: &[ScriptSpec] = spec.scripts.as_deref().unwrap_or_default();
        let mut symbols = Symbols::new();
        // hash() and permute() read it even where no script names it.
        symbols.intern("default_seed");
        let read = match spec.messages {
            Some(_) => parse_as_pgbench,
            None => parse,
        };
        let (scripts, ledgers) = if let Some(ledger) = &spec.ledger {
            let (scripts, ledgers) =
                Ledgers::open(ledger, asked, mode, &mut symbols, spec.clients)?;
            (scripts, Some(ledgers))
        } else {
            let scripts = asked
                .iter()
                .map(|script| read(&script.name, &script.text, mode, &mut symbols))
                .collect::<Result<Vec<_>, _>>()?;
            (scripts, None)
        };
        let weights: Vec<u32> = asked.iter().map(|s| s.weight).collect();
        let set = Arc::new(ScriptSet::new(
            scripts,
            &weights,
            symbols,
            mode,
            ns(spec.timeout_s),
            spec.messages.map(|asked| Arc::new(Messages::new(asked))),
        ));
        Ok(Self {
            set,
            weights,
            ledgers,
        })
    }

    pub(crate) fn mode(&self) -> QueryMode {
        self.set.mode
    }

    pub(crate) fn messages(&self) -> Option<Arc<Messages>> {
        self.set.messages.clone()
    }

    pub(crate) fn labels(&self) -> Labels {
        let scripts = self.set.scripts.iter().zip(&self.weights);
        Labels {
            scripts: scripts
                .map(|(script, &weight)| ScriptLabel {
                    name: script.name.clone(),
                    weight,
                })
                .collect(),
            statements: (0..self.set.commands())
                .map(|flat| self.statement(flat))
                .collect(),
        }
    }

    fn statement(&self, flat: usize) -> Option<StatementLabel> {
        let (script, index) = self.set.locate(flat);
        let command = &self.set.scripts[script].commands[index];
        matches!(command.kind, CommandKind::Sql(_)).then(|| StatementLabel {
            script,
            index,
            line: Some(command.line),
            text: command.text.clone(),
        })
    }

    pub(crate) fn program<P: Protocol>(
        &self,
        spec: &DriveSpec,
        draw: &ClientSeeds,
    ) -> Box<dyn Program<P> + Send> {
        let vars = self.variables(spec, draw.client, draw.default_seed);
        let set = Arc::clone(&self.set);
        let booking = self.ledgers.as_ref().and_then(|l| l.booking(draw.client));
        Box::new(ScriptProgram::new(set, vars, draw, booking))
    }

    /// Why the work as a whole has failed, if it has.
    pub(crate) fn failure(&self) -> Option<String> {
        self.ledgers.as_ref().and_then(Ledgers::trouble)
    }

    fn variables(&self, spec: &DriveSpec, client: usize, default_seed: i64) -> Vars {
        let symbols = &self.set.symbols;
        let mut vars = Vars::new(symbols.len());
        let automatic = [
            ("scale", 1),
            ("client_id", i64::try_from(client).unwrap_or(i64::MAX)),
            ("default_seed", default_seed),
            ("random_seed", spec.seed.cast_signed()),
        ];
        for (name, value) in automatic {
            if let Some(id) = symbols.get(name) {
                vars.set(id, Value::Int(value));
            }
        }
        for (name, value) in &spec.variables {
            let Some(id) = symbols.get(name) else {
                continue;
            };
            match value {
                Variable::Bool(value) => vars.set(id, Value::Bool(*value)),
                Variable::Int(value) => vars.set(id, Value::Int(*value)),
                Variable::Double(value) => vars.set(id, Value::Double(*value)),
                Variable::Text(text) => vars.set_text(id, text),
            }
        }
        vars
    }
}
