//! Our parser takes a script if and only if pgbench does.

mod grammar;

use loadstone_script::{QueryMode, Symbols, parse_as_pgbench};
use proptest::collection::vec;
use proptest::prelude::*;

fn verdict(text: &str) -> Result<(), String> {
    for mode in [QueryMode::Simple, QueryMode::Extended, QueryMode::Prepared] {
        parse_as_pgbench("s.sql", text, mode, &mut Symbols::new()).map_err(|e| e.to_string())?;
    }
    Ok(())
}

#[test]
fn each_mistake_alone_is_found() {
    for mistake in grammar::MISTAKES {
        assert!(verdict(mistake).is_err(), "{mistake}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_verdict_is_pgbenchs(bytes in vec(any::<u8>(), 0..200)) {
        let generated = grammar::script(&bytes);
        let found = verdict(&generated.text);
        prop_assert_eq!(found.is_ok(), generated.accepted, "{:?}\n{}", found, generated.text);
    }
}
