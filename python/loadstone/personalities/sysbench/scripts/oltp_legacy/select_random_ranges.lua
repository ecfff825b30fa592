-- Number of rows in several ranges, with the old interface.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

oltp_tables_count = 1

local run

function thread_init()
  set_vars()
  local count = tonumber(number_of_ranges) or 10
  local ranges = string.rep("k BETWEEN ? AND ? OR ", count - 1) .. "k BETWEEN ? AND ?"
  run = prepare_random(
    "SELECT count(k) FROM sbtest1 WHERE " .. ranges, 2 * count, 2, tonumber(random_ranges_delta) or 5)
end

function event()
  run()
end
