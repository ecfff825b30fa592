-- What the oltp_* workloads share: options, tables, statements, commands.
--
-- A workload loads this file, says in prepare_statements() which statements it needs, and runs them in
-- event(). Names, options, tables, statements and the order of random draws are those of sysbench 1.0.20,
-- so that its tables, its command lines and scripts written for it can be used.

if sysbench.cmdline.command == nil then
  error("a command is needed: prepare, prewarm, run, cleanup or help")
end

function init()
  assert(event, "oltp_common is a part of other scripts; name one of them, such as oltp_read_write")
end

sysbench.cmdline.options = {
  auto_inc = {"let the database number the rows; off: numbers come from here", true},
  create_secondary = {"make an index on column k", true},
  delete_inserts = {"pairs of a DELETE and an INSERT of the same row, in each transaction", 1},
  distinct_ranges = {"SELECT DISTINCT over a range of rows, in each transaction", 1},
  index_updates = {"updates of the indexed column k, in each transaction", 1},
  mysql_storage_engine = {"storage engine of MySQL's tables", "innodb"},
  non_index_updates = {"updates of column c, which has no index, in each transaction", 1},
  order_ranges = {"SELECT with ORDER BY over a range of rows, in each transaction", 1},
  pgsql_variant = {"a relative of PostgreSQL: redshift, which has neither indexes nor generated keys"},
  point_selects = {"SELECT of one row by its key, in each transaction", 10},
  range_selects = {"off: leave out everything that reads ranges of rows", true},
  range_size = {"rows of a range", 100},
  secondary = {"make the key a plain index, not a primary key", false},
  simple_ranges = {"SELECT over a range of rows, in each transaction", 1},
  skip_trx = {"leave out BEGIN and COMMIT", false},
  sum_ranges = {"SELECT of a sum over a range of rows, in each transaction", 1},
  table_size = {"rows of each table", 10000},
  tables = {"number of tables", 1},
}

local group = string.rep("#", 11)
local c_format = group .. string.rep("-" .. group, 9)
local pad_format = group .. string.rep("-" .. group, 4)

function get_c_value()
  return sysbench.rand.string(c_format)
end

function get_pad_value()
  return sysbench.rand.string(pad_format)
end

-- Tables ---------------------------------------------------------------------------------------------

local function is_redshift()
  return sysbench.opt.pgsql_variant == "redshift"
end

-- Type of the key, and what follows the columns, by driver.
local dialects = {
  mysql = function()
    local id = sysbench.opt.auto_inc and "INTEGER NOT NULL AUTO_INCREMENT" or "INTEGER NOT NULL"
    return id, "/*! ENGINE = " .. sysbench.opt.mysql_storage_engine .. " */ " .. (mysql_table_options or "")
  end,
  pgsql = function()
    local generated = is_redshift() and "INTEGER IDENTITY(1,1)" or "SERIAL"
    return sysbench.opt.auto_inc and generated or "INTEGER NOT NULL", ""
  end,
}

local function definition(drv, number)
  local dialect = dialects[drv:name()] or error("no tables are known for the driver " .. drv:name())
  local id, ending = dialect()
  local key = sysbench.opt.secondary and "KEY xid" or "PRIMARY KEY"
  return string.format(
    "CREATE TABLE sbtest%d( id %s, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, " ..
    "pad CHAR(60) DEFAULT '' NOT NULL, %s (id) ) %s", number, id, key, ending)
end

local function fill(con, number)
  local numbered = not sysbench.opt.auto_inc
  local size = sysbench.opt.table_size
  con:bulk_insert_init(
    "INSERT INTO sbtest" .. number .. (numbered and "(id, k, c, pad) VALUES" or "(k, c, pad) VALUES"))
  for row = 1, size do
    local c, pad = get_c_value(), get_pad_value()
    local values = string.format("%d, '%s', '%s')", sysbench.rand.default(1, size), c, pad)
    con:bulk_insert_next((numbered and "(" .. row .. ", " or "(") .. values)
  end
  con:bulk_insert_done()
end

function create_table(drv, con, number)
  print(string.format("Creating table 'sbtest%d'...", number))
  con:query(definition(drv, number))
  if sysbench.opt.table_size > 0 then
    print(string.format("Inserting %d records into 'sbtest%d'", sysbench.opt.table_size, number))
  end
  fill(con, number)
  if sysbench.opt.create_secondary and not is_redshift() then
    print(string.format("Creating a secondary index on 'sbtest%d'...", number))
    con:query(string.format("CREATE INDEX k_%d ON sbtest%d(k)", number, number))
  end
