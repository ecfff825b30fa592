"""Figures while a run goes on: for Prometheus and its relatives, and as a page in a browser."""
