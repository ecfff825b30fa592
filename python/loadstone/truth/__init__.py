"""Known truth: what tools measure of a server whose service times are known exactly."""
