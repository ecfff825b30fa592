"""`loadstone pgbench -i`: make pgbench's tables and fill them, as pgbench does.

`settings.py` understands the options, `schema.py` writes the statements, `steps.py` performs them; the core
makes the rows, and `rows.py` sends them. This file imports nothing: reading the options must be quick.
"""
