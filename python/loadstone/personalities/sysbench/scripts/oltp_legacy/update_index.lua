-- An update of an indexed column, with the old interface.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

function event()
  update_k(any_table())
end
