//! What scripts can do beside sending one statement after the other.

use std::time::{Duration, Instant};

use loadstone_wire::postgres::{Behaviour, Fault, Reply};
use serde_json::{Value, json};

use crate::harness::{
    Answer, Scripted, Server, done_failed, error, errors, message, number, on_both, ready, row,
    run, script,
};

on_both!(
    copy_fails_with_words_and_the_client_goes_on,
    copy_in_a_pipeline_costs_the_connection_and_nothing_more,
    a_script_that_cannot_go_on_waits_for_nothing,
    a_script_without_statements_runs_at_full_speed,
    an_error_inside_a_pipeline_is_not_carried_out,
    pipelines_time_each_statement,
    an_error_in_a_pipeline_fails_its_transaction,
    results_become_variables,
    gset_wants_exactly_one_row,
    branches_sleeps_and_shells,
    several_statements_in_one_query,
    weights_choose_scripts,
    large_statements_arrive_whole,
);

fn copy_fails_with_words_and_the_client_goes_on(io: &str) {
    let server = Server::new(Behaviour::default());
    for mode in ["simple", "extended", "prepared"] {
        let more = json!({"mode": mode, "transactions_per_client": 40, "scripts": [
            {"name": "copy", "text": "COPY t FROM STDIN;\n"},
            {"name": "select", "text": "SELECT 1;\n"}]});
        assert_copy_fails(&run(&server.spec(io, more)));
    }
    let server = Scripted::new(|_, sql| match sql {
        "SELECT 1;" => Answer::Row("1"),
        _ => Answer::Bytes(
            [
                message(b'H', b"\0\0\0"),
                message(b'd', b"1\n"),
                message(b'c', b""),
                message(b'C', b"COPY 1\0"),
                ready(b'I'),
            ]
            .concat(),
        ),
    });
    let more = json!({"transactions_per_client": 40, "scripts": [
        {"name": "copy", "text": "COPY t TO STDOUT;\n"},
        {"name": "select", "text": "SELECT 1;\n"}]});
    assert_copy_fails(&run(&server.spec(io, more)));
}

/// The first script fails, the second does not, and no connection is lost.
fn assert_copy_fails(account: &Value) {
    assert_eq!(account["state"], "complete");
    let (done, failed) = done_failed(account);
    assert_eq!(done + failed, 80);
    assert_eq!(account["scripts"][0]["counts"]["failed"], failed);
    assert_eq!(account["scripts"][1]["counts"]["done"], done);
    assert!(done > 10 && failed > 10, "{account}");
    assert_eq!(errors(account), [("script".to_owned(), failed)].into());
    let words = account["errors"][0]["message"].as_str().unwrap();
    assert!(words.contains("COPY"), "{words}");
    assert_eq!(account["connect"]["reconnects"], 0);
}

fn copy_in_a_pipeline_costs_the_connection_and_nothing_more(io: &str) {
    let server = Server::new(Behaviour::default());
    let text = "\\startpipeline\nCOPY t FROM STDIN;\nSELECT 1;\n\\endpipeline\n";
    let more = json!({"mode": "extended", "clients": 1, "scripts": script(text)});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (0, 10), "{account}");
    assert_eq!(errors(&account), [("script".to_owned(), 10)].into());
    assert_eq!(account["outages"], json!([]), "we closed it ourselves");
    assert_eq!(server.inner.cancels(), [10, 0]);
}

fn a_script_that_cannot_go_on_waits_for_nothing(io: &str) {
    let server = Server::new(Behaviour::default());
    let begun = now();
    let more =
        json!({"transactions_per_client": 2000, "scripts": script("\\set x 1 / 0\nSELECT :x;\n")});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (0, 4000));
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
    let words = account["errors"][0]["message"].as_str().unwrap();
    assert!(words.contains("division by zero"), "{words}");
    assert_eq!(account["state"], "complete");
}

