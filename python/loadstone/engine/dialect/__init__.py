"""How an engine stores tables and time series, and how its statements name them."""
