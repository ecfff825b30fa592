"""Bulk loads of plain tables: looked at, made room for, performed in steps, verified."""

from loadstone.bulk.content import Content, look
from loadstone.bulk.loading import BulkManner, perform_bulk
from loadstone.bulk.space import Need, needed_bytes, refuse_without_room

__all__ = [
    "BulkManner",
    "Content",
    "Need",
    "look",
    "needed_bytes",
    "perform_bulk",
    "refuse_without_room",
]
