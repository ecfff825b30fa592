"""The machine that Loadstone and a local server run on: facts, counters, limits."""
