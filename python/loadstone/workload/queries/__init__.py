"""Queries to a database: asked, timed, their answers digested and compared."""
