-- Rows inserted many at a time, each client into a table of its own. An event is one row.

local inserted = 0

local function connect()
  return sysbench.sql.driver():connect()
end

local function for_tables(say, template)
  local own = connect()
  for number = 1, sysbench.opt.threads do
    print(string.format("%s table 'sbtest%d'...", say, number))
    own:query(string.format(template, number))
  end
end

function prepare()
  for_tables("Creating",
    "CREATE TABLE IF NOT EXISTS sbtest%d ( id INTEGER NOT NULL, k INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (id))")
end

function cleanup()
  for_tables("Dropping", "DROP TABLE IF EXISTS sbtest%d")
end

function thread_init()
  con = connect()
end

function event()
  if inserted == 0 then
    con:bulk_insert_init("INSERT INTO sbtest" .. sysbench.tid + 1 .. " VALUES")
  end
  inserted = inserted + 1
  con:bulk_insert_next("(" .. inserted .. "," .. inserted .. ")")
end

function thread_done()
  con:bulk_insert_done()
  con:disconnect()
end
