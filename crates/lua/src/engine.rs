//! One state of LuaJIT for all clients of a thread.
#![expect(unsafe_code, reason = "LuaJIT's interface is C's")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mlua_sys as lua;
use serde_json::{Value, json};

use crate::client::{Answer, Client, Fault, Request};
use crate::natives::{Context, NATIVES};
use crate::script::Script;
use crate::stack::Stack;

/// What a coroutine asks for, by the number under which the prelude knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Next,
    Query,
    Bulk,
    Prepare,
    Execute,
    Close,
    Connect,
    Disconnect,
    Reconnect,
    Rollback,
    Switch,
    Restart,
    Leave,
    Last,
    AwaitInit,
    AwaitDone,
    Fail,
}

const OPS: &[(&CStr, Op)] = &[
    (c"NEXT", Op::Next),
    (c"QUERY", Op::Query),
    (c"BULK", Op::Bulk),
    (c"PREPARE", Op::Prepare),
    (c"EXECUTE", Op::Execute),
    (c"CLOSE", Op::Close),
    (c"CONNECT", Op::Connect),
    (c"DISCONNECT", Op::Disconnect),
    (c"RECONNECT", Op::Reconnect),
    (c"ROLLBACK", Op::Rollback),
    (c"SWITCH", Op::Switch),
    (c"RESTART", Op::Restart),
    (c"LEAVE", Op::Leave),
    (c"LAST", Op::Last),
    (c"AWAIT_INIT", Op::AwaitInit),
    (c"AWAIT_DONE", Op::AwaitDone),
    (c"FAIL", Op::Fail),
];

const CLIENT: &CStr = c"=client.lua";
/// The parts of the prelude, in the order in which they build on each other.
const PRELUDE: [(&CStr, &str); 4] = [
    (CLIENT, include_str!("prelude/client.lua")),
    (c"=api.lua", include_str!("prelude/api.lua")),
    (c"=legacy.lua", include_str!("prelude/legacy.lua")),
    (c"=reports.lua", include_str!("prelude/reports.lua")),
];

thread_local! {
    static ENGINE: RefCell<Option<Engine>> = const { RefCell::new(None) };
}

/// Let a client's script go on, on the engine of this thread.
pub(crate) fn resume(client: &mut Client, answer: Answer<'_>) -> Request {
    ENGINE.with_borrow_mut(|place| {
        let engine = match place {
            Some(engine)
                if ptr::eq(
                    Arc::as_ptr(&engine.context.script),
                    Arc::as_ptr(&client.script),
                ) =>
            {
                engine
            }
            place => match Engine::new(&client.script, true) {
                Ok(engine) => place.insert(engine),
                Err(fault) => return Request::Failed(fault),
            },
        };
        engine.resume(client, answer)
    })
}

/// Ends from another thread what a script computes.
#[derive(Debug)]
pub(crate) struct Interrupt {
    state: Mutex<AtomicPtr<lua::lua_State>>,
    /// Odd while the script runs.
    turn: AtomicU64,
}

impl Interrupt {
    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    pub(crate) fn fire(&self) {
        // The lock keeps the state alive.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.load(Ordering::Relaxed);
        if !state.is_null() {
            // SAFETY: LuaJIT lets another thread set a hook of a state at any time, as its manual says of signals.
            unsafe {
                lua::lua_sethook(
                    state,
                    Some(interrupted),
                    lua::LUA_MASKCOUNT | lua::LUA_MASKCALL | lua::LUA_MASKRET,
                    1,
                );
            }
        }
    }
}

unsafe extern "C-unwind" fn interrupted(state: *mut lua::lua_State, _: *mut lua::lua_Debug) {
    Stack(state).push_bytes(b"interrupted: the run is over, and the script does not come back");
    // SAFETY: a hook may throw; nothing here needs to be dropped.
    unsafe { lua::lua_error(state) };
}

