-- What select_random_points and select_random_ranges share: one statement on column k of the first table,
-- with values from the client's own part of the range.
require("oltp_common")

local statement, parameters, part, first

local function draw()
  return sysbench.rand.default(first, first + part)
end

-- Prepares a statement with so many parameters, all whole numbers.
function prepare_random(text, count)
  con = sysbench.sql.driver():connect()
  statement, parameters = con:prepare(text), {}
  for place = 1, count do
    parameters[place] = statement:bind_create(sysbench.sql.type.INT)
  end
  statement:bind_param(unpack(parameters))
  part = sysbench.opt.table_size / sysbench.opt.threads
  first = part * (sysbench.tid % sysbench.opt.threads)
end

-- Runs it; `bind` gets the parameters, and what draws a value.
function execute_random(bind)
  bind(parameters, draw)
  statement:execute()
end

function thread_done()
  statement:close()
  con:disconnect()
end
