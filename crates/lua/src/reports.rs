//! Hooks that a script has for reports of its own: called in a state of its own, which has no database.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mlua_sys as lua;
use serde_json::Value;

use crate::client::Fault;
use crate::describe::{ScriptFault, placed};
use crate::engine::{Engine, push_kept};
use crate::script::Script;
use crate::spec::ScriptSpec;

/// A hook that takes longer does something else.
const LIMIT: Duration = Duration::from_secs(10);

type Answer = Result<(), Fault>;

/// A script that has been loaded for its hooks, in a thread of its own, so that an endless one can be ended.
#[derive(Debug)]
pub struct Reports {
    script: Arc<Script>,
    printed: Arc<Mutex<String>>,
    calls: Option<Sender<(String, Value)>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Reports {
    /// Load the script; what it prints meanwhile it has printed elsewhere.
    ///
    /// # Errors
    /// A script that cannot be loaded.
    pub fn new(spec: ScriptSpec) -> Result<Self, ScriptFault> {
        let name = spec.script.clone();
        Self::load(spec).map_err(|fault| placed(&name, fault))
    }

    fn load(spec: ScriptSpec) -> Result<Self, Fault> {
        let printed = Arc::new(Mutex::new(String::new()));
        let paper = Arc::clone(&printed);
        let write = move |_, text: &str| lock(&paper).push_str(text);
        let script = Script::new(spec, 1, Box::new(write))?;
        let (calls, asked) = channel();
        let (answer, answers) = channel();
        let shared = Arc::clone(&script);
        let thread = thread::Builder::new()
            .name("reports".to_owned())
            .spawn(move || serve(&shared, &asked, &answer))
            .map_err(|error| Fault::plain(format!("cannot start a thread: {error}")))?;
        let reports = Self {
            script,
            printed,
            calls: Some(calls),
            answers,
            thread: Some(thread),
        };
        reports.wait("loading the script")?;
        lock(&reports.printed).clear();
        Ok(reports)
    }

    /// Call a hook with the figures; returns what it printed.
    ///
    /// # Errors
    /// The hook fails, or takes longer than 10 s.
    pub fn call(&self, hook: &str, figures: Value) -> Result<String, Fault> {
        if let Some(calls) = &self.calls {
            let _ = calls.send((hook.to_owned(), figures));
        }
        self.wait(hook)?;
        Ok(self.take())
    }

    /// End the state; returns what was printed at that.
    #[must_use]
    pub fn end(mut self) -> String {
        self.finish();
        self.take()
    }

    fn finish(&mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn take(&self) -> String {
        std::mem::take(&mut lock(&self.printed))
    }

    fn wait(&self, what: &str) -> Answer {
        match self.answers.recv_timeout(LIMIT) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => {
                self.script.end();
                let _ = self.answers.recv_timeout(LIMIT);
                let seconds = LIMIT.as_secs();
                Err(Fault::plain(format!(
                    "{what} was not over after {seconds} s"
                )))
            }
            Err(RecvTimeoutError::Disconnected) => Err(Fault::plain(
                "internal: the state of the script's reports is gone",
            )),
        }
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        self.finish();
    }
}

fn lock(text: &Mutex<String>) -> std::sync::MutexGuard<'_, String> {
    text.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Load the script, then call hooks until nobody asks any more. The state ends with this thread.
fn serve(script: &Arc<Script>, asked: &Receiver<(String, Value)>, answer: &Sender<Answer>) {
    let engine = match loaded(script) {
        Ok(engine) => engine,
        Err(fault) => {
            let _ = answer.send(Err(fault));
            return;
        }
    };
    let _ = answer.send(Ok(()));
    for (hook, figures) in asked {
        let _ = answer.send(called(&engine, &hook, &figures));
    }
}

/// A state with the script; what calls its hooks is the only value on its stack.
fn loaded(script: &Arc<Script>) -> Result<Engine, Fault> {
    let engine = Engine::new(script, true)?;
    let stack = engine.stack();
    push_kept(stack, engine.world);
    stack.get_field(-1, c"reporter");
    engine.push_extend();
    engine.call(1, 2)?;
    fault_of(&engine, -2)?;
    stack.pop(1);
    Ok(engine)
}

fn called(engine: &Engine, hook: &str, figures: &Value) -> Answer {
    let stack = engine.stack();
    stack.push_copy(-1);
    stack.push_bytes(hook.as_bytes());
    stack.push_json(figures);
    engine.call(2, 2)?;
    let answer = fault_of(engine, -2);
    if answer.is_ok() {
        stack.pop(2);
    }
    answer
}

/// Nil and a description mean a fault; then both leave the stack.
fn fault_of(engine: &Engine, index: i32) -> Answer {
    let stack = engine.stack();
    if stack.kind(index) != lua::LUA_TNIL {
        return Ok(());
    }
    let mut fault = Fault::plain("");
    stack.get_field(-1, c"message");
    fault.message = stack.text(-1);
    stack.pop(1);
    stack.get_field(-1, c"traceback");
    fault.traceback = stack.text(-1);
    stack.pop(3);
    Err(fault)
}
