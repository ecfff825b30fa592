-- Number of rows in several ranges.
require("select_random")

sysbench.cmdline.options.number_of_ranges = {"ranges that a SELECT looks at", 10}
sysbench.cmdline.options.delta = {"difference of the ends of a range", 5}

function thread_init()
  local count = sysbench.opt.number_of_ranges
  local ranges = string.rep("k BETWEEN ? AND ? OR ", count - 1) .. "k BETWEEN ? AND ?"
  prepare_random("SELECT count(k) FROM sbtest1 WHERE " .. ranges, 2 * count)
end

local function bind(parameters, draw)
  for place = 1, #parameters, 2 do
    local value = draw()
    parameters[place]:set(value)
    parameters[place + 1]:set(value + sysbench.opt.delta)
  end
end

function event()
  execute_random(bind)
end
