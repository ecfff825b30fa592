//! What a script says of itself when it is loaded: its options, commands and functions.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Fault;
use crate::engine::{Engine, push_kept};
use crate::script::Script;
use crate::spec::ScriptSpec;

/// A script that takes longer to load does something else.
const LOAD_LIMIT: Duration = Duration::from_secs(10);

/// Why a script cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptFault {
    /// What is wrong, without the place.
    pub message: String,
    /// The file, as the script's chunk is called.
    pub file: String,
    /// Line in it, 0 where none is known.
    pub line: u32,
    /// Which function called which.
    pub traceback: String,
    /// What the script printed before.
    pub output: String,
}

/// Load a script in a state of its own, and say what it declares.
///
/// # Errors
/// A script that is not there, does not parse, fails while it is loaded, or takes too long.
pub fn describe(spec: ScriptSpec) -> Result<Value, ScriptFault> {
    let name = spec.script.clone();
    let printed = Arc::new(Mutex::new(String::new()));
    let paper = Arc::clone(&printed);
    let output = Box::new(move |_, text: &str| {
        paper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push_str(text);
    });
    let script = Script::new(spec, 1, output).map_err(|fault| placed(&name, fault))?;
    let described = within(&script);
    let output = std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner));
    match described {
        Ok(mut described) => {
            described["output"] = output.into();
            Ok(described)
        }
        Err(fault) => Err(ScriptFault {
            output,
            ..placed(&name, fault)
        }),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a limit of seconds, in no figure"
)]
/// Load in a thread of its own, which is interrupted when it takes too long.
fn within(script: &Arc<Script>) -> Result<Value, Fault> {
    let loader = Arc::clone(script);
    let loading = thread::Builder::new()
        .name("script".to_owned())
        .spawn(move || load(&loader))
        .map_err(|error| Fault::plain(format!("cannot start a thread: {error}")))?;
    let until = Instant::now() + LOAD_LIMIT;
    while !loading.is_finished() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            script.end();
            let _ = loading.join();
            let seconds = LOAD_LIMIT.as_secs();
            return Err(Fault::plain(format!(
                "the script was still being loaded after {seconds} s"
            )));
        }
        thread::park_timeout(left.min(Duration::from_millis(1)));
    }
    loading
        .join()
        .unwrap_or_else(|_| Err(Fault::plain("internal: loading the script broke")))
}

fn load(script: &Arc<Script>) -> Result<Value, Fault> {
    let engine = Engine::new(script, true)?;
    let stack = engine.stack();
    push_kept(stack, engine.world);
    stack.get_field(-1, c"describe");
    engine.push_extend();
    push_kept(stack, engine.api);
    engine.call(2, 2)?;
    if stack.kind(-2) == mlua_sys::LUA_TNIL {
        let mut fault = Fault::plain("");
        stack.get_field(-1, c"message");
        fault.message = stack.text(-1);
        stack.pop(1);
        stack.get_field(-1, c"traceback");
        fault.traceback = stack.text(-1);
        return Err(fault);
    }
    stack.pop(1);
    Ok(read(stack.json(-1)))
}

/// As the core's interface has it: lists stay lists where they are empty.
fn read(mut described: Value) -> Value {
    for list in ["options", "has", "files"] {
        if described[list]
            .as_object()
            .is_some_and(serde_json::Map::is_empty)
        {
            described[list] = json!([]);
        }
    }
    described
}

/// Errors of LuaJIT begin with their place.
pub(crate) fn placed(name: &str, fault: Fault) -> ScriptFault {
    let mut parts = fault.message.splitn(3, ':');
    let (file, line, rest) = (parts.next(), parts.next(), parts.next());
    match (file, line.and_then(|line| line.parse().ok()), rest) {
        (Some(file), Some(line), Some(rest)) => ScriptFault {
            message: rest.trim_start().to_owned(),
            file: file.to_owned(),
            line,
            traceback: fault.traceback,
            output: String::new(),
        },
        _ => ScriptFault {
            message: fault.message,
            file: name.to_owned(),
            line: 0,
            traceback: fault.traceback,
            output: String::new(),
        },
    }
}