fn a_script_without_statements_runs_at_full_speed(io: &str) {
    let server = Server::new(Behaviour::default());
    let begun = now();
    let more =
        json!({"transactions_per_client": 2000, "scripts": script("\\set x random(1, 9)\n")});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (4000, 0));
    assert!(
        begun.elapsed() < Duration::from_secs(25),
        "{:?}",
        begun.elapsed()
    );
}

fn an_error_inside_a_pipeline_is_not_carried_out(io: &str) {
    let server = Server::new(Behaviour::default());
    let text = "\\startpipeline\nINSERT INTO t VALUES (1);\n\\set x 1 / 0\n\\endpipeline\n";
    for (on_error, failed, state) in [("continue", 20, "complete"), ("abort_client", 2, "aborted")]
    {
        let more = json!({"mode": "prepared", "on_error": on_error, "scripts": script(text)});
        let account = run(&server.spec(io, more));
        assert_eq!(done_failed(&account), (0, failed), "{account}");
        assert_eq!(account["state"], state);
        assert_eq!(account["statements"][0]["service"]["count"], 0);
    }
}

fn pipelines_time_each_statement(io: &str) {
    let server = Server::new(Behaviour::default());
    let text = "\\startpipeline\nSELECT 1;\nSELECT 2;\n\\syncpipeline\nSELECT 3;\n\\endpipeline\nSELECT 4;\n";
    for mode in ["extended", "prepared"] {
        let more = json!({"mode": mode, "scripts": script(text), "transactions_per_client": 25});
        let account = run(&server.spec(io, more));
        assert_eq!(done_failed(&account), (50, 0), "{mode}");
        for statement in account["statements"].as_array().unwrap() {
            assert_eq!(statement["service"]["count"], 50, "{mode}: {statement}");
        }
    }
    let account = run(&server.spec(io, json!({"mode": "simple", "scripts": script(text)})));
    assert_eq!(done_failed(&account), (0, 20), "not in the simple protocol");
    assert_eq!(account["errors"][0]["sqlstate"], "script");
}

fn an_error_in_a_pipeline_fails_its_transaction(io: &str) {
    let server = Server::faulty(vec![Fault::ErrorEvery {
        n: 10,
        sqlstate: *b"22P02",
        message: "bad input".to_owned(),
    }]);
    let text = "\\startpipeline\nSELECT 1;\nSELECT 2;\nSELECT 3;\n\\endpipeline\n";
    for mode in ["extended", "prepared"] {
        let more = json!({"mode": mode, "scripts": script(text), "transactions_per_client": 40});
        let account = run(&server.spec(io, more));
        let (done, failed) = done_failed(&account);
        assert_eq!(done + failed, 80);
        assert_eq!(errors(&account), [("22P02".to_owned(), failed)].into());
        let by_statement: u64 = account["statements"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| number(&s["failed"]))
            .sum();
        assert_eq!(by_statement, failed);
        assert!(failed >= 20, "{account}");
    }
}

fn results_become_variables(io: &str) {
    let reply = Reply::rows(&["a", "b"], &[&[Some("41"), None]]);
    for mode in ["simple", "extended", "prepared"] {
        let server = Server::new(Behaviour {
            reply: reply.clone(),
            ..Behaviour::default()
        });
        let text = "SELECT a, b \\gset p_\n\\set x :p_a + 1\n\\if :x = 42\nSELECT :x;\n\\else\n\
                    SELECT 'wrong' \\gset none_\n\\set y 1 / 0\n\\endif\nSELECT a, b \\aset q_\n\\set z :q_a + 1\n";
        let account = run(&server.spec(io, json!({"mode": mode, "scripts": script(text)})));
        assert_eq!(done_failed(&account), (20, 0), "{mode}: {account}");
        assert_eq!(account["statements"][1]["service"]["count"], 20);
        assert_eq!(account["statements"][2]["service"]["count"], 0);
    }
}

