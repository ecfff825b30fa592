"""The largest load at which latencies keep their limits, counted over all that should have begun."""
