//! Each transaction of a script in the ledger of its client.

use std::sync::{Arc, Mutex, PoisonError};

use loadstone_script::{QueryMode, Script, Symbols, Value, VarId, Vars, parse_enclosed};

use crate::error::DriveError;
use crate::ledger::{ClientLedger, LedgerSpec, State};
use crate::protocol::{Completed, Message, Protocol};
use crate::spec::ScriptSpec;
use crate::workload::End;

const VARIABLES: [&str; 3] = ["loadstone_client", "loadstone_seq", "loadstone_crc"];
/// What a server says to the COMMIT of a transaction that had failed.
const ROLLED_BACK: &[u8] = b"ROLLBACK";

/// The ledgers of all clients, and what they have in common.
#[derive(Debug)]
pub(super) struct Ledgers {
    common: Arc<Common>,
    clients: Vec<Mutex<Option<Box<ClientLedger>>>>,
}

#[derive(Debug)]
struct Common {
    variables: [VarId; 3],
    /// The place of each script's COMMIT.
    commits: Vec<usize>,
    /// Why a client could book no more.
    trouble: Mutex<Option<String>>,
}

/// What a client's program books.
pub(crate) struct Booking {
    common: Arc<Common>,
    ledger: Box<ClientLedger>,
    /// Nothing was sent with the COMMIT, so that an error is its own.
    alone: bool,
    rolled_back: bool,
}

impl Ledgers {
    /// Read the scripts as transactions that store a row each, and open the files.
    pub(super) fn open(
        spec: &LedgerSpec,
        scripts: &[ScriptSpec],
        mode: QueryMode,
        symbols: &mut Symbols,
        clients: usize,
    ) -> Result<(Vec<Script>, Self), DriveError> {
        let variables = VARIABLES.map(|name| symbols.intern(name));
        let mut read = Vec::new();
        let mut commits = Vec::new();
        for one in scripts {
            let (script, commit) =
                parse_enclosed(&one.name, &one.text, mode, symbols, &spec.insert)?;
            read.push(script);
            commits.push(commit);
        }
        let clients = (0..clients)
            .map(|client| ClientLedger::open(spec, client).map(|l| Mutex::new(Some(Box::new(l)))))
            .collect::<Result<_, _>>()?;
        let common = Arc::new(Common {
            variables,
            commits,
            trouble: Mutex::default(),
        });
        Ok((read, Self { common, clients }))
    }

    /// What a client books; given once.
    pub(super) fn booking(&self, client: usize) -> Option<Booking> {
        let ledger = lock(self.clients.get(client)?).take()?;
        Some(Booking {
            common: Arc::clone(&self.common),
            ledger,
            alone: false,
            rolled_back: false,
        })
    }

    /// Why a client could book no more, if one could not.
    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.common.trouble).clone()
    }
}

impl Booking {
    /// Whether the next transaction can be booked; else the work has failed.
    pub(super) fn has_room(&mut self) -> bool {
        let made = self.ledger.make_room();
        if let Err(error) = &made {
            let path = self.ledger.path().display();
            lock(&self.common.trouble)
                .get_or_insert_with(|| format!("the ledger {path} cannot grow: {error}"));
        }
        made.is_ok()
    }

    pub(super) fn begin(&mut self, vars: &mut Vars, client: usize) {
        let (seq, crc) = self.ledger.plan();
        let values = [
            i64::try_from(client).unwrap_or(i64::MAX),
            seq.cast_signed(),
            i64::from(crc),
        ];
        for (variable, value) in self.common.variables.into_iter().zip(values) {
            vars.set(variable, Value::Int(value));
        }
    }

    /// A statement is about to be sent.
    pub(super) fn sending(&mut self, script: usize, command: usize, in_pipeline: bool) {
        if self.common.commits[script] == command {
            self.ledger.note(State::Sent);
            (self.alone, self.rolled_back) = (!in_pipeline, false);
        }
    }

    pub(super) fn message<P: Protocol>(&mut self, message: &Message<'_, P>) {
        if let Message::Done(Completed::Words(words)) = message {
            self.rolled_back |= *words == ROLLED_BACK;
        }
    }

    /// What was sent is answered. An error in a pipeline may be that of a statement behind the COMMIT.
    pub(super) fn answered(&mut self, failed: bool) {
        if self.ledger.state() != State::Sent {
            return;
        }
        if failed || self.rolled_back {
            if self.alone {
                self.ledger.note(State::Refused);
            }
        } else {
            self.ledger.note(State::Acknowledged);
        }
    }

    /// The transaction has ended; what was sent and not answered stays so.
    pub(super) fn ended(&mut self, end: &End<'_>) {
        match (self.ledger.state(), end) {
            (State::Acknowledged, End::Done { acked_ns, .. }) => self.ledger.note_time(*acked_ns),
            (State::Planned, End::Failed { .. }) => self.ledger.note(State::Refused),
            _ => {}
        }
    }

    /// The transaction is tried again, as the same one.
    pub(super) fn retry(&mut self) {
        if self.ledger.state() == State::Refused {
            self.ledger.note(State::Planned);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
