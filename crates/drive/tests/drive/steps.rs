//! Loads in steps: one after the other, each stored whole before the next begins.

use loadstone_drive::Drive;
use loadstone_drive::clock::now_ns;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

use crate::harness::{finish, number, on_both, start};
use crate::load::{assert_every_batch, assert_ledger, data, expected, into_store};
use crate::store::{Store, Trouble};

on_both!(
    a_step_that_fails_is_the_last,
    a_stop_while_a_step_waits_ends_the_load,
    steps_that_are_stored_are_passed_over,
);

const ROWS: u64 = 8100;

fn steps(account: &Value) -> &Vec<Value> {
    account["load"]["steps"].as_array().unwrap()
}

/// Let every step begin that waits for it; returns the account and how often one did.
fn proceed_always(drive: &Drive) -> (Value, usize) {
    let mut held = 0;
    loop {
        if let Some(text) = drive.wait(Duration::from_secs(30)) {
            return (serde_json::from_str(&text.unwrap()).unwrap(), held);
        }
        let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
        if progress["holding"] == true {
            held += 1;
            assert_eq!(progress["steps"].as_array().unwrap().len(), held);
            drive.proceed();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn steps_follow_each_other_and_hold_all_rows(
        batch_rows in 40_u64..3000, step_rows in 200_u64..9000, clients in 1_usize..5, hash: bool, hold: bool,
        limited: bool,
    ) {
        let store = Store::new(Trouble::default());
        let rows = if limited { 5000 } else { ROWS };
        let load = json!({"batch_rows": batch_rows, "step_rows": step_rows, "hold": hold, "hash_workers": hash,
                          "limit_rows": if limited { rows } else { 0 }});
        let drive = start(&into_store(&store, "epoll", &load, &json!({"clients": clients})));
        let (account, held) = proceed_always(&drive);
        prop_assert_eq!(&account["state"], "complete");
        let steps = steps(&account);
        prop_assert_eq!(steps.len() as u64, rows.div_ceil(step_rows));
        // It may be seen to wait after its last step too.
        let most = if hold { steps.len() } else { 0 };
        prop_assert!((most.saturating_sub(1)..=most).contains(&held), "{} of {}", held, most);
        let mut end_ns = number(&account["start_ns"]);
        for (index, step) in (0_u64..).zip(steps) {
            prop_assert_eq!(number(&step["step"]), index);
            prop_assert_eq!(number(&step["first_row"]), index * step_rows);
            prop_assert_eq!(number(&step["rows"]), step_rows.min(rows - index * step_rows));
            prop_assert_eq!(&step["state"], "complete");
            prop_assert!(number(&step["start_ns"]) >= end_ns, "{:?}", steps);
            end_ns = number(&step["end_ns"]);
            prop_assert!(number(&step["start_ns"]) < end_ns);
        }
        prop_assert!(number(&account["end_ns"]) >= end_ns);
        let batches: u64 = steps.iter().map(|step| number(&step["batches"])).sum();
        prop_assert_eq!(number(&account["load"]["batches"]), batches);
        let numbers = assert_every_batch(&account);
        prop_assert_eq!(numbers.iter().copied().collect::<Vec<u64>>(), (0..numbers.len() as u64).collect::<Vec<_>>());
        if !limited {
            prop_assert_eq!(store.content().0, expected(&data("devops")));
        }
    }
}

fn a_step_that_fails_is_the_last(io: &str) {
    let store = Store::new(Trouble {
        copy: Some(60),
        ..Trouble::default()
    });
    let load = json!({"batch_rows": 200, "step_rows": 1000});
    let account = finish(&start(&into_store(&store, io, &load, &json!({}))));
    assert_eq!(account["state"], "aborted");
    let steps = steps(&account);
    let states: Vec<&str> = steps.iter().map(|s| s["state"].as_str().unwrap()).collect();
    let (last, before) = states.split_last().unwrap();
    assert_eq!(*last, "failed");
    assert!(before.iter().all(|state| *state == "complete"), "{steps:?}");
    assert_ledger(&store, &account);
}

fn a_stop_while_a_step_waits_ends_the_load(io: &str) {
    let store = Store::new(Trouble::default());
    let load = json!({"batch_rows": 200, "step_rows": 1000, "hold": true});
    let drive = start(&into_store(&store, io, &load, &json!({})));
    assert!(drive.wait(Duration::from_secs(30)).is_none());
    let progress: Value = serde_json::from_str(&drive.progress()).unwrap();
    assert_eq!(progress["holding"], true);
    assert_eq!(progress["steps"][0]["rows"], 1000);
    // What comes next is not begun while the step waits, however long.
    std::thread::park_timeout(Duration::from_millis(50));
    assert_eq!(store.content().1.len(), 5);
    let begun_ns = now_ns();
    drive.stop();
    let account = finish(&drive);
    assert!(now_ns() - begun_ns < 20_000_000_000);
    assert_eq!(account["state"], "interrupted");
    assert_eq!(steps(&account).len(), 1);
    assert_ledger(&store, &account);
}

fn steps_that_are_stored_are_passed_over(io: &str) {
    let store = Store::new(Trouble::default());
    // Three steps and a part of the fourth: five batches each.
    let skip = json!([[0, 14], [16, 17]]);
    let load = json!({"batch_rows": 200, "step_rows": 1000, "skip": skip});
    let account = finish(&start(&into_store(&store, io, &load, &json!({}))));
    assert_eq!(account["state"], "complete");
    let first = &steps(&account)[0];
    assert_eq!(
        (&first["step"], &first["first_row"]),
        (&json!(3), &json!(3000))
    );
    assert_eq!(
        (&first["batches"], &first["rows"]),
        (&json!(3), &json!(600))
    );
    assert_eq!(account["load"]["skipped_batches"], 17);
    assert_eq!(account["load"]["rows"], ROWS - 3400);
}
