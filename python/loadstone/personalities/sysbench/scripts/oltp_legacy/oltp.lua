-- Transactions of the old interface: reads and writes, or one of them.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

local first, last = "BEGIN", "COMMIT"

local function lock_statements()
  local names = {}
  for number = 1, oltp_tables_count do
    names[number] = string.format("sbtest%i WRITE", number)
  end
  return "LOCK TABLES " .. table.concat(names, " ,"), "UNLOCK TABLES"
end

function thread_init()
  set_vars()
  if db_driver == "mysql" and mysql_table_engine == "myisam" then
    first, last = lock_statements()
  end
end

-- Runs a query over a range of rows so many times; `ending` follows the range.
local function read_ranges(count, what, name, ending)
  for _ = 1, count do
    local start = any_id()
    local range = string.format(" WHERE id BETWEEN %u AND %u", start, start + oltp_range_size - 1)
    db_query("SELECT " .. what .. " FROM " .. name .. range .. (ending or ""))
  end
end

local function read(name)
  for _ = 1, oltp_point_selects do
    db_query("SELECT c FROM " .. name .. " WHERE id=" .. any_id())
  end
  if oltp_range_selects then
    read_ranges(oltp_simple_ranges, "c", name)
    read_ranges(oltp_sum_ranges, "SUM(K)", name)
    read_ranges(oltp_order_ranges, "c", name, " ORDER BY c")
    read_ranges(oltp_distinct_ranges, "DISTINCT c", name, " ORDER BY c")
  end
end

local function replace_row(name)
  local id = any_id()
  db_query("DELETE FROM " .. name .. " WHERE id=" .. id)
  local c, pad = any_c(), any_pad()
  db_query(string.format("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')", name, id, any_id(), c, pad))
end

local function repeated(count, work, name)
  for _ = 1, count do
    work(name)
  end
end

local function write(name)
  repeated(oltp_index_updates, update_k, name)
  repeated(oltp_non_index_updates, update_c, name)
  repeated(oltp_delete_inserts, replace_row, name)
end

function event()
  local name = any_table()
  if not oltp_skip_trx then
    db_query(first)
  end
  if not oltp_write_only then
    read(name)
  end
  if not oltp_read_only then
    write(name)
  end
  if not oltp_skip_trx then
    db_query(last)
  end
end
