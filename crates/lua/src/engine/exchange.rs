//! What goes over the stack between a coroutine and its client: statements and values one way, answers the other.

use std::ffi::c_int;

use mlua_sys as lua;
use serde_json::{Value, json};

use crate::client::{Answer, Client, Fault, Request};
use crate::script::Script;
use crate::stack::Stack;

pub(super) fn statement(client: &mut Client, text: Option<&[u8]>) -> Request {
    let Some(text) = text else {
        return Request::Failed(Fault::plain("bad argument to 'query' (string expected)"));
    };
    client.sql.clear();
    client.sql.extend_from_slice(text);
    Request::Query
}

/// The text of a statement with `$1`, `$2` and so on for each question mark, as sysbench does it: in quotes, too.
pub(super) fn numbered(sql: &mut Vec<u8>, text: &[u8]) {
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

pub(super) fn read_parameters(stack: Stack, client: &mut Client) {
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
pub(super) fn push_answer(stack: Stack, client: &Client, answer: Answer<'_>) -> c_int {
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
            is_reconnected,
        } => {
            stack.push_number(2.0);
            stack.push_number(if is_ignorable { 1.0 } else { 2.0 });
            stack.push_number(number.into());
            stack.push_bytes(state.as_bytes());
            stack.push_bytes(message.as_bytes());
            stack.push_bytes(report.as_bytes());
            stack.push_bool(is_reconnected);
            7
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
pub(super) fn small(number: f64) -> u32 {
    number as u32
}

/// What the prelude has to know of the run.
pub(super) fn settings(script: &Script) -> Value {
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
        "servers": spec.servers,
        "ps_mode": spec.ps_mode,
    })
}
