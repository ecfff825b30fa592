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

local BETWEEN = " FROM sbtest%u WHERE id BETWEEN ? AND ?"

-- Every client has what is made here, so that it is kept small: few tables, few functions with variables around.

-- Types of the parameters (i: whole number, c and p: text as long as column c, or pad), then the text.
local statements = {
  point_selects = "i:SELECT c FROM sbtest%u WHERE id=?",
  simple_ranges = "ii:SELECT c" .. BETWEEN,
  sum_ranges = "ii:SELECT SUM(k)" .. BETWEEN,
  order_ranges = "ii:SELECT c" .. BETWEEN .. " ORDER BY c",
  distinct_ranges = "ii:SELECT DISTINCT c" .. BETWEEN .. " ORDER BY c",
  index_updates = "i:UPDATE sbtest%u SET k=k+1 WHERE id=?",
  non_index_updates = "ci:UPDATE sbtest%u SET c=? WHERE id=?",
  deletes = "i:DELETE FROM sbtest%u WHERE id=?",
  inserts = "iicp:INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)",
}

local function parameter(prepared, kind)
  if kind == "i" then
    return prepared:bind_create(sysbench.sql.type.INT)
  end
  return prepared:bind_create(sysbench.sql.type.CHAR, kind == "c" and 120 or 60)
end

-- Prepares one statement for every table: stmt[table][key], with its parameters in param[table][key].
function prepare_for_each_table(key)
  local kinds, text = statements[key]:match("(%a+):(.*)")
  for number = 1, sysbench.opt.tables do
    local prepared = con:prepare(string.format(text, number))
    local parameters = {}
    for place = 1, #kinds do
      parameters[place] = parameter(prepared, kinds:sub(place, place))
    end
    prepared:bind_param(unpack(parameters))
    stmt[number][key], param[number][key] = prepared, parameters
  end
end

function prepare_point_selects()
  prepare_for_each_table("point_selects")
end

function prepare_simple_ranges()
  prepare_for_each_table("simple_ranges")
end

function prepare_sum_ranges()
  prepare_for_each_table("sum_ranges")
end

function prepare_order_ranges()
  prepare_for_each_table("order_ranges")
end

function prepare_distinct_ranges()
  prepare_for_each_table("distinct_ranges")
end

function prepare_index_updates()
  prepare_for_each_table("index_updates")
end

function prepare_non_index_updates()
  prepare_for_each_table("non_index_updates")
end

function prepare_delete_inserts()
  prepare_for_each_table("deletes")
  prepare_for_each_table("inserts")
end

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

-- Runs a statement so many times on one table; `bind` sets its parameters.
local function execute(key, bind)
  local number = any_table()
  local prepared, parameters = stmt[number][key], param[number][key]
  for _ = 1, sysbench.opt[key] do
    bind(parameters)
    prepared:execute()
  end
end

function execute_point_selects()
  execute("point_selects", bind_id)
end

function execute_simple_ranges()
  execute("simple_ranges", bind_range)
end

function execute_sum_ranges()
  execute("sum_ranges", bind_range)
end

function execute_order_ranges()
  execute("order_ranges", bind_range)
end

function execute_distinct_ranges()
  execute("distinct_ranges", bind_range)
end

function execute_index_updates()
  execute("index_updates", bind_id)
end

function execute_non_index_updates()
  execute("non_index_updates", bind_c)
end

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

function prepare_transaction()
  if not sysbench.opt.skip_trx then
    prepare_begin()
    prepare_commit()
  end
end

function prepare_all_ranges()
  if sysbench.opt.range_selects then
    prepare_simple_ranges()
    prepare_sum_ranges()
    prepare_order_ranges()
    prepare_distinct_ranges()
  end
end

function prepare_all_writes()
  prepare_index_updates()
  prepare_non_index_updates()
  prepare_delete_inserts()
end

function execute_all_ranges()
  if sysbench.opt.range_selects then
    execute_simple_ranges()
    execute_sum_ranges()
    execute_order_ranges()
    execute_distinct_ranges()
  end
end

function execute_all_writes()
  execute_index_updates()
  execute_non_index_updates()
  execute_delete_inserts()
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
local function is_lost(number)
  return number == 2006 or number == 2011 or number == 2013 or number == 2055
end

function sysbench.hooks.before_restart_event(trouble)
  if is_lost(trouble.sql_errno) then
    close_statements()
    prepare_statements()
  end
end
