"""Exporters of Debian beside our own sampler and our own SQL, for the same machine and server."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from support.sandbox import wait_until

from loadstone.errors import LoadstoneError
from loadstone.host.procfs import Host
from loadstone.target import parse_targets
from loadstone.watch.exporter import Exporter
from loadstone.watch.spec import specs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandbox import Database

BUSY = ("user", "nice", "system", "irq", "softirq")

pytestmark = pytest.mark.slow  # many programs are started


@contextlib.contextmanager
def exporter(program: str, target: str, *options: str, **variables: str) -> Iterator[Exporter]:
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"needs {program}")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [path, f"--web.listen-address={address}", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as process:
        (spec,) = specs_of([f"http://{address}"], [target], parse_targets([target]), {})
        source = Exporter(spec, None, None)
        try:
            assert process.stderr is not None
            assert any("istening on" in line for line in process.stderr)
            yield source
        finally:
            source.close()
            process.terminate()
            process.communicate()


def test_node_exporter_and_the_local_sampler_agree() -> None:
    host = Host()
    with exporter("prometheus-node-exporter", "pg18") as source:
        assert source.check().startswith("node_exporter")
        first, ours = source.ask(), host.sample()
        until = time.monotonic() + 1.5
        while time.monotonic() < until:  # something to be seen
            sum(range(10_000))
        second, later = source.ask(), host.sample()
    assert first.host is not None
    assert second.host is not None
    shares = [share(first.host, second.host), share(ours, later)]
    assert shares[0] == pytest.approx(shares[1], abs=0.1)  # they are not taken at the same moment
    assert second.host["cores"] == later["cores"]
    assert second.host["memory_total_bytes"] == later["memory_total_bytes"]
    assert second.host["memory_available_bytes"] == pytest.approx(later["memory_available_bytes"], rel=0.05)
    assert second.host["disk"]["write_ops"] == pytest.approx(later["disk"]["write_ops"], rel=0.01)
    assert second.host["network"]["rx_bytes"] == pytest.approx(later["network"]["rx_bytes"], rel=0.01)
    offset_s, error_s = source.clock.wall_offset_s(time.time_ns() - time.monotonic_ns()), source.clock.error_s  # noqa: TID251
    assert offset_s is not None
    assert error_s is not None
    assert abs(offset_s) <= error_s + 0.001


def share(before: dict[str, dict[str, float]], after: dict[str, dict[str, float]]) -> float:
    deltas = {name: after["cpu_s"][name] - before["cpu_s"][name] for name in after["cpu_s"]}
    return sum(deltas[name] for name in BUSY) / sum(deltas.values())


def test_postgres_exporter_and_our_own_sql_agree(database: Database) -> None:
    url = database.url
    only = f"{url}{'&' if '?' in url else '?'}sslmode=disable"
    with exporter("prometheus-postgres-exporter", url, DATA_SOURCE_NAME=only) as source:
        assert source.check().startswith("postgres_exporter")
        assert source.not_observed == ["CPU, memory, disks and network: that is node_exporter's part"]
        first = source.ask()
        assert first.counters is not None
        for _ in range(20):
            database.execute("select 1")
        counted = "select xact_commit from pg_stat_database where datname = current_database()"
        least = first.counters["xact_commit"] + 20
        wait_until(lambda: database.value(counted) >= least, "sessions that ended are counted")
        second = source.ask()
        told = database.value(counted)
    assert second.counters is not None
    assert second.host is None
    assert second.counters["xact_commit"] - first.counters["xact_commit"] >= 20
    assert second.counters["xact_commit"] == pytest.approx(told, abs=8)


def test_postgres_exporter_without_its_server_is_refused() -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none?sslmode=disable"
    refused = pytest.raises(LoadstoneError, match="pg_up is 0")
    with exporter("prometheus-postgres-exporter", "pg18", DATA_SOURCE_NAME=nowhere) as source, refused:
        source.check()
