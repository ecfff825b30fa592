//! What all clients of a run share.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::client::Fault;
use crate::engine::Interrupt;
use crate::random::{Distributions, Unique};
use crate::spec::{Ignorable, ScriptSpec};

/// What a text is that goes to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The script has printed it; it has the ends of its lines.
    Printed,
    /// A line about an error of the database.
    Fatal,
    /// A line about a wrong use of the interface.
    Alert,
}

/// The part of one of several hosts in a run.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Its number; the first runs `init()` and `done()`.
    pub host: u32,
    /// How many there are.
    pub hosts: u32,
    /// The part's clients.
    pub clients: usize,
    /// End after so many events.
    pub events: Option<u64>,
}

impl Part {
    /// A run on one host.
    #[must_use]
    pub fn whole(spec: &ScriptSpec, clients: usize) -> Self {
        Self {
            host: 0,
            hosts: 1,
            clients,
            events: (spec.events > 0).then_some(spec.events),
        }
    }
}

/// Takes what a script prints, and what is to be told of it.
pub type Output = Box<dyn Fn(Told, &str) + Send + Sync>;

/// A script with the values of its options.
pub struct Script {
    pub(crate) spec: ScriptSpec,
    pub(crate) ignorable: Ignorable,
    pub(crate) distributions: Distributions,
    pub(crate) unique: Unique,
    pub(crate) output: Output,
    part: Part,
    /// Events that have begun, where their number is limited.
    events: AtomicU64,
    initialized: AtomicBool,
    ended: AtomicUsize,
    /// The other hosts have done their part.
    alone: AtomicBool,
    interrupts: Mutex<Vec<Arc<Interrupt>>>,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Script")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl Script {
    /// Check what is asked; nothing is loaded yet.
    ///
    /// # Errors
    /// A setting without a meaning.
    pub fn new(spec: ScriptSpec, clients: usize, output: Output) -> Result<Arc<Self>, Fault> {
        let whole = Part::whole(&spec, clients);
        Self::part_of(spec, whole, output)
    }

    /// The same for the part of one of several hosts.
    ///
    /// # Errors
    /// A setting without a meaning.
    pub fn part_of(spec: ScriptSpec, part: Part, output: Output) -> Result<Arc<Self>, Fault> {
        spec.check().map_err(Fault::plain)?;
        Ok(Arc::new(Self {
            ignorable: spec.ignorable(),
            distributions: Distributions::new(&spec.rand),
            unique: Unique::new(spec.seed, part.host, part.hosts),
            output,
            part,
            events: AtomicU64::new(0),
            initialized: AtomicBool::new(part.host > 0),
            alone: AtomicBool::new(part.hosts == 1 || !spec.done),
            ended: AtomicUsize::new(0),
            interrupts: Mutex::default(),
            spec,
        }))
    }

    /// The document that it was made of.
    #[must_use]
    pub fn spec(&self) -> &ScriptSpec {
        &self.spec
    }

    /// Another event may begin; it is counted.
    #[must_use]
    pub fn take_event(&self) -> bool {
        let began = || self.events.fetch_add(1, Ordering::Relaxed);
        self.part.events.is_none_or(|limit| began() < limit)
    }

    /// `init()` is over, so that clients may begin.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    pub(crate) fn initialized(&self) {
        (self.output)(Told::Printed, ""); // between what init() prints and what clients do
        self.initialized.store(true, Ordering::Release);
    }

    /// One of the clients other than the first has done its last.
    pub fn client_ended(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
    }

    /// So have those of all other hosts.
    pub fn hosts_ended(&self) {
        self.alone.store(true, Ordering::Release);
    }

    /// All clients but the first have, so that `done()` may be called.
    #[must_use]
    pub fn others_ended(&self) -> bool {
        self.alone.load(Ordering::Acquire)
            && self.ended.load(Ordering::Acquire) + 1 >= self.part.clients
    }

    /// SQLSTATE and the server's number name an error after which an event begins again.
    #[must_use]
    pub fn is_ignorable(&self, state: &str, number: u32) -> bool {
        self.ignorable.has(state, number)
    }

    pub(crate) fn watch(&self, interrupt: Arc<Interrupt>) {
        self.interrupts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(interrupt);
    }

    /// For each thread, a number that changes whenever its script is entered or comes back; odd inside.
    #[must_use]
    pub fn turns(&self) -> Vec<u64> {
        let interrupts = self
            .interrupts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        interrupts
            .iter()
            .map(|interrupt| interrupt.turn())
            .collect()
    }

    /// End whatever is computed.
    pub(crate) fn end(&self) {
        let interrupts = self
            .interrupts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        interrupts.iter().for_each(|interrupt| interrupt.fire());
    }

    /// End what threads compute that are inside the script since `before`, the turns of some time ago.
    pub fn interrupt(&self, before: &[u64]) {
        let interrupts = self
            .interrupts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for (interrupt, &before) in interrupts.iter().zip(before) {
            if before % 2 == 1 && interrupt.turn() == before {
                interrupt.fire();
            }
        }
    }
}
