-- One row inserted, with the old interface.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

function event()
  local name, k = any_table(), any_id()
  local c, pad = any_c(), any_pad()
  if db_driver == "pgsql" and oltp_auto_inc then
    db_query(string.format("INSERT INTO %s (k, c, pad) VALUES (%d, '%s', '%s')", name, k, c, pad))
  else
    local id = oltp_auto_inc and 0 or sb_rand_uniq()
    db_query(string.format("INSERT INTO %s (id, k, c, pad) VALUES (%d, %d, '%s', '%s')", name, id, k, c, pad))
  end
end
