-- One row inserted, by a statement that is not prepared.
require("oltp_common")

sysbench.cmdline.commands.prepare = {
  function()
    if not sysbench.opt.auto_inc then
      sysbench.opt.table_size = 0 -- keys of rows made now could be drawn again during the run
    end
    cmd_prepare()
  end,
  sysbench.cmdline.PARALLEL_COMMAND,
}

function prepare_statements()
end

local SMALLEST_INT = -2147483648

-- The key to insert: nil where the database numbers rows by itself.
local function key()
  if not sysbench.opt.auto_inc then
    return sysbench.rand.unique() + SMALLEST_INT
  end
  return drv:name() ~= "pgsql" and 0 or nil
end

function event()
  local number = sysbench.rand.uniform(1, sysbench.opt.tables)
  local k = sysbench.rand.default(1, sysbench.opt.table_size)
  local c, pad = get_c_value(), get_pad_value()
  local id = key()
  if id then
    con:query(string.format("INSERT INTO sbtest%d (id, k, c, pad) VALUES (%d, %d, '%s', '%s')", number, id, k, c, pad))
  else
    con:query(string.format("INSERT INTO sbtest%d (k, c, pad) VALUES (%d, '%s', '%s')", number, k, c, pad))
  end
end
