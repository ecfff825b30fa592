//! Scripts against a made-up database: what they ask for, in order, and what they print.

mod endless;
mod globals;

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::random::Stream;
use crate::{Answer, Client, Part, Request, Script, ScriptSpec, Told, describe};

/// One client's script, played to its end.
#[derive(Debug, Default)]
struct Played {
    asked: Vec<String>,
    printed: String,
    fault: Option<(String, String, String)>,
}

fn spec(source: &str, more: &Value) -> ScriptSpec {
    let mut document = json!({"script": "test.lua", "source": source, "seed": 42, "events": 2});
    for (key, value) in more.as_object().unwrap() {
        document[key] = value.clone();
    }
    serde_json::from_value(document).unwrap()
}

/// Run all clients one after the other; statements that contain `fail CODE` fail once with this SQLSTATE.
fn play_clients(source: &str, more: &Value, clients: usize) -> Vec<Played> {
    let printed = Arc::new(Mutex::new(String::new()));
    let paper = Arc::clone(&printed);
    let output = move |told, text: &str| {
        if told == Told::Printed {
            paper.lock().unwrap().push_str(text);
        }
    };
    let script = Script::new(spec(source, more), clients, Box::new(output)).unwrap();
    let streams = Stream::of_clients(42, clients);
    let mut all = Vec::new();
    for (number, stream) in streams.into_iter().enumerate() {
        let mut client = Client::new(&script, number, stream);
        let mut played = play(&script, &mut client);
        played.printed = std::mem::take(&mut *printed.lock().unwrap());
        all.push(played);
    }
    all
}

fn play(script: &Script, client: &mut Client) -> Played {
    let mut played = Played::default();
    let mut answer = Answer::Nothing;
    let mut failed = Vec::new();
    let mut is_over = false;
    loop {
        let request = client.resume(answer);
        answer = match request {
            Request::Next => {
                Answer::Flag(!is_over && (script.spec().command != "run" || script.take_event()))
            }
            Request::Query
            | Request::BulkInsert { .. }
            | Request::Execute(_)
            | Request::Rollback
            | Request::Prepare(_) => {
                let mut sql = String::from_utf8(client.sql().to_owned()).unwrap();
                if let Request::Execute(number) = request {
                    let values = client.parameters().values().map(|value| {
                        value.map_or("NULL".to_owned(), |v| {
                            String::from_utf8(v.to_owned()).unwrap()
                        })
                    });
                    sql = format!("{number}({})", values.collect::<Vec<_>>().join(", "));
                }
                played.asked.push(sql.clone());
                answered(script, client, &sql, &mut failed)
            }
            Request::Connect | Request::AwaitInit | Request::AwaitDone => Answer::Flag(true),
            Request::Leave | Request::Last => {
                is_over = true;
                Answer::Nothing
            }
            Request::Ended => return played,
            Request::Failed(fault) => {
                played.fault = Some((fault.function, fault.message, fault.traceback));
                return played;
            }
            _ => Answer::Nothing,
        };
    }
}

fn answered(
    script: &Script,
    client: &mut Client,
    sql: &str,
    failed: &mut Vec<String>,
) -> Answer<'static> {
    client.result.clear();
    if let Some((_, state)) = sql.split_once("fail ")
        && !failed.iter().any(|seen| seen == sql)
    {
        failed.push(sql.to_owned());
        let state: &'static str = state.to_owned().leak();
        let is_ignorable = script.is_ignorable(state, 0);
        return Answer::Error {
            is_ignorable,
            number: 7,
            state,
            message: "so it is",
            report: "",
            is_reconnected: state == "lost",
        };
    }
    if sql.starts_with("SELECT") {
        client.result.begin(3);
        for row in [b"1", b"2"] {
            client.result.row();
            client.result.value(Some(row));
            client.result.value(None);
            client.result.value(Some(b"x"));
        }
    }
    Answer::Done { affected: 1 }
}

fn played(source: &str) -> Played {
    play_clients(source, &json!({}), 1).remove(0)
}

const CONNECTED: &str =
    "function thread_init() drv = sysbench.sql.driver() con = drv:connect() end\n";

#[test]
fn events_come_between_the_begin_and_the_end_of_a_thread() {
    let played = played(
        "function init() print('init', sysbench.tid) end
         function thread_init(tid) print('begin', tid) end
         function event(tid) print('event', tid, sysbench.rand.default(1, 10000)) end
         function thread_done(tid) print('end', tid) end
         function done() print('done') io.write('a', 1, '\\n') end",
    );
    let expected = "init\t0\nbegin\t0\nevent\t0\t4987\nevent\t0\t9000\nend\t0\ndone\na1\n";
    assert_eq!(played.fault, None);
    let (head, tail) = expected.split_once("9000").unwrap();
    assert!(played.printed.starts_with(head), "{}", played.printed);
    assert!(played.printed.ends_with(tail), "{}", played.printed);
}