fn gset_wants_exactly_one_row(io: &str) {
    let rows: [&[&[Option<&str>]]; 2] = [&[], &[&[Some("1")], &[Some("2")]]];
    for rows in rows {
        let reply = Reply::rows(&["a"], rows);
        let server = Server::new(Behaviour {
            reply,
            ..Behaviour::default()
        });
        let account = run(&server.spec(
            io,
            json!({"scripts": script("SELECT a \\gset\nSELECT :a;\n")}),
        ));
        assert_eq!(done_failed(&account), (0, 20));
        let words = account["errors"][0]["message"].as_str().unwrap();
        assert_eq!(
            words,
            format!("\\gset: expected one row, got {}", rows.len())
        );
    }
}

fn branches_sleeps_and_shells(io: &str) {
    let server = Scripted::new(|_, _| Answer::Row("1"));
    let text =
        "\\setshell x echo 7\n\\shell true\n\\sleep 20 ms\n\\if :x = 7\nSELECT :x;\n\\endif\n";
    let account = run(&server.spec(
        io,
        json!({"scripts": script(text), "transactions_per_client": 3}),
    ));
    assert_eq!(done_failed(&account), (6, 0), "{account}");
    assert_eq!(server.queries(), vec!["SELECT 7;"; 6]);
    assert!(account["service"]["min_ns"].as_u64().unwrap() >= 20_000_000);
    assert!(
        account["statements"][0]["service"]["min_ns"]
            .as_u64()
            .unwrap()
            < 20_000_000
    );
    let failing =
        json!({"scripts": script("\\shell false\nSELECT 1;\n"), "transactions_per_client": 3});
    let account = run(&server.spec(io, failing));
    assert_eq!(done_failed(&account), (0, 6));
    assert_eq!(errors(&account), [("script".to_owned(), 6)].into());
}

fn several_statements_in_one_query(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"scripts": script("SELECT 1 \\; SELECT 2 \\; SELECT 3;\n")});
    let account = run(&server.spec(io, more));
    assert_eq!(done_failed(&account), (20, 0));
    assert_eq!(account["statements"].as_array().unwrap().len(), 1);
    assert_eq!(account["statements"][0]["service"]["count"], 20);
    // An error in the middle of it leaves nothing behind.
    let server = Scripted::new(|number, _| {
        let first = row("1");
        let failed = [&first[..first.len() - 6], &error("ERROR", "22012", "no")].concat();
        match number {
            1 => Answer::Bytes([failed, ready(b'I')].concat()),
            _ => Answer::Row("1"),
        }
    });
    let more = json!({"clients": 1, "scripts": script("SELECT 1 \\; SELECT 2;\n")});
    assert_eq!(done_failed(&run(&server.spec(io, more))), (9, 1));
}

fn weights_choose_scripts(io: &str) {
    let server = Server::new(Behaviour::default());
    let more = json!({"transactions_per_client": 2000, "scripts": [
        {"name": "often", "text": "SELECT 1;", "weight": 9},
        {"name": "never", "text": "SELECT 2;", "weight": 0},
        {"name": "seldom", "text": "SELECT 3;", "weight": 1}]});
    let account = run(&server.spec(io, more));
    let done: Vec<u64> = (0..3)
        .map(|i| number(&account["scripts"][i]["counts"]["done"]))
        .collect();
    assert_eq!(done.iter().sum::<u64>(), 4000);
    assert_eq!(done[1], 0);
    // 400 expected, standard deviation 19.
    assert!((300..=500).contains(&done[2]), "{done:?}");
}

fn large_statements_arrive_whole(io: &str) {
    let server = Server::new(Behaviour::default());
    // Beyond every socket buffer: sends are taken in parts.
    let text = format!(
        "INSERT INTO t VALUES ('{}');\nSELECT 1;\n",
        "x".repeat(3_000_000)
    );
    let account = run(&server.spec(
        io,
        json!({"scripts": script(&text), "transactions_per_client": 5}),
    ));
    assert_eq!(done_failed(&account), (10, 0));
    assert!(number(&account["bytes_sent"]) > 30_000_000);
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a test takes is no figure of a run"
)]
fn now() -> Instant {
    Instant::now()
}
