-- Rows with one of several values.
require("select_random")

sysbench.cmdline.options.random_points = {"values that a SELECT looks for", 10}

function thread_init()
  local count = sysbench.opt.random_points
  local places = string.rep("?, ", count - 1) .. "?"
  prepare_random("SELECT id, k, c, pad FROM sbtest1 WHERE k IN (" .. places .. ")", count)
end

local function bind(parameters, draw)
  for place = 1, #parameters do
    parameters[place]:set(draw())
  end
end

function event()
  execute_random(bind)
end
