"""Load hosts of a Dask cluster with TLS, by Dask's own configuration."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import dask
import pytest
import trustme
from support.load_hosts import started

from loadstone import model
from loadstone.errors import LoadstoneError
from loadstone.hosts import cluster
from loadstone.hosts.cluster import client_of
from loadstone.hosts.fleet import open_fleet
from loadstone.hosts.places import parse_hosts
from loadstone.workload.calibrate import null_server
from loadstone.workload.drive import drive_document

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # a cluster is started
    pytest.mark.filterwarnings("default"),  # what Dask and its libraries warn of is not ours
]


def made(folder: Path) -> dict[str, str]:
    """Make an authority and a certificate of it; return their files as Dask's programs name them."""
    folder.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(folder / "cert.pem"))
    return {"ca-file": str(folder / "ca.pem"), "cert": str(folder / "cert.pem")}


def configured(files: dict[str, str]) -> dict[str, str]:
    tls = "distributed.comm.tls"
    return {f"{tls}.ca-file": files["ca-file"], f"{tls}.client.cert": files["cert"]}


def test_a_cluster_with_tls_drives_and_one_that_is_not_trusted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, others = made(tmp_path / "ours"), made(tmp_path / "theirs")
    trust = [f"--tls-{name}={path}" for name, path in files.items()]
    script = model.Script("one", "select 1;\n")
    drive = model.Drive(scripts=(script,), mode="simple", clients=2, seed=5, transactions_per_client=7)
    monkeypatch.setattr(cluster, "CONNECT_S", 3)
    with ExitStack() as stack:
        place = ["--host", "127.0.0.1", "--port", "0", "--protocol", "tls", *trust]
        address = stack.enter_context(started("dask_scheduler", *place, says=r"Scheduler at: +(tls:\S+)"))
        worker = partial(
            started, "dask_worker", "--no-nanny", "--nthreads", "1", says=r"Registered to: +(\S+)"
        )
        stack.enter_context(worker(*trust, address))
        _, connection = stack.enter_context(null_server(4))
        hosts = parse_hosts(address)
        with dask.config.set(configured(files)), open_fleet(hosts) as fleet:
            account = fleet.perform(drive_document(drive, connection, None), None)
        assert account["counts"]["done"] == 14
        with (
            dask.config.set(configured(others)),
            pytest.raises(LoadstoneError, match=r"tls://\S+: .*certificate") as caught,
            client_of(hosts),
        ):
            pass
        assert "distributed.comm.tls" in caught.value.hint
        with pytest.raises(LoadstoneError, match="Dask's configuration names none"), client_of(hosts):
            pass
