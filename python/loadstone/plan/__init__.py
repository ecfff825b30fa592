"""Scenario × target → plan: pure data, made before anything is touched."""
