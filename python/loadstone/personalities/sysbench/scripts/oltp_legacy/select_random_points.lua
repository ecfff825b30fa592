-- Rows with one of several values, with the old interface.
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
  local count = tonumber(random_points) or 10
  local places = string.rep("?, ", count - 1) .. "?"
  run = prepare_random("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. places .. ")", count, 1)
end

function event()
  run()
end
