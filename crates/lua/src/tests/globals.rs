//! Globals of clients: each has its own, filled as they are used.

use serde_json::json;

use super::play_clients;

#[test]
fn globals_that_are_filled_as_they_are_used_are_whole_to_whoever_looks() {
    let source = "local function has(t, name) for key in pairs(t) do if key == name then return true end end return false end
        own = 1
        function event()
            print(rawget(_G, 'print') == print, has(_G, 'tostring'), has(_G, 'own'), has(_G, 'require'), getmetatable(_G))
            print(has(sysbench.opt, 'tables'), next(sysbench.opt) ~= nil, has(sysbench, 'rand'), _G._G == _G)
            sysbench.opt.names[1] = 'changed'
            setmetatable(_G, { __index = function(_, name) return name .. '?' end })
            print(missing, type(string.format), own, sysbench.opt.names[1])
            return true
        end";
    let options = json!({"options": {"tables": 4, "names": ["a", "b"]}});
    for client in play_clients(source, &options, 2) {
        assert_eq!(client.fault, None);
        assert_eq!(
            client.printed,
            "true\ttrue\ttrue\ttrue\tnil\ntrue\ttrue\ttrue\ttrue\nmissing?\tfunction\t1\tchanged\n"
        );
    }
}

#[test]
fn values_of_options_are_globals_of_old_scripts_only() {
    let options = json!({"options": {"debug": false, "table_size": 7, "print": "no", "test": "t"}, "events": 1});
    let look =
        "function event() print(type(debug), table_size, own, test, rawget(_G, 'table_size')) end";
    let old = &play_clients(&format!("own = 1 table_size = 3 {look}"), &options, 1)[0];
    assert_eq!(old.fault, None);
    assert_eq!(old.printed, "boolean\t7\t1\tt\t7\n");
    let newer = format!("sysbench.cmdline.options = {{}} own = 1 {look}");
    let newer = &play_clients(&newer, &options, 1)[0];
    assert_eq!(newer.printed, "table\tnil\t1\ttest.lua\tnil\n");
}

#[test]
fn what_a_script_declares_is_shared_by_clients_that_declare_the_same() {
    let source = "sysbench.cmdline.options = { size = {'rows', 10}, late = {'x', sysbench.tid > 1} }
        function event() print(tostring(sysbench.cmdline.options), sysbench.cmdline.options.size[2]) return true end";
    let printed: Vec<String> = play_clients(source, &json!({}), 3)
        .into_iter()
        .map(|client| client.printed)
        .collect();
    assert_eq!(printed[0], printed[1]);
    assert_ne!(printed[1], printed[2]);
}
