"""TSBS's data sets, loads and queries as Loadstone runs them, whoever asks: its command lines or a scenario."""
