"""Dask clusters: the one that we start here, and those that are there. The only module that imports Dask."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from loadstone.engine.library.packages import install
from loadstone.errors import LoadstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loadstone.hosts.places import Places

CONNECT_S = 10
_OF_OURS = {
    "distributed.scheduler.reuse-broadcast-comm": True,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.profile.enabled": False,
}
"""Of a cluster in this process: it takes no more of the machine than it must."""


@contextmanager
def client_of(places: Places) -> Iterator[Any]:
    """Connect to a cluster; one that is started here ends with the context. Raises LoadstoneError."""
    distributed = _distributed()
    if places.local:
        with _local(places.local) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(places.scheduler, timeout=CONNECT_S)
    except (OSError, ValueError, TypeError) as error:
        raise LoadstoneError(
            f"no Dask scheduler can be reached at {places.scheduler}: {error}",
            "Start one there: dask scheduler. For tls:// set Dask's own configuration, distributed.comm.tls.",
        ) from error
    with client:
        yield client


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
            memory_limit=0,
            silence_logs=40,
        ) as cluster,
    ):
        yield cluster


def workers_of(client: Any) -> list[str]:
    """Return the addresses of a cluster's workers, in order."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])
