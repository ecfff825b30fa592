//! Values on LuaJIT's stack. All of it is for this crate: a state is only ever used by the thread that made it.
#![expect(unsafe_code, reason = "LuaJIT's interface is C's")]

use std::ffi::{CStr, c_int};

use mlua_sys as lua;
use serde_json::Value;

/// A state, or a coroutine in it. Its methods need room on the stack, which they ask for where they push many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stack(pub(crate) *mut lua::lua_State);

// SAFETY of the calls below: the state is alive as long as its engine, which owns all stacks; indices are checked
// by LuaJIT (an index without a value reads as nil); nothing here calls Lua code, except `set` on plain tables.
impl Stack {
    pub(crate) fn top(self) -> c_int {
        unsafe { lua::lua_gettop(self.0) }
    }

    pub(crate) fn set_top(self, top: c_int) {
        unsafe { lua::lua_settop(self.0, top) }
    }

    pub(crate) fn pop(self, count: c_int) {
        self.set_top(-count - 1);
    }

    pub(crate) fn push_bytes(self, bytes: &[u8]) {
        unsafe { lua::lua_pushlstring_(self.0, bytes.as_ptr().cast(), bytes.len()) }
    }

    pub(crate) fn push_number(self, number: f64) {
        unsafe { lua::lua_pushnumber(self.0, number) }
    }

    pub(crate) fn push_bool(self, flag: bool) {
        unsafe { lua::lua_pushboolean(self.0, flag.into()) }
    }

    pub(crate) fn push_nil(self) {
        unsafe { lua::lua_pushnil(self.0) }
    }

    pub(crate) fn push_copy(self, index: c_int) {
        unsafe { lua::lua_pushvalue(self.0, index) }
    }

    pub(crate) fn new_table(self, items: usize, fields: usize) {
        let size = |count: usize| c_int::try_from(count).unwrap_or(0);
        unsafe { lua::lua_createtable(self.0, size(items), size(fields)) }
    }

    /// Store the value on top in the table below it.
    pub(crate) fn set_field(self, name: &CStr) {
        unsafe { lua::lua_setfield(self.0, -2, name.as_ptr()) }
    }

    pub(crate) fn set_item(self, number: usize) {
        unsafe { lua::lua_rawseti(self.0, -2, i64_or_int(number)) }
    }

    pub(crate) fn get_field(self, index: c_int, name: &CStr) {
        unsafe {
            lua::lua_getfield_(self.0, index, name.as_ptr());
        }
    }

    pub(crate) fn kind(self, index: c_int) -> c_int {
        unsafe { lua::lua_type(self.0, index) }
    }

    pub(crate) fn number(self, index: c_int) -> f64 {
        unsafe { lua::lua_tonumber(self.0, index) }
    }

    pub(crate) fn flag(self, index: c_int) -> bool {
        unsafe { lua::lua_toboolean(self.0, index) != 0 }
    }

    /// A text; of a number its digits, which it becomes on the stack. It lives as long as it is there.
    pub(crate) fn bytes<'a>(self, index: c_int) -> Option<&'a [u8]> {
        let mut length = 0;
        let begin = unsafe { lua::lua_tolstring(self.0, index, &raw mut length) };
        if begin.is_null() {
            return None;
        }
        Some(unsafe { std::slice::from_raw_parts(begin.cast(), length) })
    }

    pub(crate) fn text(self, index: c_int) -> String {
        String::from_utf8_lossy(self.bytes(index).unwrap_or_default()).into_owned()
    }

    /// A value as JSON knows it.
    pub(crate) fn push_json(self, value: &Value) {
        match value {
            Value::Null => self.push_nil(),
            Value::Bool(flag) => self.push_bool(*flag),
            Value::Number(number) => self.push_number(number.as_f64().unwrap_or(f64::NAN)),
            Value::String(text) => self.push_bytes(text.as_bytes()),
            Value::Array(items) => {
                self.room();
                self.new_table(items.len(), 0);
                for (place, item) in (1..).zip(items) {
                    self.push_json(item);
                    self.set_item(place);
                }
            }
            Value::Object(fields) => {
                self.room();
                self.new_table(0, fields.len());
                for (name, field) in fields {
                    self.push_bytes(name.as_bytes());
                    self.push_json(field);
                    unsafe { lua::lua_rawset(self.0, -3) }
                }
            }
        }
    }

    /// A value as JSON: a table with a first item is a list.
    pub(crate) fn json(self, index: c_int) -> Value {
        match self.kind(index) {
            lua::LUA_TBOOLEAN => self.flag(index).into(),
            lua::LUA_TNUMBER => self.number(index).into(),
            lua::LUA_TSTRING => self.text(index).into(),
            lua::LUA_TTABLE => self.table_json(index),
            _ => Value::Null,
        }
    }

    fn table_json(self, index: c_int) -> Value {
        self.room();
        let table = if index < 0 {
            self.top() + index + 1
        } else {
            index
        };
        let length = unsafe { lua::lua_objlen(self.0, table) };
        let mut items = Vec::new();
        for place in 1..=length {
            unsafe {
                lua::lua_rawgeti_(self.0, table, i64_or_int(place));
            }
            items.push(self.json(-1));
            self.pop(1);
        }
        if length > 0 {
            return items.into();
        }
        let mut fields = serde_json::Map::new();
        self.push_nil();
        while unsafe { lua::lua_next(self.0, table) } != 0 {
            self.push_copy(-2);
            fields.insert(self.text(-1), self.json(-2));
            self.pop(2);
        }
        fields.into()
    }

    fn room(self) {
        unsafe {
            lua::lua_checkstack(self.0, 4);
        }
    }
}

fn i64_or_int<T>(number: usize) -> T
where
    T: TryFrom<usize> + Default,
{
    T::try_from(number).unwrap_or_default()
}
