//! pgbench's scripts as programs.

mod booking;
mod captured;
mod set;
mod shell;
mod times;
mod words;
mod work;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use loadstone_gen::random::Prng;
use loadstone_script::{
    CommandKind, EvalContext, Machine, Next, QueryMode, Statement, Vars, shell_command,
};

use self::booking::Booking;
use self::captured::Captured;
pub(crate) use self::set::ScriptSet;
use self::shell::Shell;
use self::times::Times;
pub(crate) use self::work::ScriptWork;
use super::{ClientSeeds, End, LoadCount, Place, Program, Readiness, Step};
use crate::messages::Line;
use crate::protocol::{Failure, Frontend, Message, Protocol, Unencodable};

pub(crate) struct ScriptProgram {
    set: Arc<ScriptSet>,
    client: usize,
    vars: Vars,
    prng: Prng,
    chooser: Prng,
    at_start: Prng,
    machine: Machine,
    script: usize,
    prepared: Vec<bool>,
    parsing: VecDeque<usize>,
    syncs: u32,
    captured: Captured,
    texts: Vec<u8>,
    ranges: Vec<Option<(usize, usize)>>,
    /// The shell command that runs, and its place.
    shell: Option<(usize, Shell)>,
    /// One that was asked to end with its transaction.
    ending: Option<Shell>,
    /// What is told of the script's own failure.
    trouble: Vec<Line>,
    /// The last failure came before its statement was prepared.
    unprepared: bool,
    /// How long commands took that need no server, where that is wanted.
    times: Option<Times>,
    /// Its ledger, where commits are to be found again.
    booking: Option<Booking>,
}

impl ScriptProgram {
    pub(crate) fn new(
        set: Arc<ScriptSet>,
        vars: Vars,
        draw: &ClientSeeds,
        booking: Option<Booking>,
    ) -> Self {
        let (prng, chooser) = (draw.stream, draw.chooser);
        let prepared = match set.mode {
            QueryMode::Prepared => vec![false; set.commands()],
            _ => Vec::new(),
        };
        Self {
            vars,
            at_start: prng,
            prng,
            chooser,
            machine: Machine::default(),
            script: 0,
            prepared,
            parsing: VecDeque::new(),
            syncs: 0,
            captured: Captured::default(),
            texts: Vec::new(),
            ranges: Vec::new(),
            shell: None,
            ending: None,
            trouble: Vec::new(),
            unprepared: false,
            times: set.measures_commands().then(Times::default),
            client: draw.client,
            booking,
            set,
        }
    }

    fn next(&mut self) -> Result<Next, Failure> {
        let mut context = EvalContext {
            vars: &mut self.vars,
            prng: &mut self.prng,
            script: self.script,
            command: 0,
            debug: &mut |text| {
                // The user asked for it with debug(); nothing useful can be done when stderr is closed.
                let _ = writeln!(std::io::stderr(), "{text}");
            },
        };
        let script = &self.set.scripts[self.script];
        let next = match &mut self.times {
            None => self.machine.next(script, &mut context),
            Some(times) => {
                let first = self.set.offsets[self.script];
                times.next(&mut self.machine, script, &mut context, first)
            }
        };
        next.map_err(|error| {
            self.note_runtime_error(&error);
            Failure::script(error.to_string())
        })
    }

    fn send(&mut self, command: usize, frontend: &mut impl Frontend) -> Result<u32, Failure> {
        let set = Arc::clone(&self.set);
        let flat = set.offsets[self.script] as usize + command;
        let CommandKind::Sql(statement) = &set.scripts[self.script].commands[command].kind else {
            return Err(Failure::script("internal: not a statement"));
        };
        self.captured.expect(statement.capture.as_ref());
        self.unprepared = false;
        let encoded = match set.mode {
            QueryMode::Simple => {
                self.texts.clear();
                statement.write_simple(&self.vars, &mut self.texts);
                frontend.query(&self.texts)
            }
            QueryMode::Extended => frontend
                .prepare("", statement.prepared.as_bytes())
                .and_then(|()| self.bind("", statement, frontend)),
            QueryMode::Prepared => {
                let name = &set.names[flat];
                let parsed = if self.prepared[flat] || self.parsing.contains(&flat) {
                    Ok(())
                } else {
                    self.parsing.push_back(flat);
                    frontend.prepare(name, statement.prepared.as_bytes())
                };
                parsed.and_then(|()| self.bind(name, statement, frontend))
            }
        };
        encoded?;
        if let Some(booking) = &mut self.booking {
            booking.sending(self.script, command, self.machine.in_pipeline());
        }
        self.log_sent(flat);
        u32::try_from(flat).map_err(|_| Failure::script("too many commands"))
    }

