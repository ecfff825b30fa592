"""Dask clusters: the one that we start here, and those that are there. The only module that imports Dask."""

from __future__ import annotations

import shlex
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadstone.engine.library.packages import install
from loadstone.errors import LoadstoneError
from loadstone.hosts import ssh
from loadstone.hosts.addresses import is_local

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadstone.hosts.places import Places
    from loadstone.hosts.ssh import Credentials, SshHost

CONNECT_S = 10
_TLS = (
    "Set distributed.comm.tls in Dask's configuration (ca-file, client.cert, client.key): "
    "https://distributed.dask.org/en/stable/tls.html"
)
_OF_OURS = {
    "distributed.scheduler.reuse-broadcast-comm": True,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.profile.enabled": False,
}
"""Of a cluster in this process: it takes no more of the machine than it must."""


_NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
"""Dask's HTTP server starts anyway, by default at port 8787, and warns where another cluster has that."""


@contextmanager
def client_of(places: Places) -> Iterator[Any]:
    """Connect to a cluster; one that is started here ends with the context. Raises LoadstoneError."""
    distributed = _distributed()
    if places.local:
        with _local(places.local) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    if places.ssh:
        with _over_ssh(places.ssh) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(places.scheduler, timeout=CONNECT_S)
    except (OSError, ValueError, TypeError) as error:
        raise _unreachable(places.scheduler, error) from error
    with client:
        yield client


def _unreachable(scheduler: str, error: Exception) -> LoadstoneError:
    """Say why a scheduler cannot be reached; of TLS, why trust is missing."""
    causes = list(_causes(error))
    said = next((str(cause) for cause in causes if isinstance(cause, ssl.SSLError)), str(error))
    if not scheduler.startswith("tls:"):
        hint = "Start one there: dask scheduler."
    elif any(isinstance(cause, TypeError) for cause in causes):
        said = (
            "TLS needs a certificate authority and a certificate of ours, and Dask's configuration names none"
        )
        hint = _TLS
    else:
        hint = f"Its certificate and ours must both be signed by the configured authority. {_TLS}"
    return LoadstoneError(f"no Dask scheduler can be reached at {scheduler}: {said}", hint)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@contextmanager
def _over_ssh(hosts: Sequence[SshHost]) -> Iterator[Any]:
    """Start a scheduler on the first host and a worker on each; they end with the context, and with us."""
    _refuse_without_ssh()
    from distributed import Security  # noqa: PLC0415

    security = Security.temporary()
    credentials = ssh.credentials_of(security)
    ssh.prepare(hosts, credentials)
    try:
        with _started(hosts, credentials, security) as cluster:
            yield cluster
    finally:
        ssh.remove(hosts, credentials)  # where a process ended before it had read them


def _started(hosts: Sequence[SshHost], credentials: Credentials, security: Any) -> Any:
    from distributed import SSHCluster  # noqa: PLC0415

    of_all = [hosts[0], *hosts]
    here = all(is_local(host.host) for host in hosts)
    usual = {"preload": [ssh.PRELOAD], **_NO_DASHBOARD} | ({"host": "127.0.0.1"} if here else {})
    scheduler = {"port": 0, "security": credentials.options("scheduler"), **usual}
    worker = {"nthreads": 1, "memory_limit": 0, "security": credentials.options("worker"), **usual}
    try:
        return SSHCluster(
            [host.host for host in of_all],
            connect_options=[ssh.connect_options(host) for host in of_all],
            remote_python=[shlex.quote(host.python) for host in of_all],
            worker_class="distributed.Worker",
            scheduler_options=scheduler,
            worker_options=worker,
            security=security,
            silence_logs=40,
        )
    except (RuntimeError, OSError) as error:
        raise LoadstoneError(f"Dask cannot be started on the load hosts: {error}") from error


def _refuse_without_ssh() -> None:
    try:
        import asyncssh  # noqa: F401, PLC0415
    except ImportError:
        raise LoadstoneError(
            "--hosts ssh:// needs the Python package asyncssh, which is missing", _how_to_install()
        ) from None


def _distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415 - only where several hosts are asked for
    except ImportError:
        raise LoadstoneError(
            "--hosts needs dask.distributed: the Python package distributed is missing", _how_to_install()
        ) from None
    return distributed


def _how_to_install() -> str:
    try:
        return f"Install it: {install('hosts')}"
    except LookupError:  # the metadata is older than the source
        return "Install it: pip install distributed"


@contextmanager
def _local(number: int) -> Iterator[Any]:
    """Start a cluster whose workers are in this process: each has its agent, a process of its own."""
    import dask  # noqa: PLC0415
    from distributed import LocalCluster  # noqa: PLC0415

    with (
        dask.config.set(_OF_OURS),
        LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=False,
            protocol="tcp://",
            host="127.0.0.1",
            dashboard_address=None,
            worker_dashboard_address=None,
            scheduler_kwargs=_NO_DASHBOARD,
            memory_limit=0,
            silence_logs=40,
        ) as cluster,
    ):
        yield cluster


def workers_of(client: Any) -> list[str]:
    """Return the addresses of a cluster's workers, in order."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])