pub(crate) struct Engine {
    main: Stack,
    context: Box<Context>,
    interrupt: Arc<Interrupt>,
    /// Coroutines of clients that have begun.
    coroutines: BTreeMap<usize, Stack>,
    /// References in the registry: what keeps values alive.
    body: c_int,
    extend: c_int,
    pub(crate) world: c_int,
    pub(crate) api: c_int,
}

impl Engine {
    /// A state with the prelude; `compiles`: LuaJIT's compiler is on.
    pub(crate) fn new(script: &Arc<Script>, compiles: bool) -> Result<Self, Fault> {
        // SAFETY: a new state, closed when the engine is dropped.
        let state = unsafe { lua::luaL_newstate() };
        if state.is_null() {
            return Err(Fault::plain("LuaJIT has no memory"));
        }
        let context = Context {
            script: Arc::clone(script),
            client: ptr::null_mut(),
            scratch: Vec::new(),
        };
        let interrupt = Arc::new(Interrupt {
            state: Mutex::new(AtomicPtr::new(state)),
            turn: AtomicU64::new(0),
        });
        script.watch(Arc::clone(&interrupt));
        let mut engine = Self {
            main: Stack(state),
            context: Box::new(context),
            interrupt,
            coroutines: BTreeMap::new(),
            body: 0,
            extend: 0,
            world: 0,
            api: 0,
        };
        unsafe { lua::luaL_openlibs(state) };
        if !compiles {
            engine.run_text(c"=loadstone", "jit.off(); jit.flush()", 0, 0)?;
        }
        engine.load_prelude()?;
        Ok(engine)
    }

    /// The functions of the core, the settings, and each part of the prelude over those before it.
    fn load_prelude(&mut self) -> Result<(), Fault> {
        let stack = self.main;
        let context: *mut Context = &raw mut *self.context;
        stack.new_table(0, NATIVES.len() + OPS.len());
        for (name, native) in NATIVES {
            // SAFETY: the context is in a box that outlives the state.
            unsafe {
                lua::lua_pushlightuserdata(stack.0, context.cast());
                lua::lua_pushcclosure(stack.0, *native, 1);
            }
            stack.set_field(name);
        }
        for (name, op) in OPS {
            stack.push_number(f64::from(*op as u8));
            stack.set_field(name);
        }
        unsafe { lua::lua_pushlightuserdata(stack.0, self.marker()) };
        stack.push_json(&settings(&self.context.script));
        for (name, text) in PRELUDE {
            let before = stack.top();
            self.run_text(name, text, before, 1)?;
            if stack.kind(-1) == lua::LUA_TNIL {
                stack.pop(1);
            }
        }
        // host, marker, settings, world, api
        stack.push_copy(4);
        self.world = self.kept();
        stack.get_field(4, c"client");
        self.body = self.kept();
        stack.get_field(5, c"extend");
        self.extend = self.kept();
        stack.push_copy(5);
        self.api = self.kept();
        stack.set_top(0);
        Ok(())
    }

    /// Tells what is meant for us from what a script yields by itself.
    fn marker(&self) -> *mut c_void {
        ptr::from_ref(&*self.context).cast_mut().cast()
    }

    /// Take the value on top into the registry.
    fn kept(&self) -> c_int {
        unsafe { lua::luaL_ref(self.main.0, lua::LUA_REGISTRYINDEX) }
    }

    pub(crate) fn stack(&self) -> Stack {
        self.main
    }

    pub(crate) fn push_extend(&self) {
        push_kept(self.main, self.extend);
    }

    /// Run a text with the lowest `arguments` values of the stack.
    fn run_text(
        &self,
        name: &CStr,
        text: &str,
        arguments: c_int,
        results: c_int,
    ) -> Result<(), Fault> {
        let stack = self.main;
        // SAFETY: the text is passed with its length.
        let status = unsafe {
            lua::luaL_loadbuffer(stack.0, text.as_ptr().cast(), text.len(), name.as_ptr())
        };
        if status != lua::LUA_OK {
            return Err(Fault::plain(stack.text(-1)));
        }
        for index in 1..=arguments {
            stack.push_copy(index);
        }
        self.call(arguments, results)
    }

