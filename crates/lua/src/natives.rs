//! Functions of the core that scripts call by way of the prelude. None of them waits, and none fails: what can be
//! wrong is said by what they return.
#![expect(unsafe_code, reason = "LuaJIT's interface is C's")]

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use mlua_sys as lua;

use crate::client::Client;
use crate::random::{self, Distributions};
use crate::script::{Script, Told};
use crate::stack::Stack;

/// What the functions work on: the client that runs now.
pub(crate) struct Context {
    pub(crate) script: Arc<Script>,
    /// Null while no client runs.
    pub(crate) client: *mut Client,
    pub(crate) scratch: Vec<u8>,
}

type Native = fn(&mut Context, Stack) -> c_int;

/// By the names under which the prelude knows them.
pub(crate) const NATIVES: &[(&CStr, lua::lua_CFunction)] = &[
    (c"default", entry::<Default>),
    (c"uniform", entry::<Uniform>),
    (c"gaussian", entry::<Gaussian>),
    (c"special", entry::<Special>),
    (c"pareto", entry::<Pareto>),
    (c"zipfian", entry::<Zipfian>),
    (c"unique", entry::<Unique>),
    (c"fraction", entry::<Fraction>),
    (c"bits", entry::<Bits>),
    (c"string", entry::<Text>),
    (c"write", entry::<Write>),
    (c"fatal", entry::<Fatal>),
    (c"alert", entry::<Alert>),
    (c"initialized", entry::<Initialized>),
    (c"count", entry::<Count>),
    (c"result_number", entry::<ResultNumber>),
    (c"fetch_row", entry::<FetchRow>),
    (c"bulk_begin", entry::<BulkBegin>),
    (c"bulk_add", entry::<BulkAdd>),
    (c"bulk_is_empty", entry::<BulkIsEmpty>),
    (c"bulk_end", entry::<BulkEnd>),
];

/// A function of the core.
trait Body {
    const CALL: Native;
}

/// What LuaJIT calls: finds the context, which is bound to the function.
unsafe extern "C-unwind" fn entry<B: Body>(state: *mut lua::lua_State) -> c_int {
    // SAFETY: the engine binds its context to each of these functions, and outlives them.
    let context =
        unsafe { &mut *lua::lua_touserdata(state, lua::lua_upvalueindex(1)).cast::<Context>() };
    (B::CALL)(context, Stack(state))
}

macro_rules! natives {
    ($($name:ident = $call:expr;)*) => {
        $(struct $name;
        impl Body for $name {
            const CALL: Native = $call;
        })*
    };
}

natives! {
    Default = |context, stack| drawn(context, stack, Distributions::default);
    Uniform = |context, stack| drawn(context, stack, |_, stream, low, high| Distributions::uniform(stream, low, high));
    Gaussian = |context, stack| drawn(context, stack, Distributions::gaussian);
    Special = |context, stack| drawn(context, stack, Distributions::special);
    Pareto = |context, stack| drawn(context, stack, Distributions::pareto);
    Zipfian = |context, stack| drawn(context, stack, Distributions::zipfian);
    Unique = |context, stack| number(stack, f64::from(context.script.unique.next()));
    Fraction = |context, stack| {
        let fraction = client(context).map_or(0.0, |client| client.stream.fraction());
        number(stack, fraction)
    };
    Bits = |context, stack| {
        let bits = client(context).map_or(0, |client| client.stream.next());
        let half = |bits: u64| f64::from(u32::try_from(bits & 0xFFFF_FFFF).unwrap_or(0));
        stack.push_number(half(bits >> 32));
        stack.push_number(half(bits));
        2
    };
    Text = |context, stack| {
        let format = stack.bytes(1).unwrap_or_default();
        let mut text = std::mem::take(&mut context.scratch);
        text.clear();
        if let Some(client) = client(context) {
            random::fill(&mut client.stream, format, &mut text);
        }
        stack.push_bytes(&text);
        context.scratch = text;
        1
    };
    Write = |context, stack| {
        let text = String::from_utf8_lossy(stack.bytes(1).unwrap_or_default());
        (context.script.output)(Told::Printed, &text);
        0
    };
    Fatal = |context, stack| told(context, stack, Told::Fatal);
    Alert = |context, stack| told(context, stack, Told::Alert);
    Initialized = |context, _| {
        context.script.initialized();
        0
    };
    Count = |context, stack| {
        let kind = usize::try_from(bits_32(stack.number(1))).unwrap_or(usize::MAX);
        if let Some(count) = client(context).and_then(|client| client.counted.get_mut(kind)) {
            *count += 1;
        }
        0
    };
    ResultNumber = |context, stack| {
        let last = client(context).map_or(0, |client| client.result.number());
        number(stack, f64::from(last))
    };
    FetchRow = |context, stack| {
        let Some(client) = client(context) else { return 0 };
        stack.new_table(client.result.columns(), 0);
        let found = client.result.fetch(|column, value| {
            stack.push_bytes(value);
            stack.set_item(column + 1);
        });
        if !found {
            stack.push_nil();
        }
        1
    };
    BulkBegin = |context, stack| {
        let head = stack.bytes(1).unwrap_or_default();
        stack.push_bool(client(context).is_some_and(|client| client.bulk.begin(head)));
        1
    };
    BulkAdd = |context, stack| {
        let row = stack.bytes(1).unwrap_or_default();
        match client(context).and_then(|client| client.bulk.add(row)) {
            Some(fits) => stack.push_bool(fits),
            None => stack.push_nil(),
        }
        1
    };
    BulkIsEmpty = |context, stack| {
        stack.push_bool(client(context).is_none_or(|client| client.bulk.is_empty()));
        1
    };
    BulkEnd = |context, _| {
        if let Some(client) = client(context) {
            client.bulk.end();
        }
        0
    };
}

fn client(context: &mut Context) -> Option<&mut Client> {
    // SAFETY: it is set to a client that is mutably borrowed for as long as the script runs, and null otherwise.
    unsafe { context.client.as_mut() }
}

fn drawn(
    context: &mut Context,
    stack: Stack,
    draw: impl Fn(&Distributions, &mut random::Stream, u32, u32) -> u32,
) -> c_int {
    let (low, high) = (bits_32(stack.number(1)), bits_32(stack.number(2)));
    let script = Arc::as_ptr(&context.script);
    // SAFETY: the context holds the script.
    let draws = unsafe { &(*script).distributions };
    let value = client(context).map_or(low, |client| draw(draws, &mut client.stream, low, high));
    number(stack, f64::from(value))
}

fn told(context: &mut Context, stack: Stack, what: Told) -> c_int {
    let text = String::from_utf8_lossy(stack.bytes(1).unwrap_or_default());
    (context.script.output)(what, &text);
    0
}

fn number(stack: Stack, value: f64) -> c_int {
    stack.push_number(value);
    1
}

/// As C converts a number to 32 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "that is what sysbench does"
)]
fn bits_32(number: f64) -> u32 {
    number as i64 as u32
}
