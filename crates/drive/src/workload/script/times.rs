//! How long the commands of a script take that need no server, as `pgbench -r` shows them.

use loadstone_script::{EvalContext, Machine, Next, RuntimeError, Script};

use crate::clock::now_ns;

/// Commands that are run before others are looked after: reading the clock takes longer than most of them.
const COMMANDS_PER_CALL: usize = 250;

/// The commands of the transaction under way.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// Flat number and nanoseconds of each that has ended.
    ended: Vec<(u32, u64)>,
    /// The one that waits, and when it began: it ends when the client goes on.
    waiting: Option<(u32, u64)>,
}

impl Times {
    /// As [`Machine::next`], one command at a time.
    pub(super) fn next(
        &mut self,
        machine: &mut Machine,
        script: &Script,
        context: &mut EvalContext<'_>,
        first: u32,
    ) -> Result<Next, RuntimeError> {
        let mut begun_ns = now_ns();
        for _ in 0..COMMANDS_PER_CALL {
            let next = machine.next_within(script, context, 1)?;
            let flat = first + u32::try_from(machine.command()).unwrap_or(0);
            match next {
                Next::Yield => {
                    let now = now_ns();
                    self.ended.push((flat, now - begun_ns));
                    begun_ns = now;
                }
                Next::Sql(_) | Next::End => return Ok(next),
                Next::Sleep { .. } | Next::Shell(_) | Next::Pipeline(_) => {
                    self.waiting = Some((flat, begun_ns));
                    return Ok(next);
                }
            }
        }
        Ok(Next::Yield)
    }

    /// What the client waited for has come.
    pub(super) fn awaited(&mut self) {
        if let Some((flat, begun_ns)) = self.waiting.take() {
            self.ended.push((flat, now_ns() - begun_ns));
        }
    }

    /// What the client waited for will not come: the transaction has failed.
    pub(super) fn given_up(&mut self) {
        self.waiting = None;
    }

    /// The transaction has ended.
    pub(super) fn hand_over(&mut self, book: &mut dyn FnMut(u32, u64)) {
        self.given_up();
        for (flat, ns) in self.ended.drain(..) {
            book(flat, ns);
        }
    }
}
