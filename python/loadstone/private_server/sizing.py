"""Settings of a private server: sized to machine and clients, durable unless told otherwise."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from loadstone.errors import LoadstoneError
from loadstone.host import machine

if TYPE_CHECKING:
    from collections.abc import Mapping

MB = 1 << 20
GB = 1 << 30

RESERVE_CONNECTIONS = 20
"""Beside the clients: superuser's reserve, control and monitor connections, a curious user's psql."""
SPACE_MIN_BYTES = 512 * MB
"""An empty cluster with its first WAL takes about 60 MB; less than this is not worth starting."""

_SERVER_BYTES = 24 * MB
"""What the server's own processes take beside its buffers."""
_CONNECTION_BYTES = MB // 2
"""What it sets aside for each connection, used or not."""

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is what the server itself uses

_OURS = frozenset({
    "port", "listen_addresses", "unix_socket_directories", "unix_socket_permissions", "unix_socket_group",
    "data_directory", "config_file", "hba_file", "ident_file", "external_pid_file", "logging_collector",
    "log_destination", "include", "include_dir", "include_if_exists",
})  # fmt: skip


def memory_bytes() -> int:
    """Return the memory that this process may count on: the machine's, or its container's limit."""
    facts = machine.memory()
    known = [size for size in (facts["total_bytes"], facts["limit_bytes"]) if size]
    return min(known, default=GB)


def sized_settings(clients: int, storage: Path, limit_bytes: int | None = None) -> dict[str, str]:
    """Return the settings for so many clients, with the data in `storage`, within a limit of memory."""
    memory = min(memory_bytes(), limit_bytes or memory_bytes())
    buffers_min, work_min = (128 * MB, 64 * MB) if limit_bytes is None else (8 * MB, 4 * MB)
    free = shutil.disk_usage(storage).free
    # In powers of two: servers of one run have the same, though the first has used some of the space.
    max_wal = _clamp(1 << (max(free // 10, 1).bit_length() - 1), 128 * MB, 4 * GB)
    # Huge pages are not charged to a control group: buffers in them would escape its limit.
    within = {"huge_pages": "off"} if limit_bytes is not None else {}
    return within | {
        "max_connections": str(clients + RESERVE_CONNECTIONS),
        "shared_buffers": _megabytes(_clamp(memory // 4, buffers_min, 8 * GB)),
        "effective_cache_size": _megabytes(max(memory * 3 // 4, 2 * buffers_min)),
        "maintenance_work_mem": _megabytes(_clamp(memory // 16, work_min, GB)),
        "max_wal_size": _megabytes(max_wal),
        "min_wal_size": _megabytes(max(max_wal // 4, 80 * MB)),
        "checkpoint_completion_target": "0.9",
        "wal_level": "replica",
        "fsync": "on",
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "dynamic_shared_memory_type": _shared_memory_type(),
        "timezone": "UTC",
        "log_timezone": "UTC",
        "lc_messages": "C",
        "cluster_name": "loadstone",
    }


def with_segments(sized: Mapping[str, str], segment_bytes: int, own: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with room for two segments of WAL, without which no server starts.

    What the user set stays as it is: the server says itself what is wrong with it.
    """
    names = [name for name in ("min_wal_size", "max_wal_size") if name not in own]
    least = 2 * segment_bytes
    return dict(sized) | {name: _megabytes(max(_setting_bytes(sized[name]), least)) for name in names}


def refuse_too_little(limit_bytes: int | None, settings: Mapping[str, str]) -> None:
    """Refuse a limit of memory in which the server would not live."""
    if limit_bytes is None:
        return
    least = least_memory(settings)
    if limit_bytes < least:
        raise LoadstoneError(
            f"{limit_bytes:,} bytes of memory are too little for a private server with shared_buffers = "
            f"{settings['shared_buffers']} and max_connections = {settings['max_connections']}",
            f"Set the limit to {-(-least // MB)}MB or more, or lower these settings.",
        )


def least_memory(settings: Mapping[str, str]) -> int:
    """Return the memory without which a server of these settings is killed sooner or later, in bytes."""
    buffers = _setting_bytes(settings["shared_buffers"])
    connections = int(settings["max_connections"])
    return buffers + _SERVER_BYTES + connections * _CONNECTION_BYTES


def _setting_bytes(text: str) -> int:
    """Read a size as PostgreSQL does; without unit it is in pages of 8 kB."""
    found = re.fullmatch(r"\s*(\d+)\s*(B|kB|MB|GB|TB|)\s*", text)
    if found is None:
        raise LoadstoneError(f"shared_buffers = {text} is not a size", "Write it like 16MB.")
    return int(found[1]) * {"B": 1, "kB": 1 << 10, "MB": MB, "GB": GB, "TB": 1 << 40, "": 8192}[found[2]]


def checked(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the user's own settings; those by which Loadstone holds the server in hand are refused."""
    for name in settings:
        if name.lower() in _OURS:
            raise LoadstoneError(
                f"Loadstone itself sets '{name}' of a private server",
                "Start your own server and use it as the --target.",
            )
        if not re.fullmatch(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)?", name):
            raise LoadstoneError(f"'{name}' is not the name of a setting", "Write name=value.")
    return {name.lower(): str(value) for name, value in settings.items()}


def as_file(settings: Mapping[str, str]) -> str:
    """Write settings in the syntax of postgresql.conf."""
    lines = []
    for name, value in settings.items():
        quoted = value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
        lines.append(f"{name} = '{quoted}'")
    return "\n".join(["", "# Set by Loadstone; the last line of a name counts.", *lines, ""])


def _shared_memory_type() -> str:
    # Containers often have 64 MB there, which parallel queries overflow; files do as well then.
    try:
        roomy = shutil.disk_usage(_SHARED_MEMORY).free >= 256 * MB
    except OSError:
        roomy = False
    return "posix" if roomy else "mmap"


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _megabytes(count_bytes: int) -> str:
    return f"{count_bytes // MB}MB"
