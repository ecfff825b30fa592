"""Load hosts that are reached by ssh: named, tried before anything is started, given a key for the cluster.

The cluster is Dask's SSHCluster: a scheduler on the first host, one worker on each. Its connections are TLS
by a certificate of one run, which every host gets over ssh, and deletes when its processes have read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import shlex
import sys
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

COMMAND_VARIABLE = "LOADSTONE_SSH"
"""The ssh command with options of its own, as for `--watch`; here, `-F FILE` counts."""
CONNECT_S = 10.0
FORM = "Write ssh://[USER@]HOST[:PORT][/PYTHON], more hosts after commas."
PRELOAD = "loadstone.hosts.over_ssh"
"""What Dask's processes on the hosts load: they end with the ssh connection that started them."""
_SCHEME = "ssh://"
_ROLES = ("scheduler", "worker")
_ABOUT = (
    "import distributed\n"
    "from loadstone.hosts.attendant import about\n"
    "print(about()['machine'], about()['network'])"
)


@dataclass(frozen=True, slots=True)
class SshHost:
    """One host of `--hosts ssh://…`."""

    host: str
    user: str | None = None
    port: int | None = None
    python: str = sys.executable
    """The Python there in whose environment Loadstone is installed."""

    @property
    def shown(self) -> str:
        """What the user calls it."""
        return f"{self.user}@{self.host}" if self.user else self.host


def parse_ssh(text: str) -> tuple[SshHost, ...]:
    """Read `ssh://me@h1,me@h2:2222/opt/venv/bin/python`. Raises LoadstoneError."""
    return tuple(_host(text, part) for part in text.removeprefix(_SCHEME).split(","))


def _host(text: str, part: str) -> SshHost:
    try:
        parts = urlsplit(_SCHEME + part.strip().removeprefix(_SCHEME))
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.password is not None:
        raise LoadstoneError(
            "--hosts: ssh takes no password here", "Log in by key or agent; ~/.ssh/config is used."
        )
    user = unquote(parts.username) if parts.username else None
    python = unquote(parts.path)
    if not parts.hostname or any(word.startswith("-") for word in (parts.hostname, user or "")):
        raise LoadstoneError(f"'{text}' does not name hosts for ssh", FORM)
    if parts.query or parts.fragment or "'" in python or not python.isprintable():
        raise LoadstoneError(f"'{text}' does not name hosts for ssh", FORM)
    return SshHost(parts.hostname, user, port, python if python.strip("/") else sys.executable)


