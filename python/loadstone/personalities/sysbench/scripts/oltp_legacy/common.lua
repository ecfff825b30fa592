-- What the workloads of the 0.5 interface share: options, tables, and the statements they build texts of.
--
-- Options, tables, statements and the order of random draws are those of the old oltp.lua and its siblings.

local group = string.rep("#", 11)
local c_format = group .. string.rep("-" .. group, 9)
local pad_format = group .. string.rep("-" .. group, 4)

function any_c()
  return sb_rand_str(c_format)
end

function any_pad()
  return sb_rand_str(pad_format)
end

function any_id()
  return sb_rand(1, oltp_table_size)
end

function any_table()
  return "sbtest" .. sb_rand_uniform(1, oltp_tables_count)
end

-- Options --------------------------------------------------------------------------------------------

local numbers = {
  delete_inserts = 1,
  distinct_ranges = 1,
  index_updates = 1,
  limit_ranges = 0, -- of an older oltp.lua, in the SQL of MySQL
  non_index_updates = 1,
  order_ranges = 1,
  point_selects = 10,
  range_size = 100,
  simple_ranges = 1,
  sum_ranges = 1,
  table_size = 10000,
  tables_count = 1,
}
-- Flags that hold unless they are `off`, and flags that hold only where they are `on`.
local usual = {"auto_inc", "create_secondary", "range_selects"}
local unusual = {"read_only", "skip_trx", "write_only"}

function set_vars()
  for name, default in pairs(numbers) do
    _G["oltp_" .. name] = tonumber(_G["oltp_" .. name]) or default
  end
  for _, name in ipairs(usual) do
    local value = _G["oltp_" .. name]
    _G["oltp_" .. name] = value ~= "off" and value ~= false
  end
  for _, name in ipairs(unusual) do
    local value = _G["oltp_" .. name]
    _G["oltp_" .. name] = value == "on" or value == true
  end
  if oltp_read_only and oltp_write_only then
    error("--oltp-read-only and --oltp-write-only exclude each other")
  end
  if pgsql_variant == "redshift" then
    oltp_create_secondary = false
    oltp_delete_inserts = 0
  end
end

-- Tables ---------------------------------------------------------------------------------------------

local function columns(id, k)
  local key = oltp_secondary and "KEY xid" or "PRIMARY KEY"
  return string.format(
    "id %s, k %s DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, %s (id)",
    id, k, key)
end

local dialects = {
  mysql = function()
    local id = "INTEGER UNSIGNED NOT NULL " .. (oltp_auto_inc and "AUTO_INCREMENT" or "")
    local engine = string.format("/*! ENGINE = %s MAX_ROWS = %s */", mysql_table_engine, myisam_max_rows)
    return columns(id, "INTEGER UNSIGNED"), engine .. " " .. (mysql_table_options or "")
  end,
  pgsql = function()
    local id = pgsql_variant == "redshift" and "INTEGER IDENTITY(1,1)" or "SERIAL"
    return columns(id .. " NOT NULL", "INTEGER"), ""
  end,
}

local function fill(name)
  db_bulk_insert_init("INSERT INTO " .. name .. (oltp_auto_inc and "(k, c, pad) VALUES" or "(id, k, c, pad) VALUES"))
  for row = 1, oltp_table_size do
    local c, pad = any_c(), any_pad()
    if oltp_auto_inc then
      db_bulk_insert_next(string.format("(%s, '%s', '%s')", any_id(), c, pad))
    else
      db_bulk_insert_next(string.format("(%s,%s,'%s', '%s'  )", row, any_id(), c, pad))
    end
  end
  db_bulk_insert_done()
end

function create_insert(number)
  local name = "sbtest" .. number
  local dialect = dialects[db_driver] or error("no tables are known for the driver " .. db_driver)
  print("Creating table '" .. name .. "'...")
  local definition, ending = dialect()
  db_query(string.format("CREATE TABLE %s ( %s ) %s", name, definition, ending))
  print("Inserting " .. oltp_table_size .. " records into '" .. name .. "'")
  fill(name)
  if oltp_create_secondary then
    print("Creating secondary indexes on '" .. name .. "'...")
    db_query("CREATE INDEX k_" .. number .. " on " .. name .. "(k)")
  end
end

function prepare()
  set_vars()
  db_connect()
  for number = 1, oltp_tables_count do
    create_insert(number)
  end
  return 0
end

function cleanup()
  set_vars()
  for number = 1, oltp_tables_count do
    print("Dropping table 'sbtest" .. number .. "'...")
    db_query("DROP TABLE IF EXISTS sbtest" .. number)
  end
end

function thread_init()
  set_vars()
end

-- Statements -----------------------------------------------------------------------------------------

function update_k(name)
  db_query("UPDATE " .. name .. " SET k=k+1 WHERE id=" .. any_id())
end

function update_c(name)
  local c = any_c()
  db_query("UPDATE " .. name .. " SET c='" .. c .. "' WHERE id=" .. any_id())
end

-- Prepares a statement with so many parameters; returns what draws them, each from the client's own part
-- of the table, and runs it. The parameters are those at `step`, each followed by itself plus `delta`.
function prepare_random(text, count, step, delta)
  local statement, parameters = db_prepare(text), {}
  for place = 1, count do
    parameters[place] = 1
  end
  db_bind_param(statement, parameters)
  return function()
    local part = oltp_table_size / num_threads
    for place = 1, count, step do
      parameters[place] = sb_rand(part * thread_id, part * (thread_id + 1))
      if step > 1 then
        parameters[place + 1] = parameters[place] + delta
      end
    end
    local answer = db_execute(statement)
    db_store_results(answer)
    db_free_results(answer)
  end
end
