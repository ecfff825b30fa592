//! Builds LuaJIT so that a loop in compiled code can be interrupted.

use std::env;

#[expect(
    clippy::disallowed_methods,
    reason = "a build script is told by its environment"
)]
#[expect(unsafe_code, reason = "the only way to hand LuaJIT's makefile a flag")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CFLAGS");
    let flags = env::var("CFLAGS").unwrap_or_default();
    // SAFETY: a build script has one thread here. LuaJIT's makefile and its compiler both read the variable.
    unsafe { env::set_var("CFLAGS", format!("{flags} -DLUAJIT_ENABLE_CHECKHOOK")) };
    let mut build = luajit_src::Build::new();
    // Its own checks cost more than what they find: they are LuaJIT's, not ours.
    build.debug(false).build().print_cargo_metadata();
}
