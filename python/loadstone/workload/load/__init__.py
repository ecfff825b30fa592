"""Bulk loads of plain tables: looked at, made room for, performed in steps, verified."""

from loadstone.workload.load.content import Content, look
from loadstone.workload.load.disk_space import Need, needed_bytes, refuse_without_room
from loadstone.workload.load.table_load import TableLoadOptions, perform_bulk

__all__ = [
    "Content",
    "Need",
    "TableLoadOptions",
    "look",
    "needed_bytes",
    "perform_bulk",
    "refuse_without_room",
]
