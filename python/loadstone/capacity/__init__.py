"""How many servers, how much disk, which partitions: what a run's figures say about a number of devices."""
