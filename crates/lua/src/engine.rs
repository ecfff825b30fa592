//! One state of LuaJIT for all clients of a thread.
#![expect(unsafe_code, reason = "LuaJIT's interface is C's")]

mod exchange;
mod interrupt;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use mlua_sys as lua;
use serde_json::json;

use self::exchange::{numbered, push_answer, read_parameters, settings, small, statement};
pub(crate) use self::interrupt::Interrupt;
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
    Sleep,
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
    (c"SLEEP", Op::Sleep),
];

/// The parts of the prelude with their names, in the order in which they build on each other: each has what those
/// before it have returned.
const PRELUDE: [(&CStr, &CStr, &str); 8] = [
    (
        c"=standard.lua",
        c"standard",
        include_str!("prelude/standard.lua"),
    ),
    (
        c"=globals.lua",
        c"globals",
        include_str!("prelude/globals.lua"),
    ),
    (
        c"=client.lua",
        c"client",
        include_str!("prelude/client.lua"),
    ),
    (c"=sql.lua", c"sql", include_str!("prelude/sql.lua")),
    (
        c"=statements.lua",
        c"statements",
        include_str!("prelude/statements.lua"),
    ),
    (c"=api.lua", c"api", include_str!("prelude/api.lua")),
    (
        c"=legacy.lua",
        c"legacy",
        include_str!("prelude/legacy.lua"),
    ),
    (
        c"=reports.lua",
        c"reports",
        include_str!("prelude/reports.lua"),
    ),
];
/// Where they are on the stack, behind the functions of the core, our marker and the settings.
const PRELUDE_AT: c_int = 4;

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
        let interrupt = Arc::new(Interrupt::new(state));
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
        stack.new_table(0, PRELUDE.len());
        for (chunk, name, text) in PRELUDE {
            self.run_text(chunk, text, PRELUDE_AT, 1)?;
            stack.set_field(name);
        }
        stack.get_field(PRELUDE_AT, c"client");
        stack.get_field(-1, c"client");
        self.body = self.kept();
        self.world = self.kept();
        stack.get_field(PRELUDE_AT, c"api");
        stack.get_field(-1, c"extend");
        self.extend = self.kept();
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
        self.interrupt.note_turn();
        // SAFETY: the coroutine waits, or has its function and arguments on its stack.
        let status = unsafe { lua::lua_resume_(stack.0, arguments) };
        self.interrupt.note_turn();
        self.context.client = ptr::null_mut();
        let was_interrupted = self.interrupt.take();
        let request = match status {
            lua::LUA_YIELD => self.request(stack, client),
            lua::LUA_OK => Request::Ended,
            _ => Request::Failed(died(stack)),
        };
        stack.set_top(0);
        match request {
            Request::Failed(_) if was_interrupted => Request::Interrupted,
            other => other,
        }
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
            Op::Rollback => {
                let _ = statement(client, Some(b"ROLLBACK"));
                Request::Rollback
            }
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
            Op::Sleep => Request::Sleep(stack.number(3)),
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
        self.interrupt.let_go();
        // SAFETY: nothing uses it any more; what the script collects now may still write.
        unsafe { lua::lua_close(self.main.0) };
    }
}

/// Why a coroutine has ended by itself: an error that nobody has caught.
fn died(stack: Stack) -> Fault {
    Fault::plain(stack.text(-1))
}
