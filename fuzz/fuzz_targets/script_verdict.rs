//! Scripts made by a grammar that knows which of them pgbench takes: our parser takes the same ones.

#![no_main]

use std::sync::Once;

use libfuzzer_sys::fuzz_target;
use loadstone_script::{QueryMode, Symbols, parse_as_pgbench};

#[path = "../../crates/script/tests/grammar/mod.rs"]
mod grammar;

/// Choices that are tried before any other: the empty script, nested conditions, deep expressions, each followed
/// by a mistake or by nothing.
const SEEDS: &[&[u8]] = &[
    b"",
    b"\x01\x00\x00\x01\x01\x01\x00",
    b"\x04\x00\x00\x04\x03\x03\x00\x04\x00\x00\x00\x01\x00",
    b"\x03\x00\x00\x00\x03\x04\x0f\x05\x06\x04\x14\x05\x06\x00\x00\x05",
    b"\x02\x08\x05\x02\x02\x03\x00\x00\x09",
];
static SEEDED: Once = Once::new();

fuzz_target!(|data: &[u8]| {
    SEEDED.call_once(|| SEEDS.iter().copied().for_each(compare));
    compare(data);
});

fn compare(bytes: &[u8]) {
    let generated = grammar::script(bytes);
    for mode in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        let found = parse_as_pgbench("fuzz", &generated.text, mode, &mut Symbols::new());
        assert_eq!(
            found.is_ok(),
            generated.accepted,
            "{found:?}\n{}",
            generated.text
        );
    }
}
