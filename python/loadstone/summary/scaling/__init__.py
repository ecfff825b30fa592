"""Throughput over the number of clients."""
