-- As pgbench does before each run, and the accounts too: no cell pays for the dead rows of the one before.
vacuum pgbench_branches;
vacuum pgbench_tellers;
truncate pgbench_history;
vacuum analyze pgbench_accounts;