end

-- Commands -------------------------------------------------------------------------------------------

-- Calls a function for each table that is this thread's.
local function for_own_tables(work)
  for number = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
    work(number)
  end
end

function cmd_prepare()
  local drv = sysbench.sql.driver()
  local con = drv:connect()
  for_own_tables(function(number) create_table(drv, con, number) end)
end

function cmd_prewarm()
  local drv = sysbench.sql.driver()
  local con = drv:connect()
  assert(drv:name() == "mysql", "prewarm is for MySQL only")
  con:query("SET tmp_table_size=2*1024*1024*1024")
  con:query("SET max_heap_table_size=2*1024*1024*1024")
  for_own_tables(function(number)
    local name, size = "sbtest" .. number, sysbench.opt.table_size
    print("Prewarming table " .. name)
    con:query("ANALYZE TABLE " .. name)
    con:query(string.format(
      "SELECT AVG(id) FROM (SELECT * FROM %s FORCE KEY (PRIMARY) LIMIT %u) t", name, size))
    con:query(string.format(
      "SELECT COUNT(*) FROM (SELECT * FROM %s WHERE k LIKE '%%0%%' LIMIT %u) t", name, size))
  end)
end

function cleanup()
  local con = sysbench.sql.driver():connect()
  for number = 1, sysbench.opt.tables do
    print(string.format("Dropping table 'sbtest%d'...", number))
    con:query("DROP TABLE IF EXISTS sbtest" .. number)
  end
end

sysbench.cmdline.commands = {
  prepare = {cmd_prepare, sysbench.cmdline.PARALLEL_COMMAND},
  prewarm = {cmd_prewarm, sysbench.cmdline.PARALLEL_COMMAND},
}

-- Statements -----------------------------------------------------------------------------------------

local INT = {sysbench.sql.type.INT}
local C = {sysbench.sql.type.CHAR, 120}
local PAD = {sysbench.sql.type.CHAR, 60}
local BETWEEN = " FROM sbtest%u WHERE id BETWEEN ? AND ?"

-- Text, then types of the parameters.
local statements = {
  point_selects = {"SELECT c FROM sbtest%u WHERE id=?", INT},
  simple_ranges = {"SELECT c" .. BETWEEN, INT, INT},
  sum_ranges = {"SELECT SUM(k)" .. BETWEEN, INT, INT},
  order_ranges = {"SELECT c" .. BETWEEN .. " ORDER BY c", INT, INT},
  distinct_ranges = {"SELECT DISTINCT c" .. BETWEEN .. " ORDER BY c", INT, INT},
  index_updates = {"UPDATE sbtest%u SET k=k+1 WHERE id=?", INT},
  non_index_updates = {"UPDATE sbtest%u SET c=? WHERE id=?", C, INT},
  deletes = {"DELETE FROM sbtest%u WHERE id=?", INT},
  inserts = {"INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", INT, INT, C, PAD},
}

-- Prepares one statement for every table: stmt[table][key], with its parameters in param[table][key].
function prepare_for_each_table(key)
  local text = statements[key][1]
  for number = 1, sysbench.opt.tables do
    local prepared = con:prepare(string.format(text, number))
    local parameters = {}
    for place = 2, #statements[key] do
      parameters[place - 1] = prepared:bind_create(unpack(statements[key][place]))
    end
    prepared:bind_param(unpack(parameters))
    stmt[number][key], param[number][key] = prepared, parameters
  end
end

local function preparing(...)
  local keys = {...}
  return function()
    for _, key in ipairs(keys) do
      prepare_for_each_table(key)
    end
  end
end

prepare_point_selects = preparing("point_selects")
prepare_simple_ranges = preparing("simple_ranges")
prepare_sum_ranges = preparing("sum_ranges")
prepare_order_ranges = preparing("order_ranges")
prepare_distinct_ranges = preparing("distinct_ranges")
prepare_index_updates = preparing("index_updates")
prepare_non_index_updates = preparing("non_index_updates")
prepare_delete_inserts = preparing("deletes", "inserts")

function prepare_begin()
  stmt.begin = con:prepare("BEGIN")
end

function prepare_commit()
  stmt.commit = con:prepare("COMMIT")