    /// Call the function below its arguments.
    pub(crate) fn call(&self, arguments: c_int, results: c_int) -> Result<(), Fault> {
        // SAFETY: function and arguments are on the stack; errors are caught.
        let status = unsafe { lua::lua_pcall(self.main.0, arguments, results, 0) };
        if status == lua::LUA_OK {
            return Ok(());
        }
        let message = self.main.text(-1);
        self.main.pop(1);
        Err(Fault::plain(message))
    }

    fn resume(&mut self, client: &mut Client, answer: Answer<'_>) -> Request {
        let (stack, arguments) = match self.coroutines.get(&client.number) {
            Some(&stack) => (stack, push_answer(stack, client, answer)),
            None => (self.begin(client.number), 2),
        };
        self.context.client = client;
        self.interrupt.turn.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the coroutine waits, or has its function and arguments on its stack.
        let status = unsafe { lua::lua_resume_(stack.0, arguments) };
        self.interrupt.turn.fetch_add(1, Ordering::Relaxed);
        self.context.client = ptr::null_mut();
        let request = match status {
            lua::LUA_YIELD => self.request(stack, client),
            lua::LUA_OK => Request::Ended,
            _ => Request::Failed(died(stack)),
        };
        stack.set_top(0);
        request
    }

    /// A coroutine with the body of a client, to be resumed with two arguments.
    fn begin(&mut self, number: usize) -> Stack {
        let main = self.main;
        // SAFETY: the registry keeps the coroutine alive as long as the engine.
        let stack = unsafe {
            let stack = Stack(lua::lua_newthread(main.0));
            lua::luaL_ref(main.0, lua::LUA_REGISTRYINDEX);
            stack
        };
        push_kept(stack, self.body);
        stack.push_json(&json!(number));
        push_kept(stack, self.extend);
        self.coroutines.insert(number, stack);
        stack
    }

    /// What a coroutine has yielded.
    fn request(&self, stack: Stack, client: &mut Client) -> Request {
        let marker = unsafe { lua::lua_touserdata(stack.0, 1) };
        let op = OPS
            .iter()
            .map(|(_, op)| *op)
            .find(|op| u32::from(*op as u8) == small(stack.number(2)));
        let (true, Some(op)) = (ptr::eq(marker, self.marker()), op) else {
            return Request::Failed(Fault::plain(
                "attempt to yield across an event: only coroutines of the script's own may yield",
            ));
        };
        match op {
            Op::Next => Request::Next,
            Op::Query => statement(client, stack.bytes(3)),
            Op::Rollback => statement(client, Some(b"ROLLBACK")).then_rollback(),
            Op::Bulk => {
                client.sql.clear();
                client.sql.extend_from_slice(&client.bulk.text);
                client.bulk.sent();
                Request::BulkInsert {
                    has_more: stack.flag(3),
                }
            }
            Op::Prepare => {
                numbered(&mut client.sql, stack.bytes(4).unwrap_or_default());
                Request::Prepare(small(stack.number(3)))
            }
            Op::Execute => {
                read_parameters(stack, client);
                Request::Execute(small(stack.number(3)))
            }
            Op::Close => Request::Close(small(stack.number(3))),
            Op::Switch => Request::Switch(small(stack.number(3))),
            Op::Connect => Request::Connect,
            Op::Disconnect => Request::Disconnect,
            Op::Reconnect => Request::Reconnect,
            Op::Restart => Request::Restart,
            Op::Leave => Request::Leave,
            Op::Last => Request::Last,
            Op::AwaitInit => Request::AwaitInit,
            Op::AwaitDone => Request::AwaitDone,
            Op::Fail => Request::Failed(Fault {
                function: stack.text(3),
                message: stack.text(4),
                traceback: stack.text(5),
            }),
        }
    }
}