    fn bind(
        &mut self,
        name: &str,
        statement: &Statement,
        frontend: &mut impl Frontend,
    ) -> Result<(), Unencodable> {
        self.texts.clear();
        self.ranges.clear();
        for &var in &statement.params {
            let from = self.texts.len();
            let set = self.vars.write_text(var, &mut self.texts);
            self.ranges.push(set.then_some((from, self.texts.len())));
        }
        let texts = &self.texts;
        frontend.execute(
            name,
            self.ranges
                .iter()
                .map(|r| r.map(|(from, to)| &texts[from..to])),
        )
    }

    fn store(&mut self) -> Result<(), Failure> {
        let captured = &mut self.captured;
        captured.active = false;
        match captured.last_rows {
            Some(rows) if !captured.every_result && rows != 1 => {
                let said = format!("expected one row, got {rows}");
                let last = captured.results.saturating_sub(1);
                return Err(self.result_failure(last, None, &said));
            }
            _ => {}
        }
        if let Some((result, name)) = captured.unnamed.take() {
            let wrong = format!("invalid variable name: \"{name}\"");
            let said = format!("error storing into variable {name}");
            return Err(self.result_failure(result, Some(&wrong), &said));
        }
        for (var, value) in captured.values.drain(..) {
            // Later columns of the same name win, as in pgbench.
            match value {
                Some(bytes) => self.vars.set_text(var, &String::from_utf8_lossy(&bytes)),
                None => self.vars.set_text(var, ""),
            }
        }
        Ok(())
    }

    fn start_shell(&mut self, command: usize) -> Result<Step, Failure> {
        let set = Arc::clone(&self.set);
        let (args, reads) = match &set.scripts[self.script].commands[command].kind {
            CommandKind::Shell { args } => (args, false),
            CommandKind::SetShell { args, .. } => (args, true),
            _ => return Err(Failure::script("internal: not a shell command")),
        };
        let line = shell_command(args, &self.vars).map_err(|error| {
            self.shell_failure(command, &error, Failure::script(error.to_string()))
        })?;
        self.ending = None; // makes it end before another begins
        let shell = Shell::start(&line, reads, self.set.messages.is_some())
            .map_err(|failure| self.shell_failure(command, &failure.message.clone(), failure))?;
        let ns = shell.pause_ns();
        self.shell = Some((command, shell));
        Ok(Step::Sleep { ns })
    }

    /// Look at the shell command that runs: how long to wait for it, or nothing when it is over.
    fn await_shell(&mut self) -> Result<Option<Step>, Failure> {
        let Some((command, shell)) = &mut self.shell else {
            return Ok(None);
        };
        let command = *command;
        let output = match shell.look(self.set.shell_limit_ns) {
            Ok(Some(output)) => output,
            Ok(None) => {
                let ns = shell.pause_ns();
                return Ok(Some(Step::Sleep { ns }));
            }
            Err(failure) => {
                return Err(self.shell_failure(command, &failure.message.clone(), failure));
            }
        };
        self.shell = None;
        if let CommandKind::SetShell { var, .. } =
            self.set.scripts[self.script].commands[command].kind
        {
            self.vars.set_shell_result(var, &output).map_err(|error| {
                let failure = Failure::script(format!("\\setshell: {error}"));
                self.shell_failure(command, &error, failure)
            })?;
        }
        Ok(None)
    }

    fn pipeline(&mut self, command: usize, frontend: &mut impl Frontend) -> Option<Step> {
        let set = Arc::clone(&self.set);
        match set.scripts[self.script].commands[command].kind {
            CommandKind::StartPipeline => {}
            CommandKind::SyncPipeline => {
                frontend.sync();
                self.syncs += 1;
            }
            _ => {
                frontend.sync();
                let answers = std::mem::take(&mut self.syncs) + 1;
                return Some(Step::Exchange { answers });
            }
        }
        None
    }

