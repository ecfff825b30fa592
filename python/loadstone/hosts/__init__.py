"""Several load hosts for one drive, on dask.distributed.

Dask places processes and carries messages; it takes no part in a transaction. On each worker one child
process (`agent.py`) drives its share of the clients; `joint.py` lets all of them begin together, watches and
stops them; `outcome.py` merges what they have recorded. Only `cluster.py` imports Dask.
"""
