truncate table loadstone.pgbench_history;
analyze table loadstone.pgbench_branches, loadstone.pgbench_tellers, loadstone.pgbench_accounts;