    fn advance(
        &mut self,
        frontend: &mut impl Frontend,
        statements: &mut Vec<u32>,
    ) -> Result<Step, Failure> {
        if let Some(step) = self.await_shell()? {
            return Ok(step);
        }
        if let Some(times) = &mut self.times {
            times.awaited();
        }
        loop {
            match self.next()? {
                Next::Sql(command) => {
                    statements.push(self.send(command, frontend)?);
                    if !self.machine.in_pipeline() {
                        if self.set.mode != QueryMode::Simple {
                            frontend.sync();
                        }
                        return Ok(Step::Exchange { answers: 1 });
                    }
                }
                Next::Sleep { ns } => return Ok(Step::Sleep { ns }),
                Next::Shell(command) => return self.start_shell(command),
                Next::Yield => return Ok(Step::Yield),
                Next::Pipeline(command) => {
                    if let Some(step) = self.pipeline(command, frontend) {
                        return Ok(step);
                    }
                    if let Some(times) = &mut self.times {
                        times.awaited();
                    }
                }
                Next::End => return Ok(Step::Done),
            }
        }
    }
}

impl<P: Protocol> Program<P> for ScriptProgram {
    fn ready(&mut self, _now_ns: u64) -> Readiness {
        let may_begin = self.booking.as_mut().is_none_or(Booking::has_room);
        if may_begin {
            Readiness::Ready
        } else {
            Readiness::Ended
        }
    }

    fn begin(&mut self) -> usize {
        if let Some(booking) = &mut self.booking {
            booking.begin(&mut self.vars, self.client);
        }
        self.script = self.set.choose(&mut self.chooser);
        self.at_start = self.prng;
        self.machine.reset();
        self.log_begin();
        self.script
    }

    fn retry(&mut self) {
        if let Some(times) = &mut self.times {
            times.given_up();
        }
        if let Some(booking) = &mut self.booking {
            booking.retry();
        }
        self.prng = self.at_start;
        self.machine.reset();
    }

    fn take_times(&mut self, book: &mut dyn FnMut(u32, u64)) {
        if let Some(times) = &mut self.times {
            times.hand_over(book);
        }
    }

    fn ended(&mut self, end: &End<'_>) -> LoadCount {
        if let Some(booking) = &mut self.booking {
            booking.ended(end);
        }
        if let Some((_, mut shell)) = self.shell.take() {
            shell.ask_to_end();
            self.ending = Some(shell);
        }
        LoadCount::default()
    }

    fn resume(&mut self, frontend: &mut P::Frontend<'_>, statements: &mut Vec<u32>) -> Step {
        self.advance(frontend, statements)
            .unwrap_or_else(Step::Failed)
    }

    fn message(&mut self, message: &Message<'_, P>) {
        if let Some(booking) = &mut self.booking {
            booking.message(message);
        }
        if matches!(message, Message::Prepared)
            && let Some(flat) = self.parsing.pop_front()
        {
            self.prepared[flat] = true;
        }
        if self.captured.active {
            self.captured.take(message, &self.set.symbols);
        }
    }

    fn answered(&mut self, failed: bool) -> Result<(), Failure> {
        if let Some(booking) = &mut self.booking {
            booking.answered(failed);
        }
        if failed {
            self.unprepared |= !self.parsing.is_empty();
            self.parsing.clear();
            self.captured.active = false;
            self.syncs = 0;
            return Ok(());
        }
        self.log_received();
        self.parsing.clear();
        if self.captured.active {
            self.store()
        } else {
            Ok(())
        }
    }

    fn sent(&self) -> &[u8] {
        match self.set.mode {
            QueryMode::Simple => &self.texts,
            QueryMode::Extended | QueryMode::Prepared => self.last_prepared(),
        }
    }

    fn words(&mut self, failure: &Failure, place: Option<&Place>, ends: bool) -> Vec<Line> {
        self.lines(failure, place, ends)
    }

    fn reconnected(&mut self) {
        self.prepared.fill(false);
        self.parsing.clear();
        self.captured.active = false;
        self.syncs = 0;
    }
}
