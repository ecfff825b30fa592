"""What `--hosts` names: where the load hosts are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from loadstone.hosts.ssh import SshHost

LOCAL_MAX = 64
"""Most processes of `local:N`: beyond, they measure how a machine shares its cores."""
_SCHEDULERS = ("tcp", "tls")
_FORMS = (
    "Use local:N (N processes on this machine), ssh://USER@HOST,USER@HOST, or tcp://HOST:PORT (the scheduler "
    "of a Dask cluster)."
)


@dataclass(frozen=True, slots=True)
class Places:
    """Where agents run: `local` processes here, one on each host of a Dask cluster, or on each by ssh."""

    text: str
    local: int = 0
    scheduler: str = ""
    ssh: tuple[SshHost, ...] = ()


def parse_hosts(text: str) -> Places:
    """Read the value of `--hosts`. Raises LoadstoneError."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "local":
        return _local(text, rest)
    if colon and kind in _SCHEDULERS:
        return _scheduler(text)
    if kind == "ssh" and rest.startswith("//"):
        from loadstone.hosts.ssh import parse_ssh  # noqa: PLC0415 - asyncio and ssl: 7 MiB

        return Places(text, ssh=parse_ssh(text))
    raise LoadstoneError(f"'{text}' does not name load hosts", _FORMS)


def _local(text: str, number: str) -> Places:
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= LOCAL_MAX):
        raise LoadstoneError(f"'{text}' needs a number of processes from 1 to {LOCAL_MAX}", _FORMS)
    return Places(text, local=int(number))


def _scheduler(text: str) -> Places:
    if not _is_address(text):
        raise LoadstoneError(f"'{text}' is not the address of a Dask scheduler", "Use tcp://HOST:8786.")
    return Places(text, scheduler=text)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(parts.port and parts.hostname) and not parts.path.strip("/") and parts.username is None
    except ValueError:
        return False
