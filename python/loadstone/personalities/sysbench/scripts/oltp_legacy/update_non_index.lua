-- An update of a column without an index, with the old interface.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

function event()
  update_c(any_table())
end
