-- Transactions that read: single rows and ranges.
require("oltp_common")

function prepare_statements()
  prepare_point_selects()
  prepare_transaction()
  prepare_all_ranges()
end

function event()
  in_transaction(execute_point_selects, execute_all_ranges)
end
