//! How long a client's share of a transaction takes without a server: one `\set` with a random
//! number, one statement filled in.
//!
//! `cargo run --release -p loadstone-script --example step_time`

#![expect(
    clippy::disallowed_methods,
    reason = "an example has no driver whose clock it could use"
)]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::hint::black_box;
use std::time::Instant;

use loadstone_gen::random::Prng;
use loadstone_script::{
    CommandKind, EvalContext, Machine, Next, QueryMode, Symbols, Value, Vars, builtin, parse,
};

const ROUNDS: u32 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tpcb = builtin("tpcb-like")?.source;
    measure(
        "set + select",
        "\\set aid random(1, 100000)\nSELECT abalance FROM t WHERE aid = :aid;",
    )?;
    measure("set only", "\\set aid random(1, 100000)")?;
    measure(
        "set with a variable",
        "\\set aid random(1, 100000 * :scale)",
    )?;
    measure("tpcb-like", tpcb)?;
    let mut prng = Prng::from_seed(1);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(prng.uniform(1, 100_000));
    }
    println!(
        "{:>24}: {:6.1} ns",
        "uniform",
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    );
    Ok(())
}

fn measure(what: &str, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut symbols = Symbols::new();
    let script = parse(what, text, QueryMode::Simple, &mut symbols)?;
    let mut vars = Vars::new(symbols.len());
    vars.set(symbols.intern("scale"), Value::Int(10));
    let mut prng = Prng::from_seed(1);
    let mut machine = Machine::new();
    let mut message = Vec::new();
    let mut debug = |_: &str| {};
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let mut cx = EvalContext::new(&mut vars, &mut prng, &mut debug);
        loop {
            match machine.next(&script, &mut cx)? {
                Next::End => break,
                Next::Sql(index) => {
                    if let CommandKind::Sql(statement) = &script.commands[index].kind {
                        message.clear();
                        statement.write_simple(cx.vars, &mut message);
                        black_box(&message);
                    }
                }
                _ => {}
            }
        }
    }
    println!(
        "{what:>24}: {:6.1} ns",
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    );
    Ok(())
}
