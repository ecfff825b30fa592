"""Scenarios: load tests as folders of data, read and checked, with templates and parameters."""
