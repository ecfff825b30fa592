-- As pgbench does before each run, and the accounts too: no cell pays for the dead rows of the one before.
vacuum loadstone.pgbench_branches;
vacuum loadstone.pgbench_tellers;
truncate loadstone.pgbench_history;
vacuum analyze loadstone.pgbench_accounts;