end

function begin()
  stmt.begin:execute()
end

function commit()
  stmt.commit:execute()
end

function thread_init()
  drv = sysbench.sql.driver()
  con = drv:connect()
  stmt, param = {}, {}
  for number = 1, sysbench.opt.tables do
    stmt[number], param[number] = {}, {}
  end
  prepare_statements()
end

function close_statements()
  for number = 1, sysbench.opt.tables do
    for _, prepared in pairs(stmt[number]) do
      prepared:close()
    end
  end
  for _, key in ipairs({"begin", "commit"}) do
    if stmt[key] then
      stmt[key]:close()
    end
  end
end

function thread_done()
  close_statements()
  con:disconnect()
end

-- What transactions are made of ----------------------------------------------------------------------

local function any_table()
  return sysbench.rand.uniform(1, sysbench.opt.tables)
end

local function any_id()
  return sysbench.rand.default(1, sysbench.opt.table_size)
end

-- Returns what runs a statement so many times on one table; `bind` sets its parameters.
local function executing(key, bind)
  return function()
    local number = any_table()
    local prepared, parameters = stmt[number][key], param[number][key]
    for _ = 1, sysbench.opt[key] do
      bind(parameters)
      prepared:execute()
    end
  end
end

local function bind_id(parameters)
  parameters[1]:set(any_id())
end

local function bind_range(parameters)
  local first = any_id()
  parameters[1]:set(first)
  parameters[2]:set(first + sysbench.opt.range_size - 1)
end

local function bind_c(parameters)
  parameters[1]:set_rand_str(c_format)
  parameters[2]:set(any_id())
end

execute_point_selects = executing("point_selects", bind_id)
execute_simple_ranges = executing("simple_ranges", bind_range)
execute_sum_ranges = executing("sum_ranges", bind_range)
execute_order_ranges = executing("order_ranges", bind_range)
execute_distinct_ranges = executing("distinct_ranges", bind_range)
execute_index_updates = executing("index_updates", bind_id)
execute_non_index_updates = executing("non_index_updates", bind_c)

function execute_delete_inserts()
  local number = any_table()
  if is_redshift() then
    return
  end
  local deletes, inserts = param[number].deletes, param[number].inserts
  for _ = 1, sysbench.opt.delete_inserts do
    local id, k = any_id(), any_id()
    deletes[1]:set(id)
    inserts[1]:set(id)
    inserts[2]:set(k)
    inserts[3]:set_rand_str(c_format)
    inserts[4]:set_rand_str(pad_format)
    stmt[number].deletes:execute()
    stmt[number].inserts:execute()
  end
end

-- Reads, writes and transactions, as the workloads combine them ---------------------------------------

local function call_all(functions)
  for _, name in ipairs(functions) do
    _G[name]()
  end
end

local parts = {
  ranges = {"simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"},
  writes = {"index_updates", "non_index_updates", "delete_inserts"},
}

local function with_prefix(prefix, names)
  local full = {}
  for place, name in ipairs(names) do
    full[place] = prefix .. name
  end
  return full
end

local prepare_ranges, execute_ranges = with_prefix("prepare_", parts.ranges), with_prefix("execute_", parts.ranges)
local prepare_writes, execute_writes = with_prefix("prepare_", parts.writes), with_prefix("execute_", parts.writes)

function prepare_transaction()
  if not sysbench.opt.skip_trx then
    prepare_begin()
    prepare_commit()
  end
end

function prepare_all_ranges()
  if sysbench.opt.range_selects then
    call_all(prepare_ranges)
  end
end

function prepare_all_writes()
  call_all(prepare_writes)
end

function execute_all_ranges()
  if sysbench.opt.range_selects then
    call_all(execute_ranges)
  end
end

function execute_all_writes()
  call_all(execute_writes)
end

-- Calls functions between BEGIN and COMMIT.
function in_transaction(...)
  if not sysbench.opt.skip_trx then
    begin()
  end
  for place = 1, select("#", ...) do
    select(place, ...)()
  end
  if not sysbench.opt.skip_trx then
    commit()
  end
end

-- MySQL's errors of a lost connection: statements have to be prepared again on the new one.
local lost = {[2006] = true, [2011] = true, [2013] = true, [2055] = true}

function sysbench.hooks.before_restart_event(trouble)
  if lost[trouble.sql_errno] then
    close_statements()
    prepare_statements()
  end
end
