-- Transactions that read single rows and ranges, then update, delete and insert.
require("oltp_common")

function prepare_statements()
  prepare_transaction()
  prepare_point_selects()
  prepare_all_ranges()
  prepare_all_writes()
end

function event()
  in_transaction(execute_point_selects, execute_all_ranges, execute_all_writes)
end
