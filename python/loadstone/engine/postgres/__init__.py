"""The base of engines with PostgreSQL's wire protocol."""
