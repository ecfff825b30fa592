"""`--report`: the run folder and the report of `loadstone run`, of a pgbench command line."""