/// Push what the registry keeps.
pub(crate) fn push_kept(stack: Stack, reference: c_int) {
    // SAFETY: the registry is there as long as the state.
    unsafe {
        lua::lua_rawgeti_(stack.0, lua::LUA_REGISTRYINDEX, reference);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let state = self
            .interrupt
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        state.store(ptr::null_mut(), Ordering::Relaxed);
        drop(state);
        // SAFETY: nothing uses it any more; what the script collects now may still write.
        unsafe { lua::lua_close(self.main.0) };
    }
}

impl Request {
    fn then_rollback(self) -> Self {
        match self {
            Self::Query => Self::Rollback,
            other => other,
        }
    }
}

fn statement(client: &mut Client, text: Option<&[u8]>) -> Request {
    let Some(text) = text else {
        return Request::Failed(Fault::plain("bad argument to 'query' (string expected)"));
    };
    client.sql.clear();
    client.sql.extend_from_slice(text);
    Request::Query
}

/// The text of a statement with `$1`, `$2` and so on for each question mark, as sysbench does it: in quotes, too.
fn numbered(sql: &mut Vec<u8>, text: &[u8]) {
    sql.clear();
    let mut number = 0;
    for &byte in text {
        if byte == b'?' {
            number += 1;
            sql.extend_from_slice(format!("${number}").as_bytes());
        } else {
            sql.push(byte);
        }
    }
}

fn read_parameters(stack: Stack, client: &mut Client) {
    client.parameters.clear();
    for index in 4..=stack.top() {
        match stack.kind(index) {
            lua::LUA_TNUMBER => client.parameters.number(stack.number(index)),
            lua::LUA_TNIL => client.parameters.null(),
            _ => client
                .parameters
                .text(stack.bytes(index).unwrap_or_default()),
        }
    }
}

/// Push what a coroutine is resumed with; returns how many values that are.
fn push_answer(stack: Stack, client: &Client, answer: Answer<'_>) -> c_int {
    match answer {
        Answer::Nothing => 0,
        Answer::Flag(flag) => {
            stack.push_bool(flag);
            1
        }
        Answer::Refused(why, state) => {
            stack.push_nil();
            stack.push_bytes(why.as_bytes());
            stack.push_bytes(state.as_bytes());
            3
        }
        Answer::Done { .. } if client.result.has_columns() => {
            stack.push_number(1.0);
            stack.push_number(count(client.result.rows()));
            stack.push_number(count(client.result.columns()));
            stack.push_number(f64::from(client.result.number()));
            4
        }
        Answer::Done { .. } => {
            stack.push_number(0.0);
            1
        }
        Answer::Error {
            is_ignorable,
            number,
            state,
            message,
            report,
        } => {
            stack.push_number(2.0);
            stack.push_number(if is_ignorable { 1.0 } else { 2.0 });
            stack.push_number(number.into());
            stack.push_bytes(state.as_bytes());
            stack.push_bytes(message.as_bytes());
            stack.push_bytes(report.as_bytes());
            6
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "rows and columns in memory")]
fn count(number: usize) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number that the prelude gave"
)]
fn small(number: f64) -> u32 {
    number as u32
}

/// Why a coroutine has ended by itself: an error that nobody has caught.
fn died(stack: Stack) -> Fault {
    Fault::plain(stack.text(-1))
}

/// What the prelude has to know of the run.
fn settings(script: &Script) -> Value {
    let spec = &script.spec;
    let options: serde_json::Map<String, Value> = spec
        .options
        .iter()
        .map(|(name, value)| (name.replace('-', "_"), value.clone()))
        .collect();
    json!({
        "script": spec.script,
        "source": spec.source,
        "files": spec.files,
        "path": spec.package_path(),
        "cpath": "./?.so;/usr/local/lib/lua/5.1/?.so;/usr/lib/lua/5.1/?.so",
        "command": spec.command,
        "options": options,
        "argv": spec.argv,
        "driver": spec.driver,
        "host": spec.host,
        "place": spec.place,
        "ps_mode": spec.ps_mode,
        "parts": [],
    })
}
