-- One row by its key, with the old interface.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

function event()
  db_query("SELECT c FROM " .. any_table() .. " WHERE id=" .. any_id())
end
