"""What is done to a database: scripts, loads and queries, performed by the core."""
