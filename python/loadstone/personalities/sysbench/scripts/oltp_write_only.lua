-- Transactions that update, delete and insert.
require("oltp_common")

function prepare_statements()
  prepare_transaction()
  prepare_all_writes()
end

function event()
  in_transaction(execute_all_writes)
end