#[test]
fn results_are_read_row_by_row() {
    let source = format!(
        "{CONNECTED} function event()
            local rs = con:query('SELECT 1')
            print(rs.nrows, rs.nfields, unpack(rs:fetch_row(), 1, 3))
            print(unpack(rs:fetch_row(), 1, 3))
            print(rs:fetch_row())
            print(con:query_row('SELECT 2'))
            print(con:query('INSERT'))
            print(pcall(rs.fetch_row, rs))
            print(con:query('INSERT') == nil)
            return true
         end"
    );
    let played = played(&source);
    assert_eq!(played.fault, None);
    let printed = "2\t3\t1\tnil\tx\n2\tnil\tx\nnil\n1\tnil\tx\n<sql_result>\nfalse\t";
    assert!(played.printed.starts_with(printed), "{}", played.printed);
    assert!(
        played.printed.contains("this result is gone"),
        "{}",
        played.printed
    );
    assert_eq!(played.asked, ["SELECT 1", "SELECT 2", "INSERT", "INSERT"]);
}

#[test]
fn statements_are_prepared_once_and_bound_by_value() {
    let source = "function thread_init()
            con = sysbench.sql.driver():connect()
            stmt = con:prepare('UPDATE t SET a = ?, b = ?, c = ? WHERE d = ?')
            local t = sysbench.sql.type
            a, b, c, d = stmt:bind_create(t.INT), stmt:bind_create(t.VARCHAR, 3), stmt:bind_create(t.DOUBLE), stmt:bind_create(t.BIGINT)
            stmt:bind_param(a, b, c, d)
         end
         function event() a:set(7.9) b:set('abcdef') c:set(0.5) d:set(9007199254740993LL) stmt:execute() a:set(nil) b:set_rand_str('##') stmt:execute() end
         function thread_done() stmt:close() con:disconnect() end";
    let played = &play_clients(source, &json!({"events": 1}), 1)[0];
    assert_eq!(played.fault, None);
    assert_eq!(
        played.asked[..2],
        [
            "UPDATE t SET a = $1, b = $2, c = $3 WHERE d = $4",
            "1(7, abc, 0.5, 9007199254740993)"
        ]
    );
    assert!(
        played.asked[2].starts_with("1(NULL, ")
            && played.asked[2].len() == "1(NULL, 12, 0.5, 9007199254740993)".len(),
        "{:?}",
        played.asked
    );
    let disabled = &play_clients(source, &json!({"events": 1, "ps_mode": "disable"}), 1)[0];
    assert_eq!(
        disabled.asked[0],
        "UPDATE t SET a = 7, b = 'abc', c = 0.500000 WHERE d = 9007199254740993"
    );
}

#[test]
fn an_event_begins_again_after_an_error_that_may_be_ignored() {
    let source = format!(
        "{CONNECTED} sysbench.hooks.before_restart_event = function(e) print('again', e.sql_state) end
         function event() con:query('BEGIN') con:query('UPDATE fail 40P01') con:query('COMMIT') end"
    );
    let played = &play_clients(&source, &json!({"events": 1}), 1)[0];
    assert_eq!(played.fault, None);
    assert_eq!(
        played.asked,
        [
            "BEGIN",
            "UPDATE fail 40P01",
            "ROLLBACK",
            "BEGIN",
            "UPDATE fail 40P01",
            "COMMIT"
        ]
    );
    assert_eq!(played.printed, "again\t40P01\n");
}

#[test]
fn any_other_error_ends_the_client_with_its_place() {
    let source = format!("{CONNECTED} function event() con:query('UPDATE fail 42P01') end");
    let (function, message, traceback) = played(&source).fault.unwrap();
    assert_eq!(function, "thread_run");
    assert_eq!(
        message,
        "test.lua:2: SQL error, errno = 7, state = '42P01': so it is"
    );
    assert!(traceback.contains("test.lua:2: in function"), "{traceback}");
    let (function, message, _) = played("function event() local x = nil + 1 end")
        .fault
        .unwrap();
    assert_eq!(
        (function.as_str(), message.as_str()),
        (
            "thread_run",
            "test.lua:1: attempt to perform arithmetic on a nil value"
        )
    );
    let (_, message, _) = played("function event() require('no.such') end")
        .fault
        .unwrap();
    assert!(message.contains("module 'no.such' not found"), "{message}");
    let (_, message, _) = played("function nothing() end").fault.unwrap();
    assert!(
        message.contains("cannot find the event() function"),
        "{message}"
    );
    let (_, message, _) = played("x = = 1").fault.unwrap();
    assert!(
        message.contains("test.lua:1: unexpected symbol"),
        "{message}"
    );
}

