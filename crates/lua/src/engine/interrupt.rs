//! Ends from another thread what a script computes.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use mlua_sys as lua;

use crate::stack::Stack;

/// The state of one thread, as other threads may touch it.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// Null once the state is closed.
    state: Mutex<AtomicPtr<lua::lua_State>>,
    /// Odd while the script runs.
    turn: AtomicU64,
    fired: AtomicBool,
}

impl Interrupt {
    pub(super) fn new(state: *mut lua::lua_State) -> Self {
        Self {
            state: Mutex::new(AtomicPtr::new(state)),
            turn: AtomicU64::new(0),
            fired: AtomicBool::new(false),
        }
    }

    pub(crate) fn turn(&self) -> u64 {
        self.turn.load(Ordering::Relaxed)
    }

    /// The script is entered, or has come back.
    pub(super) fn note_turn(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Whatever is computed fails, again and again, until it has come back.
    pub(crate) fn fire(&self) {
        // The lock keeps the state alive.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.load(Ordering::Relaxed);
        if !state.is_null() {
            self.fired.store(true, Ordering::Relaxed);
            let events = lua::LUA_MASKCOUNT | lua::LUA_MASKCALL | lua::LUA_MASKRET;
            // SAFETY: LuaJIT lets another thread set a hook of a state at any time, as its manual says of signals.
            unsafe { lua::lua_sethook(state, Some(interrupted), events, 1) };
        }
    }

    /// The script has come back: whether it was interrupted. Others of its thread are not.
    pub(super) fn take(&self) -> bool {
        if !self.fired.load(Ordering::Relaxed) {
            return false;
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.fired.store(false, Ordering::Relaxed);
        // SAFETY: this is the state's own thread, and the state is closed by nobody else.
        unsafe { lua::lua_sethook(state.load(Ordering::Relaxed), None, 0, 0) };
        true
    }

    /// The state is about to be closed.
    pub(super) fn let_go(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

unsafe extern "C-unwind" fn interrupted(state: *mut lua::lua_State, _: *mut lua::lua_Debug) {
    Stack(state).push_bytes(b"interrupted: the run is over, and the script does not come back");
    // SAFETY: a hook may throw; nothing here needs to be dropped.
    unsafe { lua::lua_error(state) };
}
