-- Rows inserted many at a time, each client into a table of its own, with the old interface.
local inserted = 0

local templates = {
  pgsql = "CREATE TABLE IF NOT EXISTS sbtest%d ( id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))",
  mysql = "CREATE TABLE IF NOT EXISTS sbtest%d ( id INTEGER UNSIGNED NOT NULL, " ..
    "k INTEGER UNSIGNED DEFAULT '0' NOT NULL, PRIMARY KEY (id)) ENGINE = InnoDB",
}

function prepare()
  db_connect()
  for number = 0, num_threads - 1 do
    db_query(string.format(templates[db_driver], number))
  end
end

function event()
  if inserted == 0 then
    db_bulk_insert_init("INSERT INTO sbtest" .. thread_id .. " VALUES")
  end
  inserted = inserted + 1
  db_bulk_insert_next("(" .. inserted .. "," .. inserted .. ")")
end

function thread_done()
  db_bulk_insert_done()
end

function cleanup()
  for number = 0, num_threads - 1 do
    print("Dropping table 'sbtest" .. number .. "'...")
    db_query("DROP TABLE IF EXISTS sbtest" .. number)
  end
end
