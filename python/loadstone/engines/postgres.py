"""PostgreSQL: the answers that the others are measured against."""

from __future__ import annotations

from loadstone.engine.postgres.family import PostgresFamily


class Postgres(PostgresFamily):
    """PostgreSQL 10 and later, as the project releases it."""

    status = "verified against PostgreSQL 10 to 18, on Linux"


ENGINE = Postgres()
