"""TSBS's data sets, loads and queries as Loadstone runs them, for its command lines and for scenarios."""
