-- Tables made by many clients: run it with --events equal to --threads.
local folder = string.match(test, "(.*/)")
if folder then
  dofile(folder .. "common.lua")
else
  require("common")
end

function event()
  print("thread prepare" .. thread_id)
  for number = thread_id + 1, oltp_tables_count, num_threads do
    create_insert(number)
  end
end