#[test]
fn rows_of_an_insert_go_together_up_to_a_limit() {
    let source = format!(
        "{CONNECTED} function event()
            con:bulk_insert_init('INSERT INTO t VALUES')
            for i = 1, 3 do con:bulk_insert_next('(' .. i .. ')') end
            con:bulk_insert_next('(' .. ('9'):rep(524288 - 30) .. ')')
            con:bulk_insert_done()
         end"
    );
    let played = &play_clients(&source, &json!({"events": 1}), 1)[0];
    assert_eq!(played.fault, None);
    assert_eq!(played.asked[0], "INSERT INTO t VALUES(1),(2),(3)");
    assert_eq!(
        (played.asked.len(), played.asked[1].len()),
        (2, 524_288 - 30 + 22)
    );
}

#[test]
fn globals_belong_to_a_client_and_its_numbers_too() {
    let source = "function thread_init() mine = sysbench.tid end
        function event() mine = (mine or 0) + 10; string_of = string.format('%d', mine) print(mine, sysbench.rand.uniform(1, 1000000)) return mine > 20 end";
    let all = play_clients(source, &json!({"events": 0}), 3);
    let first: Vec<_> = all
        .iter()
        .map(|played| played.printed.split('\t').next().unwrap())
        .collect();
    assert_eq!(first, ["10", "11", "12"]);
    let alone = play_clients(source, &json!({"events": 0}), 1);
    assert_eq!(alone[0].printed, all[0].printed);
    assert_ne!(
        all[1].printed.split('\t').nth(1),
        all[0].printed.split('\t').nth(1)
    );
}