def connect_options(host: SshHost, variables: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return how asyncssh connects to a host: ~/.ssh/config and known_hosts count, as for ssh."""
    given: dict[str, Any] = {"username": host.user, "port": host.port, "config": _config(variables)}
    usual: dict[str, Any] = {"connect_timeout": CONNECT_S, "keepalive_interval": 15.0}
    return usual | {name: value for name, value in given.items() if value is not None}


def _config(variables: Mapping[str, str]) -> list[str] | None:
    words = shlex.split(variables.get(COMMAND_VARIABLE, ""))
    return next(([file] for word, file in itertools.pairwise(words) if word == "-F"), None)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The certificate of one cluster; its key is in the same text."""

    folder: str
    """Where the hosts have it for a moment."""
    pem: str
    certificate: str

    def options(self, role: str) -> dict[str, Any]:
        """Return the security of a process on a host, as Dask takes it."""
        path = f"{self.folder}/{role}.pem"
        names = ("tls_ca_file", f"tls_{role}_cert", f"tls_{role}_key")
        return {"require_encryption": True, **dict.fromkeys(names, path)}


def credentials_of(security: Any) -> Credentials:
    """Return the credentials of Dask's temporary security."""
    certificate = str(security.tls_scheduler_cert)
    return Credentials(
        f"/tmp/loadstone-dask-{uuid.uuid4().hex}",  # noqa: S108 - made there, with a name that nobody can know
        f"{certificate}\n{security.tls_scheduler_key}",
        certificate,
    )


def prepare(hosts: Sequence[SshHost], credentials: Credentials) -> None:
    """Try each host, and give it the credentials. Raises LoadstoneError, and leaves nothing then."""
    asyncio.run(_all(hosts, credentials))


async def _all(hosts: Sequence[SshHost], credentials: Credentials) -> None:
    machines = await asyncio.gather(*(_machine(host) for host in hosts))
    for (one, first), (other, second) in itertools.combinations(zip(hosts, machines, strict=True), 2):
        if first == second:
            raise LoadstoneError(
                f"the load hosts {one.shown} and {other.shown} are the same machine",
                "Name each machine once.",
            )
    try:
        await asyncio.gather(*(_give(host, credentials) for host in hosts))
    except BaseException:
        await _remove(hosts, credentials)
        raise


async def _machine(host: SshHost) -> str:
    """Return what tells a host from others. Raises LoadstoneError for one that cannot drive a load."""
    async with _connected(host) as connection:
        about = await connection.run(f"{shlex.quote(host.python)} -c {shlex.quote(_ABOUT)}")
        if about.exit_status != 0:
            said = (str(about.stderr).strip().splitlines() or ["it says nothing"])[-1]
            raise LoadstoneError(
                f"load host {host.shown}: {host.python} cannot load Loadstone and Dask: {said}",
                "Install this version there (pip install 'loadstone[hosts]'), and name its Python: "
                f"ssh://{host.shown}/opt/loadstone/bin/python",
            )
        return str(about.stdout)


async def _give(host: SshHost, credentials: Credentials) -> None:
    folder = shlex.quote(credentials.folder)
    files = " ".join(f"{folder}/{role}.pem" for role in _ROLES)
    async with _connected(host) as connection:
        written = await connection.run(
            f"umask 077 && mkdir {folder} && tee {files} >/dev/null", input=credentials.pem
        )
        if written.exit_status != 0:
            raise LoadstoneError(f"load host {host.shown}: {str(written.stderr).strip()}")


def remove(hosts: Sequence[SshHost], credentials: Credentials) -> None:
    """Remove credentials that no process has read."""
    asyncio.run(_remove(hosts, credentials))


async def _remove(hosts: Sequence[SshHost], credentials: Credentials) -> None:
    async def remove(host: SshHost) -> None:
        with contextlib.suppress(LoadstoneError):
            async with _connected(host) as connection:
                await connection.run(f"rm -rf {shlex.quote(credentials.folder)}")

    await asyncio.gather(*(remove(host) for host in hosts))


@contextlib.asynccontextmanager
async def _connected(host: SshHost) -> AsyncIterator[Any]:
    """Connect to a host. Raises LoadstoneError with the mend."""
    import asyncssh  # noqa: PLC0415 - only where hosts are reached by ssh

    try:
        async with asyncssh.connect(host.host, **connect_options(host)) as connection:
            yield connection
    except asyncssh.HostKeyNotVerifiable as error:
        raise LoadstoneError(
            f"load host {host.shown}: its host key is unknown: {error}",
            f"Connect once by hand (`ssh {_typed(host)}`), compare the key, and accept it.",
        ) from error
    except asyncssh.PermissionDenied as error:
        raise LoadstoneError(
            f"load host {host.shown} refuses the login: {error}",
            f"Make sure that `ssh -o BatchMode=yes {_typed(host)} true` works: a key that it accepts.",
        ) from error
    except (OSError, TimeoutError, ValueError, asyncssh.Error) as error:
        why = str(error) or type(error).__name__
        raise LoadstoneError(
            f"load host {host.shown} cannot be reached by ssh: {why}",
            f"Make sure that `ssh -o BatchMode=yes {_typed(host)} true` works.",
        ) from error


def _typed(host: SshHost) -> str:
    return f"-p {host.port} {host.shown}" if host.port else host.shown
