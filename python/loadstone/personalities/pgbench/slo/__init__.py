"""`--slo`: the highest rate at which pgbench's own scripts keep their limits."""