#[test]
fn the_old_interface_still_works() {
    let source = "function thread_init(thread_id) db_connect() stmt = db_prepare('SELECT ?') params = {1} db_bind_param(stmt, params) end
        function event() db_query('BEGIN') params[1] = 5 rs = db_execute(stmt) db_store_results(rs) db_free_results(rs)
            print(oltp_size, DB_ERROR_NONE, db_driver, type(sb_rnd()), #sb_rand_str('##@')) db_query('COMMIT') end";
    let played = &play_clients(
        source,
        &json!({"events": 1, "options": {"oltp-size": 10}}),
        1,
    )[0];
    assert_eq!(played.fault, None);
    assert_eq!(played.asked, ["SELECT $1", "BEGIN", "1(5)", "COMMIT"]);
    assert_eq!(played.printed, "10\t0\tpgsql\tnumber\t3\n");
}

#[test]
fn a_script_says_what_it_declares() {
    let source = "sysbench.cmdline.options = {size = {'Rows', 100}, on = {'Flag', true}, mode = {'Mode', 'a', sysbench.cmdline.ARG_STRING}, l = {'List', {'x', 'y'}}, n = {'None'}}
        sysbench.cmdline.commands = {prepare = {function() end, sysbench.cmdline.PARALLEL_COMMAND}, other = {function() end}}
        function event() end function cleanup() end print('loaded')";
    let described = describe(spec(source, &json!({}))).unwrap();
    assert_eq!(
        described,
        json!({
            "files": [],
            "options": [
                {"name": "l", "description": "List", "default": "x,y", "type": "list"},
                {"name": "mode", "description": "Mode", "default": "a", "type": "string"},
                {"name": "n", "description": "None", "type": "string"},
                {"name": "on", "description": "Flag", "default": "on", "type": "bool"},
                {"name": "size", "description": "Rows", "default": "100", "type": "double"},
            ],
            "commands": {"prepare": {"parallel": true}, "other": {"parallel": false}, "cleanup": {"parallel": false}},
            "has": ["event", "cleanup"],
            "legacy": false,
            "needs_database": false,
            "output": "loaded\n",
        })
    );
    let described = describe(spec(
        "local given = sysbench.cmdline print(given.argv[0], given.argv[1], #given.argv, given.command)",
        &json!({"argv": ["sysbench", "--threads=2"], "command": ""}),
    ));
    assert_eq!(
        described.unwrap()["output"],
        "sysbench\t--threads=2\t1\tnil\n"
    );
    let fault = describe(spec("print(7)\nerror('no')", &json!({}))).unwrap_err();
    assert_eq!(fault.output, "7\n");
    assert_eq!(
        (fault.message.as_str(), fault.file.as_str(), fault.line),
        ("no", "test.lua", 2)
    );
    let empty = describe(spec("", &json!({}))).unwrap();
    assert_eq!(
        (&empty["options"], &empty["has"], &empty["legacy"]),
        (&json!([]), &json!([]), &json!(true))
    );
    let asks = "db_connect() db_query('SELECT 1') error('not reached')";
    let described = describe(spec(asks, &json!({}))).unwrap();
    assert_eq!(described["needs_database"], json!(true));
}

#[test]
fn commands_run_once_and_coroutines_of_a_script_may_query() {
    let source = "function prepare()
            local con = sysbench.sql.driver():connect()
            local make = coroutine.wrap(function() for i = 1, 2 do con:query('CREATE ' .. i) coroutine.yield(i) end end)
            print(make(), make())
            print(pcall(con.query, con, 'DROP fail 42P01'))
            local co = coroutine.create(function() error('inner') end)
            print(coroutine.resume(co))
        end";
    let played = &play_clients(source, &json!({"command": "prepare"}), 1)[0];
    assert_eq!(played.fault, None);
    assert_eq!(played.asked, ["CREATE 1", "CREATE 2", "DROP fail 42P01"]);
    assert!(
        played.printed.starts_with("1\t2\nfalse\t"),
        "{}",
        played.printed
    );
    assert!(
        played.printed.contains("false\ttest.lua:6: inner"),
        "{}",
        played.printed
    );
    let missing = play_clients("", &json!({"command": "prepare"}), 1).remove(0);
    assert_eq!(
        missing.fault.unwrap().1,
        "the script has no command 'prepare'"
    );
}

#[test]
fn parameters_must_be_as_many_as_the_statement_has() {
    let source = format!(
        "{CONNECTED} function event()
            local s = con:prepare('SELECT ?, ?')
            print(pcall(s.execute, s))
            local a = s:bind_create(sysbench.sql.type.INT)
            s:bind_param(a)
            print(pcall(s.execute, s))
            s:bind_param(a, a)
            print(s:execute() == nil)
            return true
        end"
    );
    let played = played(&source);
    assert_eq!(played.fault, None);
    for wanted in [
        "2 parameters, and 0 are bound",
        "2 parameters, and 1 are bound",
        "\ntrue\n",
    ] {
        assert!(played.printed.contains(wanted), "{}", played.printed);
    }
}

#[test]
fn texts_stand_in_for_files_and_what_was_read_is_told() {
    let script = "local part = require('part')\n\
                  function event() print(part.word, assert(loadfile('/far/more.lua'))()) end";
    let more = json!({
        "script": "/far/test.lua", "source": null, "path": ["/mods"], "events": 1, "files": {
            "/far/test.lua": script,
            "/mods/part.lua": "return { word = 'sent' }",
            "/far/more.lua": "return 7",
        },
    });
    let told = describe(spec("", &more)).unwrap();
    assert_eq!(told["files"], json!(["/far/test.lua", "/mods/part.lua"]));
    let played = play_clients("", &more, 1).remove(0);
    assert_eq!(played.fault, None);
    assert_eq!(played.printed, "sent\t7\n");
    let alone =
        json!({"script": "/far/test.lua", "source": null, "files": {"/far/test.lua": script}});
    let missing = play_clients("", &alone, 1).remove(0).fault.unwrap();
    assert!(missing.1.contains("module 'part' not found"), "{missing:?}");
}

#[test]
fn of_several_hosts_only_the_first_begins_and_ends_the_run() {
    let part = |host| Part {
        host,
        hosts: 2,
        clients: 1,
        events: Some(2),
    };
    let source = "function init() print('init') end function done() print('done') end \
                  function event(tid) print(tid) end";
    let made = |host| {
        let printed = Arc::new(Mutex::new(String::new()));
        let paper = Arc::clone(&printed);
        let output = move |_, text: &str| paper.lock().unwrap().push_str(text);
        let more = json!({"done": true});
        let script = Script::part_of(spec(source, &more), part(host), Box::new(output));
        (script.unwrap(), printed)
    };
    let streams = Stream::of_clients(42, 2);
    let (second, printed) = made(1);
    play(&second, &mut Client::new(&second, 1, streams[1]));
    assert_eq!(*printed.lock().unwrap(), "1\n1\n");
    let (first, printed) = made(0);
    assert!(!first.others_ended());
    first.hosts_ended();
    play(&first, &mut Client::new(&first, 0, streams[0]));
    assert_eq!(*printed.lock().unwrap(), "init\n0\n0\ndone\n");
}
