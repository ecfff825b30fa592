"""The files of docs/load-hosts: neither Kubernetes nor SLURM is there to run them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from distributed.cli import dask_scheduler, dask_worker

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parents[2] / "docs" / "load-hosts"
CLUSTER = {"idleTimeout": int, "worker": dict, "scheduler": dict}
"""Fields of the operator's DaskCluster; those below are of its worker and of its scheduler."""
WORKER = {"replicas": int, "spec": dict}
SCHEDULER = {"spec": dict, "service": dict}
JOBQUEUE = """
from distributed import LocalCluster

def SLURMCluster(*, cores, processes, nanny, memory, walltime, queue, interface, job_extra_directives):
    assert (cores, processes, nanny, queue) == (2, 1, False, None)
    place = dict(protocol="tcp://", host="127.0.0.1")
    cluster = LocalCluster(n_workers=0, processes=False, dashboard_address=None, **place)
    scale = cluster.scale
    cluster.scale = lambda jobs: scale(jobs)
    return cluster
"""


def check(found: dict[str, Any], fields: Mapping[str, type], *needed: str) -> None:
    assert set(found) <= set(fields)
    assert set(needed) <= set(found)
    assert all(isinstance(value, fields[name]) for name, value in found.items())


def test_the_manifest_has_the_operators_fields() -> None:
    cluster = yaml.safe_load((FOLDER / "dask-cluster.yaml").read_text())
    assert (cluster["apiVersion"], cluster["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    check(spec, CLUSTER, "worker", "scheduler")
    check(spec["worker"], WORKER, "spec")
    check(spec["scheduler"], SCHEDULER, "spec", "service")
    # To Dask a cluster that runs no tasks is idle.
    assert spec["idleTimeout"] == 0
    assert spec["scheduler"]["service"]["selector"] == {
        "dask.org/cluster-name": name,
        "dask.org/component": "scheduler",
    }
    apart = spec["worker"]["spec"]["affinity"]["podAntiAffinity"]
    (rule,) = apart["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"]["matchLabels"]["dask.org/component"] == "worker"
    page = (FOLDER / "kubernetes.md").read_text()
    (port,) = (port["port"] for port in spec["scheduler"]["service"]["ports"] if port["name"] == "tcp-comm")
    assert f"--hosts tcp://{name}-scheduler:{port}" in page


@pytest.mark.parametrize(
    ("role", "program"), [("worker", dask_worker.main), ("scheduler", dask_scheduler.main)]
)
def test_the_manifest_starts_dasks_own_programs(role: str, program: Any) -> None:
    spec = yaml.safe_load((FOLDER / "dask-cluster.yaml").read_text())["spec"]
    (container,) = spec[role]["spec"]["containers"]
    assert container["name"] == role
    assert container["args"][:2] == ["dask", role]
    known = {
        option for parameter in program.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    given = {word for word in container["args"] if word.startswith("--")}
    assert given <= known, given - known


@pytest.mark.slow
def test_the_script_for_slurm_prints_the_address_of_its_scheduler(tmp_path: Path) -> None:
    (tmp_path / "dask_jobqueue.py").write_text(JOBQUEUE)
    command = [sys.executable, str(FOLDER / "slurm.py"), "--hosts", "1", "--cores", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(tmp_path)}
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline().startswith("--hosts tcp://127.0.0.1:")
        job.send_signal(signal.SIGINT)
        assert job.wait(120) == 0
