drop table if exists loadstone.pgbench_accounts, loadstone.pgbench_branches, loadstone.pgbench_tellers, loadstone.pgbench_history;
