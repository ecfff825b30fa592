"""Files that a drive reads: copied into the folder of each host's agent, which goes with the agent."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadstone.errors import RunFailedError
from loadstone.hosts import attendant

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from loadstone.hosts.line import Line

Document = dict[str, Any]
_QUERIES = "queries.jsonl"
_WITHIN_S = 30.0
"""Longest time for a chunk: the disk there may be slow."""
_SILENT_S = 5.0
"""So long an agent may hear nothing while its files are copied."""


async def delivered(
    line: Line, key: str, folder: str, document: Document, rest: Callable[[], Awaitable[None]]
) -> Document:
    """Copy what a drive reads to the agent with this key; returns the drive as it reads it there.

    `rest` says something to the agent, so that its lease does not end. Raises LineLostError, and
    RunFailedError where a file cannot be read here or written there.
    """
    queries = document.get("queries") or {}
    if not queries.get("file"):
        return document
    await _copy(line, key, Path(queries["file"]), rest)
    return document | {"queries": queries | {"file": f"{folder}/{_QUERIES}"}}


async def _copy(line: Line, key: str, path: Path, rest: Callable[[], Awaitable[None]]) -> None:
    said = time.monotonic()
    try:
        with path.open("rb") as file:
            while chunk := await asyncio.to_thread(file.read, attendant.CHUNK):
                trouble = await line.call(attendant.put, key, _QUERIES, chunk, within_s=_WITHIN_S)
                if trouble:
                    raise RunFailedError(f"load host at {line.address}: {trouble}", "Free some space there.")
                if time.monotonic() - said > _SILENT_S:
                    await rest()
                    said = time.monotonic()
    except OSError as error:
        raise RunFailedError(f"{path} cannot be read: {error.strerror}") from error
